// The lesson's formulas, as in fetchlab's Python; a test compares the two.

const sum = (numbers) => numbers.reduce((total, x) => total + x, 0);
const dot = (a, b) => a.reduce((total, x, i) => total + x * b[i], 0);
const range = (n) => Array.from({ length: n }, (_, i) => i);

function softmax(scores) {
  const highest = Math.max(...scores); // exp of a large score would overflow
  const raised = scores.map((score) => Math.exp(score - highest));
  const total = sum(raised);
  return raised.map((x) => x / total);
}

// One query over keys and values; `allowed(i)` says whether it may read key i.
function attend(query, keys, values, allowed = () => true) {
  const scores = keys.map((key, i) => (allowed(i) ? dot(query, key) / Math.sqrt(query.length) : -Infinity));
  const weights = softmax(scores);
  const output = values[0].map((_, axis) => sum(values.map((value, i) => weights[i] * value[axis])));
  return { scores, weights, output };
}

const entropy = (weights) => sum(weights.map((w) => (w > 0 ? -w * Math.log(w) : 0)));

// Corners of the smallest convex shape around the points, anticlockwise.
function hull(points) {
  const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const turn = (o, a, b) => (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0]);
  const half = (line) => {
    const chain = [];
    for (const point of line) {
      while (chain.length > 1 && turn(chain.at(-2), chain.at(-1), point) <= 0) chain.pop();
      chain.push(point);
    }
    return chain.slice(0, -1);
  };
  return [...half(sorted), ...half(sorted.reverse())];
}

const frequencies = (width) => range(width / 2).map((i) => 10000 ** (-2 * i / width));

// Sine and cosine of the position in every frequency.
const sinusoidal = (position, width) =>
  frequencies(width).flatMap((w) => [Math.sin(w * position), Math.cos(w * position)]);

// Each pair of numbers turned by position times its frequency.
const rotated = (vector, position) =>
  frequencies(vector.length).flatMap((w, i) => {
    const [x, y] = [vector[2 * i], vector[2 * i + 1]];
    const [c, s] = [Math.cos(w * position), Math.sin(w * position)];
    return [x * c - y * s, x * s + y * c];
  });

// May token `reader` read token `read`?
function mayRead(mask, prefix, reader, read) {
  if (mask === "none") return true;
  return read <= reader || (mask === "block" && reader < prefix && read < prefix);
}

// Score cells to generate a sequence of n tokens, of which the first `prefix` come in one piece.
function generationWork(n, prefix) {
  const steps = range(n - prefix + 1).map((t) => prefix + t); // lengths of the sequence
  const without = sum(steps.map((t) => t * t));
  return { without, cached: prefix * prefix + sum(steps.slice(1)) };
}

// Operations of one layer for n tokens of d numbers.
const layerFlops = (n, d) => ({ projections: 8 * n * d * d, mlp: 16 * n * d * d, attention: 4 * n * n * d });
