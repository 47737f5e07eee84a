// Figure 7: from camera images to tokens, and from tokens to operations.

const PARTS = { projections: "queries, keys, values, output: 8nd²", mlp: "MLP: 16nd²", attention: "attention: 4n²d" };

function cost(place, data) {
  const control = {
    cameras: slider("cameras", [1, 2, 3], 1, String, update),
    history: slider("frames of history", [1, 2, 3, 4], 1, String, update),
    image: slider("image side", [64, 96, 128, 224, 448], 224, (x) => `${x} px`, update),
    patch: slider("patch side", [8, 14, 16, 28, 32, 56], 16, (x) => `${x} px`, update),
    width: slider("width d", [64, 128, 256, 512], 256, String, update),
    layers: slider("layers", range(12).map((i) => i + 1), 4, String, update),
  };
  const pictures = html("div", { class: "frames" }); // a row a camera, older frames to the right
  const sentence = html("p", { class: "verdict", "aria-live": "polite" });
  const tokens = fact("tokens");
  const layer = fact("GFLOP a layer");
  const network = fact("GFLOP for the whole network");
  const share = fact("of it attention: n / (n + 6d)");
  const parts = bars(Object.values(PARTS).map((name, i) => ({ name, colour: `var(--series-${[0, 1, 2][i]})` })));
  const latency = html("div");
  place.append(
    html("div", { class: "controls two" }, ...Object.values(control).map((one) => one.element)),
    html("div", { class: "pair" }, captioned("an image for each camera (down) and frame (across), cut into patches; one picture stands for all", pictures), html("div", {},
      sentence,
      html("div", { class: "facts" }, tokens.element, layer.element, network.element, share.element))),
    parts.element,
    latency,
  );

  function update() {
    const now = Object.fromEntries(Object.entries(control).map(([name, one]) => [name, one.value]));
    const side = Math.floor(now.image / now.patch);
    const n = now.cameras * now.history * side * side;
    const flops = layerFlops(n, now.width);
    const total = sum(Object.values(flops));
    pictures.style.setProperty("--frames", now.history);
    pictures.style.setProperty("--most", Math.max(now.cameras, now.history));
    pictures.replaceChildren(...frames(now, side, data.image));
    tokens.set(n, thousands(n));
    layer.set(total, giga(total));
    network.set(total * now.layers, giga(total * now.layers));
    share.set(n / (n + 6 * now.width), percent(n / (n + 6 * now.width)));
    parts.set(Object.values(flops).map((x) => ({ share: x / total, value: x, text: percent(x / total) })));
    sentence.textContent = tokenSentence(now, side, n);
    latency.replaceChildren(...latencies(data.latencies ?? [], now, data.period_ms ?? 100));
  }
  update();
}

const giga = (flops) => (flops / 1e9).toPrecision(3).replace(/^(\d{3,})\.?.*e.*$/, "$1");

function tokenSentence({ cameras, history, image, patch, width }, side, n) {
  const rest = image - side * patch;
  const cut = rest ? ` (${rest} pixels of each side are left over)` : "";
  const heavy = n > 6 * width ? "more" : "less";
  return `${cameras} × ${history} × ${side} × ${side} = ${thousands(n)} tokens${cut}. Attention costs ${heavy} than all the rest together: the balance tips at 6d = ${thousands(6 * width)} tokens.`;
}

// The images as the policy sees them, cut into patches; older frames are paler.
function frames({ cameras, history, image, patch }, side, picture) {
  return range(cameras).flatMap((camera) =>
    range(history).map((age) => {
      const cuts = range(side + 1).map((i) => i * patch);
      const lines = cuts.map((at) => `M${at} 0V${side * patch}M0 ${at}H${side * patch}`).join("");
      return svg("svg", { viewBox: `0 0 ${image} ${image}`, class: "frame", role: "img", "aria-label": `camera ${camera + 1}, ${age} frames ago`, style: `opacity: ${1 - 0.17 * age}` },
        picture ? svg("image", { href: picture, width: image, height: image }) : scenery(image),
        svg("path", { d: lines, class: "cuts", "stroke-width": image / 160 }));
    }));
}

// A table, three blocks and an arm, where no rendered image is at hand.
function scenery(size) {
  const shapes = [
    svg("rect", { width: 100, height: 100, class: "wall" }),
    svg("rect", { y: 42, width: 100, height: 58, class: "board" }),
    svg("path", { d: "M84 100V58L62 22L44 34V52", class: "arm" }),
    svg("rect", { x: 20, y: 62, width: 13, height: 13, style: "fill: var(--block-green)" }),
    svg("rect", { x: 40, y: 78, width: 13, height: 13, style: "fill: var(--block-red)" }),
    svg("rect", { x: 56, y: 60, width: 12, height: 12, style: "fill: var(--block-blue)" }),
  ];
  return svg("g", { transform: `scale(${size / 100})` }, ...shapes);
}

// What was measured for this number of cameras and frames, against the control period.
function latencies(measured, { cameras, history }, period) {
  const rows = measured.filter((row) => row.cameras === cameras && row.history === history);
  if (!rows.length) return [];
  const longest = Math.max(period, ...rows.map((row) => row.ms));
  const list = bars([{ name: "control period", colour: "var(--faint)" }, ...rows.map(({ name }) => ({ name, colour: "var(--series-0)" }))]);
  list.set([period, ...rows.map((row) => row.ms)].map((ms) => ({ share: ms / longest, value: ms, text: `${ms.toPrecision(3)} ms` })));
  return [html("p", { class: "faint" }, "Measured here, with this many cameras and frames:"), list.element];
}
