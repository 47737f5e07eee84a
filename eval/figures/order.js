// Figure 4: dot products between positions, and whether attention notices the order of tokens.

const N_POSITIONS = 20;
const NOTICED = 1e-9; // less is rounding

function order(place, { paths }) {
  const controls = {
    positions: choice("positions", { none: "none", sinusoidal: "sinusoidal", rotary: "rotary" }, "sinusoidal", update),
    mask: choice("mask", { none: "none", causal: "causal" }, "none", update),
    width: choice("width d", { 16: "16", 64: "64", 512: "512" }, 16, update),
  };
  const settings = () => ({
    positions: controls.positions.value,
    mask: controls.mask.value,
    width: Number(controls.width.value),
  });
  const offsets = range(2 * N_POSITIONS - 1).map((i) => i - N_POSITIONS + 1);
  const words = (x) => (x === 0 ? "itself" : `${Math.abs(x)} ${x > 0 ? "back" : "ahead"}`);
  const offset = slider("look at the pairs that are apart by", offsets, 3, words, update);
  const map = heatMap((reader, read) => {
    offset.value = reader - read;
    update();
  });
  const diagonal = html("p", { class: "verdict", "aria-live": "polite" });
  const shuffle = shuffling(paths[0], settings);
  place.append(
    html("div", { class: "controls" }, ...Object.values(controls).map((control) => control.element)),
    html("h4", {}, "How well does position p match position p′?"),
    html("div", { class: "pair" },
      captioned("rows ask, columns are read; position 0 is the first of both", map.element),
      html("div", {},
        html("p", {}, "Each square is the dot product that attention sees between two positions: bluer is higher, orange is below zero. Touch a square: all pairs as far apart light up with it."),
        offset.element, diagonal)),
    html("h4", {}, "Does it notice the order?"),
    shuffle.element,
  );

  function update() {
    const now = settings();
    const scores = positionScores(now);
    const visible = (reader, read) => mayRead(now.mask, 0, reader, read);
    map.show(scores, visible, offset.value);
    const along = range(N_POSITIONS)
      .map((reader) => [reader, reader - offset.value])
      .filter(([, read]) => read >= 0 && read < N_POSITIONS)
      .map(([reader, read]) => scores[reader][read]);
    const spread = Math.max(...along) - Math.min(...along);
    Object.assign(diagonal.dataset, { value: along[0], spread });
    diagonal.textContent = diagonalVerdict(now, offset.value, along, spread);
    shuffle.update();
  }
  update();
}

// The same query and the same key at every position, so that only the position can matter.
const fixedQuery = (width) => range(width).map((j) => Math.sin(1 + j));
const fixedKey = (width) => range(width).map((j) => Math.sin(2 + 0.9 * j));

function positionScores({ positions, width }) {
  const place = {
    none: () => [fixedQuery(width), fixedKey(width)],
    sinusoidal: (p) => [sinusoidal(p, width), sinusoidal(p, width)],
    rotary: (p) => [rotated(fixedQuery(width), p), rotated(fixedKey(width), p)],
  }[positions];
  const placed = range(N_POSITIONS).map(place);
  return placed.map(([query]) => placed.map(([, key]) => dot(query, key)));
}

function diagonalVerdict({ positions, mask }, offset, along, spread) {
  if (mask === "causal" && offset < 0) return "The causal mask forbids to look ahead: these pairs never meet.";
  const same = spread < NOTICED ? "the same for all of them, to the last digits" : `spread over ${spread.toPrecision(2)}`;
  const score = `Dot product of these ${along.length} pairs: ${signed(along[0], 3)}, ${same}.`;
  if (positions === "none") return `${score} Without positions every pair looks alike, near or far.`;
  return `${score} Only the distance counts, not the place.`;
}

function heatMap(chosen) {
  const cell = 10;
  const squares = range(N_POSITIONS).map((reader) =>
    range(N_POSITIONS).map((read) => svg("rect", { x: cell * read, y: cell * reader, width: cell - 0.6, height: cell - 0.6, rx: 1 })));
  const size = cell * N_POSITIONS;
  const element = svg("svg", { viewBox: `-1 -1 ${size + 2} ${size + 2}`, class: "heat", role: "img", "aria-label": "dot products between positions" }, ...squares.flat());
  const pick = (event) => {
    const index = squares.flat().indexOf(event.target);
    if (index >= 0) chosen(Math.floor(index / N_POSITIONS), index % N_POSITIONS);
  };
  element.addEventListener("click", pick);
  element.addEventListener("pointermove", (event) => event.pointerType === "mouse" && pick(event));

  function show(scores, visible, offset) {
    const highest = Math.max(...scores.flat().map(Math.abs));
    squares.forEach((row, reader) =>
      row.forEach((square, read) => {
        const share = Math.round((100 * Math.abs(scores[reader][read])) / highest);
        const hue = scores[reader][read] < 0 ? "--series-2" : "--series-0";
        square.style.fill = `color-mix(in srgb, var(${hue}) ${share}%, var(--card))`;
        square.classList.toggle("hidden", !visible(reader, read));
        square.classList.toggle("chosen", reader - read === offset);
        square.dataset.value = scores[reader][read];
      }));
  }
  return { element, show };
}

