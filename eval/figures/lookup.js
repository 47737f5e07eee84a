// Figure 1: a query arrow over the keys of five objects.

const LONGEST = 10; // length of the query at the ring
const RING = 100; // radius of the ring in the drawing

function lookup(place, { names, keys, values }) {
  const query = { angle: Math.atan2(keys[1][1], keys[1][0]) - 0.35, length: 3 };
  const colours = names.map((name) => `var(--block-${name})`);
  const dial = queryDial(keys, names, colours, query, update);
  const table = lookupTable(values, names, colours);
  const weights = bars(names.map((name, i) => ({ name, colour: colours[i] })));
  const spread = fact("entropy: how widely the attention is spread");
  const answer = fact("the answer, from the middle of the table");
  const verdict = html("p", { class: "verdict", "aria-live": "polite" });
  const length = slider("length of the query", range(101).map((i) => i / 10), query.length, (x) => x.toFixed(1), () => {
    query.length = length.value;
    update();
  });
  const between = (a, b) => Math.atan2(keys[a][1] + keys[b][1], keys[a][0] + keys[b][0]);
  const point = (angle, reach) => () => {
    Object.assign(query, { angle, length: reach });
    update();
  };
  place.append(
    html("p", {}, "Drag the arrow. Its direction says what is asked for, its length how strictly. (With a keyboard: focus its tip, then the arrow keys.)"),
    html("div", { class: "pair drawings" }, captioned("what is asked: the query over the keys", dial.element), captioned("what comes back: the table from above, 80 × 80 cm", table.element)),
    html("div", { class: "pair top" }, html("div", {}, length.element, html("div", { class: "buttons" },
      button(`at ${names[0]}, short`, point(between(0, 0), 1)),
      button(`at ${names[0]}, long`, point(between(0, 0), LONGEST)),
      button(`half-way ${names[0]}–${names[1]}, long`, point(between(0, 1), LONGEST)),
      button("no query", () => point(query.angle, 0)())), verdict),
    html("div", {}, weights.element, html("div", { class: "facts" }, spread.element, answer.element))),
  );

  function update() {
    length.value = query.length;
    const vector = [query.length * Math.cos(query.angle), query.length * Math.sin(query.angle)];
    const read = attend(vector, keys, values);
    const spreading = entropy(read.weights);
    dial.show(read.weights);
    table.show(read.weights, read.output);
    weights.set(read.weights.map((w, i) => ({ share: w, value: w, text: `${percent(w)} (score ${signed(read.scores[i], 1)})` })));
    spread.set(spreading, `${spreading.toFixed(2)} of ${Math.log(keys.length).toFixed(2)}`);
    answer.set(read.output.join(" "), `${signed(read.output[0], 1)}, ${signed(read.output[1], 1)} cm`);
    verdict.textContent = lookupVerdict(read.weights, names, query.length);
    place.dataset.query = vector.join(" ");
  }
  update();
}

function lookupVerdict(weights, names, length) {
  const order = range(weights.length).sort((a, b) => weights[b] - weights[a]);
  const [first, second] = order;
  if (length === 0) return "A query of length zero asks for nothing: every object counts the same, and the answer is their mean.";
  if (weights[first] > 0.95) return `Almost a hard lookup: the answer is the place of the ${names[first]} block.`;
  if (weights[first] - weights[second] < 0.02 && weights[first] > 0.45)
    return `The half-way trap: ${names[first]} and ${names[second]} match equally well. However long the arrow is, each gets one half, and the answer lies between them, where nothing is.`;
  return `A soft lookup: mostly ${names[first]}, with a share of the others mixed in. A longer arrow makes it harder.`;
}

const captioned = (caption, drawing) => html("figure", {}, drawing, html("figcaption", {}, caption));

