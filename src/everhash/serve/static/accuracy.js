/** Accuracy of the stream as it goes: each new row is judged before it is learned. */

import { byId, hear, setText } from "./dom.js";
import { counted, exact, share } from "./texts.js";

const RECENT = 200; // scored rows that the line looks back on
const ENOUGH = 20; // rows below which a share says nothing
const NONE = "No row was judged yet: that needs a label that was learned before.";
const UNKNOWN = "This method keeps no record of it.";

/** @typedef {[number, number]} Point scored rows so far, and how many of them were right */

export class Accuracy {
  /** @param {import("./stream.js").Stream} stream */
  constructor(stream) {
    /** @type {Point[]} */
    this.points = [];
    this.none = NONE; // why there is nothing to show
    hear(stream, "accuracy", ({ points }) => {
      this.points = points;
      this.#draw();
    });
  }

  /** Take the newest numbers. @param {any} stats */
  show({ learned }) {
    if (learned) this.#add([learned.scored_rows, learned.scored_rows * (learned.accuracy ?? 0)]);
    this.none = learned ? NONE : UNKNOWN;
    this.#draw();
  }

  /** @param {Point} point */
  #add([scored, right]) {
    const last = this.points[this.points.length - 1];
    if (last && scored < last[0]) this.points = []; // another record took its place
    if (!last || scored !== last[0]) this.points.push([scored, Math.round(right)]);
  }

  #draw() {
    const line = recent(this.points);
    const [scored, right] = this.points[this.points.length - 1] ?? [0, 0];
    const now = line[line.length - 1];
    const overall = `${share(right / scored)} of all ${counted(scored, "judged row")}`;
    const all = scored ? overall : this.none;
    setText(byId("accuracy-now"), now ? share(now.share) : scored ? share(right / scored) : "–");
    const rows = now ? `of the last ${exact(now.rows)} rows` : `of ${counted(scored, "row")}`;
    setText(byId("accuracy-rows"), scored ? rows : "");
    setText(byId("accuracy-span"), now || !scored ? all : "The line begins with the next rows.");
    byId("accuracy-chart").hidden = line.length < 2;
    if (line.length > 1) plot(line, all);
  }
}

/**
 * How the rows shortly before each point fared.
 * @param {Point[]} points
 * @returns {{at: number, rows: number, share: number}[]}
 */
export function recent(points) {
  const line = [];
  /** @type {Point[]} from the beginning, if that is near enough */
  const known = points.length && points[0][0] <= RECENT ? [[0, 0], ...points] : points;
  let from = 0;
  for (const [scored, right] of known) {
    while (known[from + 1] && scored - known[from + 1][0] >= RECENT) from++;
    const rows = scored - known[from][0];
    const share = (right - known[from][1]) / rows;
    if (rows >= ENOUGH) line.push({ at: scored, rows, share });
  }
  return line;
}

/** @param {{at: number, share: number}[]} line @param {string} all */
function plot(line, all) {
  const [first, last] = [line[0].at, line[line.length - 1].at];
  const least = Math.min(...line.map((point) => point.share));
  const bottom = Math.max(0, Math.floor(10 * (least - 0.02)) / 10);
  const points = line.map((point) => {
    const x = (100 * (point.at - first)) / (last - first);
    const y = 2 + (96 * (1 - point.share)) / (1 - bottom);
    return `${x.toFixed(2)} ${y.toFixed(2)}`;
  });
  byId("accuracy-line").setAttribute("d", `M${points.join("L")}`);
  byId("accuracy-grid").setAttribute("d", "M0 2H100M0 50H100M0 98H100");
  setText(byId("accuracy-top"), "100 %");
  setText(byId("accuracy-bottom"), `${Math.round(100 * bottom)} %`);
  const now = share(line[line.length - 1].share);
  const ends = `from ${exact(first)} to ${exact(last)} judged rows`;
  byId("accuracy-plot").setAttribute("aria-label", `accuracy ${ends}: ${now} now, ${all}`);
}
