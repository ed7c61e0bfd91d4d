// Reads the JSON of `oddslip export --to json`, maps scores and ranks labels. Plain JavaScript.
// Node: const { readMaps } = require("./read_maps.js"); readMaps(text).rank(scores, 7)
const CLIP = 1e-12;
const LOWEST = -Number.MAX_VALUE; // labels that are not excluded stay above -Infinity

function readMaps(text) {
  const maps = JSON.parse(text);
  if (maps.schema !== "oddslip.maps/1") throw new Error(`unknown schema ${maps.schema}`);
  const margin = maps.kind === "margin", odds = maps.scale === "log_odds";
  const inside = (p) => Math.min(Math.max(p, CLIP), 1 - CLIP);
  const logOdds = (s) => (margin ? s : Math.log(inside(s) / (1 - inside(s))));
  const sigmoid = (z) => {
    const small = Math.exp(-Math.abs(z));
    return (z >= 0 ? 1 : small) / (1 + small);
  };

  function interpolate({ x, y }, score) {
    let at = 0; // the last knot at or below the score, or the first one
    for (let low = 0, high = x.length; low < high; ) {
      const middle = (low + high) >> 1;
      if (x[middle] <= score) [at, low] = [middle, middle + 1]; else high = middle;
    }
    if (maps.step || at + 1 === x.length) return y[at];
    const slope = (y[at + 1] - y[at]) / (x[at + 1] - x[at]);
    const value = slope * (Math.max(score, x[at]) - x[at]) + y[at];
    return value >= y[at] ? Math.min(value, y[at + 1]) : y[at];
  }

  function beta({ a, b, c }, s) {
    if (!margin) return a * Math.log(inside(s)) - b * Math.log1p(-inside(s)) + c;
    const tail = Math.log1p(Math.exp(-Math.abs(s)));
    return b * (Math.max(s, 0) + tail) - a * (Math.max(-s, 0) + tail) + c;
  }

  function value(label, s) { // what labels are compared by
    if (label.form === "knots") return interpolate(maps.knots[label.knots], s);
    if (label.form === "constant") return Number(label.value);
    if (label.form === "excluded") return -Infinity;
    if (label.form === "affine") return Math.max(label.a * logOdds(s) + label.b, LOWEST);
    if (label.form === "beta") return Math.max(beta(label, s), LOWEST);
    return odds ? logOdds(s) : margin ? sigmoid(s) : s; // identity
  }

  function probability(label, s) {
    if (label.form === "constant") return label.probability;
    if (label.form === "excluded") return 0;
    if (label.form === "identity" && !margin) return s;
    return odds ? sigmoid(value(label, s)) : value(label, s);
  }

  const transform = (row) => row.map((s, j) => probability(maps.labels[j], s));
  // Label indices, best first; equal values by the lower index. A null is no candidate.
  const rank = (row, k) =>
    row.map((s, j) => [s === null ? null : value(maps.labels[j], s), j])
      .filter(([v]) => v !== null).sort(([v, i], [w, j]) => (v > w ? -1 : v < w ? 1 : i - j))
      .slice(0, k).map(([, j]) => j);
  return { ...maps, transform, rank };
}

module.exports = { readMaps };
