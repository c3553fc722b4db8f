/** Numbers, labels, ids and payloads as people read them. */

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** @type {[number, string][]} */
const BYTES = [
  [1e12, "TB"],
  [1e9, "GB"],
  [1e6, "MB"],
  [1e3, "kB"],
];
/** @type {[number, string][]} */
const COUNTS = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
];

/**
 * 1200 -> "1,200", 1234567 -> "1.2 M"
 * @param {number|null|undefined} n
 */
export function count(n) {
  return scaled(n, COUNTS) ?? exact(n);
}

/**
 * 163840 -> "163.8 kB"
 * @param {number|null|undefined} n
 */
export function bytes(n) {
  return scaled(n, BYTES) ?? (Number.isFinite(n) ? `${exact(n)} bytes` : "–");
}

/** @param {number|null|undefined} n @param {[number, string][]} units */
function scaled(n, units) {
  const unit = units.find(([power]) => (n ?? 0) >= power);
  return unit ? `${((n ?? 0) / unit[0]).toFixed(1)} ${unit[1]}` : null;
}

/**
 * A number in full.
 * @param {number|null|undefined} n
 */
export function exact(n) {
  return n === null || n === undefined ? "–" : whole.format(n);
}

/**
 * counted(1, "entry", "entries") -> "1 entry"
 * @param {number} n
 * @param {string} one
 * @param {string} [many]
 */
export function counted(n, one, many = `${one}s`) {
  return `${whole.format(n)} ${n === 1 ? one : many}`;
}

/** "1,200 entries" @param {number} n */
export function entriesCounted(n) {
  return counted(n, "entry", "entries");
}

/**
 * 0.94 -> "94.0 %"; "" where it is not known
 * @param {number|null|undefined} x
 */
export function share(x) {
  if (x === null || x === undefined) return "";
  return `${(100 * x).toFixed(x === 1 ? 0 : 1)} %`;
}

/**
 * Distances and novelty: four digits are enough to compare them.
 * @param {number|null} x
 */
export function measure(x) {
  if (x === null) return "–";
  const digits = Math.abs(x) >= 1000 || Number.isInteger(x) ? 0 : Math.abs(x) >= 100 ? 1 : 2;
  return x.toFixed(digits).replace("-", "−");
}

/** Ways of searching by name, as they read in a sentence. @type {Object<string, string>} */
export const WAYS = {
  relevance: "relevance",
  meaning: "meaning",
  likeness: "likeness",
  asymmetric: "asymmetric distance",
  hamming: "Hamming distance",
};

/** Ways of searching whose score is a share: the larger, the better. */
const SHARES = new Set(["relevance", "meaning", "likeness"]);

/**
 * A score: a probability or a cosine as "0.93", a distance as it is.
 * @param {number|null} score
 * @param {string} by the way that was searched
 */
export function scoreText(score, by) {
  return score !== null && SHARES.has(by) ? cosineText(score) : measure(score);
}

/** A cosine, or a probability. @param {number} x */
export function cosineText(x) {
  return x.toFixed(2).replace("-", "−");
}

/** What a score says. @param {string} by the way that was searched */
export function scoreMeaning(by) {
  if (by === "relevance" || by === "meaning") return "the chance of having the query's label";
  if (by === "likeness") return "the cosine to the query, at most 1";
  return "smaller is nearer";
}

/**
 * A rate a second.
 * @param {number} x
 */
export function rate(x) {
  return x >= 10 || x === 0 ? whole.format(x) : x.toFixed(1);
}

/**
 * A label as text; those that are neither text nor number come as an object.
 * @param {any} label
 * @returns {string}
 */
export function labelText(label) {
  if (label === null || label === undefined) return "no label";
  if (typeof label !== "object") return String(label);
  if (Array.isArray(label.tuple)) return `(${label.tuple.map(labelText).join(", ")})`;
  return typeof label.bytes === "string" ? `0x${label.bytes}` : JSON.stringify(label);
}

/** What is said of an entry: "is cat, red", "has no label". @param {any[]} labels */
export function labelled(labels) {
  return labels.length ? `is ${labels.map(labelText).join(", ")}` : "has no label";
}

/**
 * What makes two labels or ids, or lists of them, the same: 7 and "7" are two.
 * @param {any} value
 */
export function same(value) {
  return JSON.stringify(value, (_name, part) =>
    // @ts-ignore: whoever reads a BigInt from JSON can write it so
    typeof part === "bigint" ? JSON.rawJSON(String(part)) : part,
  );
}

/**
 * A row that a payload carries under "vector", if it has as many numbers as it should.
 * @param {any} payload
 * @param {number|undefined} dim
 * @returns {number[]|null}
 */
export function payloadVector(payload, dim) {
  const row = payload && typeof payload === "object" ? payload.vector : null;
  return Array.isArray(row) && row.length === dim && row.every(Number.isFinite) ? row : null;
}

/**
 * What a payload says in a line; "" if it says nothing.
 * @param {any} payload
 * @returns {string}
 */
export function payloadText(payload) {
  if (payload === null || payload === undefined) return "";
  if (typeof payload !== "object") return String(payload);
  if (Array.isArray(payload)) return payload.map(payloadText).join(", ");
  const title = [payload.text, payload.title, payload.name].find((it) => typeof it === "string");
  if (title !== undefined) return title;
  const told = Object.entries(payload).filter(([name]) => name !== "vector");
  const written = (/** @type {any} */ value) =>
    value && typeof value === "object" ? JSON.stringify(value) : String(value);
  return told.map(([name, value]) => `${name}: ${written(value)}`).join(" · ");
}

/**
 * A word as signs.
 * @param {ArrayLike<number>} word
 */
export function signs(word) {
  return Array.from(word, (bit) => (bit > 0 ? "+" : bit < 0 ? "−" : "·")).join("");
}