function queryDial(keys, names, colours, query, changed) {
  const at = ([x, y], radius) => ({ x: radius * x, y: -radius * y });
  const spokes = keys.map((key, i) => {
    const end = at(key, RING);
    return svg("line", { x2: end.x, y2: end.y, class: "spoke", style: `stroke: ${colours[i]}` });
  });
  const blocks = keys.map((key, i) => {
    const { x, y } = at(key, RING);
    const label = at(key, RING + 21);
    return svg("g", {},
      svg("rect", { x: x - 8, y: y - 8, width: 16, height: 16, rx: 3, style: `fill: ${colours[i]}` }),
      svg("text", { x: label.x, y: label.y + 4, "text-anchor": label.x > 30 ? "start" : label.x < -30 ? "end" : "middle" }, names[i]));
  });
  const arrow = svg("line", { class: "arrow" });
  const tip = svg("circle", { r: 9, class: "tip" });
  const handle = svg("g", { class: "handle", tabindex: 0, role: "slider", "aria-label": "query arrow", "aria-valuemin": 0, "aria-valuemax": 359 },
    svg("circle", { r: 26, class: "grip" }), tip);
  const disc = svg("circle", { r: RING, class: "disc" });
  const element = svg("svg", { viewBox: "-170 -135 340 270", class: "dial" }, disc, ...spokes, ...blocks, arrow, handle);

  function follow(event) {
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(element.getScreenCTM().inverse());
    query.angle = Math.atan2(-y, x);
    query.length = Math.min(LONGEST, (LONGEST * Math.hypot(x, y)) / RING);
    changed();
  }
  const grabbed = (target) => {
    target.addEventListener("pointerdown", (event) => {
      if (target === disc && event.pointerType === "touch") return; // leave the page its scrolling
      target.setPointerCapture(event.pointerId);
      handle.focus({ preventScroll: true });
      event.preventDefault();
      follow(event);
    });
    target.addEventListener("pointermove", (event) => target.hasPointerCapture(event.pointerId) && follow(event));
  };
  // touch-action does not reach shapes inside an SVG: this keeps the page from scrolling instead.
  handle.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
  grabbed(handle);
  grabbed(disc);
  disc.addEventListener("click", follow);
  handle.addEventListener("keydown", (event) => {
    const turn = { ArrowLeft: 2, ArrowRight: -2 }[event.key] ?? 0;
    const stretch = { ArrowUp: 0.2, ArrowDown: -0.2, PageUp: 2, PageDown: -2, Home: -LONGEST, End: LONGEST }[event.key] ?? 0;
    if (!turn && !stretch) return;
    event.preventDefault();
    query.angle += (turn * Math.PI) / 180;
    query.length = Math.min(LONGEST, Math.max(0, query.length + stretch));
    changed();
  });

  function show(weights) {
    const reach = (query.length / LONGEST) * RING;
    const end = at([Math.cos(query.angle), Math.sin(query.angle)], reach);
    arrow.setAttribute("x2", end.x);
    arrow.setAttribute("y2", end.y);
    handle.setAttribute("transform", `translate(${end.x} ${end.y})`);
    spokes.forEach((spoke, i) => (spoke.style.strokeWidth = 1 + 9 * weights[i]));
    const degrees = Math.round((((query.angle * 180) / Math.PI) % 360) + 360) % 360;
    const first = weights.indexOf(Math.max(...weights));
    handle.setAttribute("aria-valuenow", degrees);
    handle.setAttribute("aria-valuetext", `${degrees} degrees, length ${query.length.toFixed(1)}: ${percent(weights[first])} on ${names[first]}`);
  }
  return { element, show };
}

function lookupTable(values, names, colours) {
  const flipped = ([x, y]) => [x, -y];
  const shape = svg("polygon", { points: hull(values).map(flipped).join(" "), class: "hull" });
  const threads = values.map((_, i) => svg("line", { class: "thread", style: `stroke: ${colours[i]}` }));
  const blocks = values.map((value, i) => {
    const [x, y] = flipped(value);
    return svg("rect", { x: x - 2, y: y - 2, width: 4, height: 4, rx: 0.6, style: `fill: ${colours[i]}` }, svg("title", {}, names[i]));
  });
  const mark = svg("g", { class: "answer" }, svg("circle", { r: 2.6 }), svg("path", { d: "M-4.5 0H4.5M0 -4.5V4.5" }));
  const element = svg("svg", { viewBox: "-51 -40.5 102 81", class: "table", role: "img", "aria-label": "the answer lies in the hull of the five places" },
    svg("rect", { x: -40, y: -40, width: 80, height: 80, rx: 1, class: "board" }), shape, ...threads, ...blocks, mark);

  function show(weights, output) {
    const [x, y] = flipped(output);
    mark.setAttribute("transform", `translate(${x} ${y})`);
    threads.forEach((thread, i) => {
      const [fromX, fromY] = flipped(values[i]);
      for (const [name, value] of Object.entries({ x1: fromX, y1: fromY, x2: x, y2: y })) thread.setAttribute(name, value);
      thread.style.strokeWidth = 3 * weights[i];
    });
  }
  return { element, show };
}