// Waypoints of the arm's way to a block, read by one attention layer without weights.
function shuffling({ waypoints, block }, settings) {
  const recorded = range(waypoints.length);
  let sequence = recorded.slice().reverse();
  const map = pathMap(waypoints, block);
  const tokens = html("ol", { class: "waypoints", "aria-label": "how far the result of each waypoint moves" });
  const verdict = html("p", { class: "verdict", "aria-live": "polite" });
  const put = (change) => () => {
    sequence = change(recorded);
    update();
  };
  const element = html("div", {},
    html("p", {}, `${recorded.length} waypoints of the arm's way to a block go through one attention layer. Read them in another order: the bars show how far the result of each one moves.`),
    html("div", { class: "buttons" },
      button("as recorded (reach)", put((tokens) => tokens)),
      button("reversed (retreat)", put((tokens) => tokens.slice().reverse())),
      button("shuffle", put(shuffled))),
    html("div", { class: "pair" }, captioned("the way to the block; the line is the order of reading", map.element), html("div", {}, tokens, verdict)));

  function update() {
    const now = settings();
    const before = attended(waypoints, recorded, now);
    const after = attended(waypoints, sequence, now);
    const moved = sequence.map((token, i) =>
      Math.max(...after[i].map((x, j) => Math.abs(x - before[token][j]))));
    const largest = Math.max(...moved);
    tokens.replaceChildren(...sequence.map((token, i) => {
      const bar = html("i", { style: `height: ${largest > NOTICED ? (100 * moved[i]) / largest : 0}%` });
      return html("li", { "data-value": moved[i] }, html("div", {}, bar), html("span", {}, `${token + 1}`));
    }));
    map.show(sequence);
    Object.assign(element.dataset, { order: sequence.join(" "), value: largest });
    verdict.textContent = shuffleVerdict(sequence, largest);
  }
  return { element, update };
}

function pathMap(waypoints, block) {
  const places = [...waypoints, block].map(([x, y]) => [x, -y]);
  const [low, high] = [Math.min, Math.max].map((pick) => [0, 1].map((axis) => pick(...places.map((place) => place[axis]))));
  const margin = 0.09 * Math.max(high[0] - low[0], high[1] - low[1]);
  const box = [low[0] - margin, low[1] - margin, high[0] - low[0] + 2 * margin, high[1] - low[1] + 2 * margin];
  const unit = margin / 2.3; // radius of a waypoint
  const line = svg("polyline", { class: "reading", "stroke-width": unit / 4 });
  const dots = waypoints.map((_, i) => svg("g", { transform: `translate(${places[i]})` },
    svg("circle", { r: 0.8 * unit }), svg("text", { y: 0.38 * unit, "font-size": 1.05 * unit }, `${i + 1}`)));
  const [x, y] = places.at(-1);
  const goal = svg("rect", { x: x - unit, y: y - unit, width: 2 * unit, height: 2 * unit, rx: unit / 4, class: "goal" });
  const element = svg("svg", { viewBox: box.join(" "), class: "path", role: "img", "aria-label": "waypoints and block from above" }, goal, line, ...dots);
  return { element, show: (sequence) => line.setAttribute("points", sequence.map((token) => places[token]).join(" ")) };
}

function shuffled(tokens) {
  const order = tokens.map((token) => [Math.random(), token]).sort((a, b) => a[0] - b[0]);
  return order.map(([, token]) => token);
}

function shuffleVerdict(sequence, largest) {
  if (sequence.every((token, i) => token === i)) return "The order as recorded: press a button to change it.";
  if (largest < NOTICED) return "Not noticed: each waypoint gets the same result as before, wherever it stands. Reach and retreat are the same set of points, so they look the same.";
  return `Noticed: results move by up to ${largest.toFixed(2)}. The same points in another order are something else.`;
}

// A place in cm as a token of any width: waves of x and y.
const placeToken = ([x, y], width) =>
  range(width).map((j) => Math.sin((1 + (j % 7)) * x / 10 + (1 + (j % 5)) * y / 10 + j));

function attended(waypoints, sequence, { positions, mask, width }) {
  const tokens = sequence.map((token, position) => {
    const content = placeToken(waypoints[token], width);
    return positions === "sinusoidal" ? sinusoidal(position, width).map((x, j) => x + content[j]) : content;
  });
  const turned = positions === "rotary" ? tokens.map(rotated) : tokens;
  return tokens.map((_, i) => attend(turned[i], turned, tokens, (j) => mayRead(mask, 0, i, j)).output);
}
