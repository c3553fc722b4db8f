/**
 * The ternary code matrix: a row for each label in order of arrival, a column for each bit of all
 * cycles. Only the part in view is drawn, so thousands of labels cost no more than a screenful.
 */

import { byId, hear, setText, sized } from "./dom.js";
import { MatrixMap } from "./matrix_map.js";
import { HEAD, paint } from "./matrix_paint.js";
import { count, counted, entriesCounted, labelText, share, signs } from "./texts.js";

const CELL = [4, 32]; // narrowest and widest, in pixels
const ROW = [15, 27]; // lowest and highest row
const FILLED = 280; // height that few labels spread over
const TALLEST = 440;
const IDLE = "Point at a row or touch it, or focus it and use the arrow keys.";

export class Matrix {
  /** @param {import("./labels.js").Labels} labels */
  constructor(labels) {
    this.labels = labels;
    this.bits = 0;
    this.cycles = 0;
    this.longest = 1; // characters of the longest label
    this.at = { row: -1, bit: -1 };
    /** @type {Map<number, number>} when each new row arrived */
    this.young = new Map();
    this.was = 0; // where the view stood before it was scrolled
    this.asked = false;
    this.view = byId("matrix-view");
    this.canvas = byId("matrix-canvas");
    this.map = new MatrixMap(this.view);
    this.#listen();
    this.#tell();
  }

  #listen() {
    const { labels, view } = this;
    hear(labels, "grown", ({ first }) => this.#grown(first));
    labels.addEventListener("counted", () => this.#tell());
    view.addEventListener("scroll", () => this.#scrolled());
    view.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => this.#point(event));
    view.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => this.#point(event));
    view.addEventListener("pointerleave", (/** @type {PointerEvent} */ { pointerType }) => {
      if (pointerType === "mouse") this.#move(-1, -1); // what was touched stays
    });
    view.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.#key(event));
    view.addEventListener("blur", () => this.#move(-1, -1));
    new ResizeObserver(() => this.layout()).observe(byId("matrix"));
  }

  /** @param {any} stats */
  show(stats) {
    const [bits, cycles] = [stats.bits ?? 0, stats.cycles ?? 0];
    const changed = bits !== this.bits || cycles !== this.cycles;
    [this.bits, this.cycles] = [bits, cycles];
    this.#explainNothing(stats);
    if (changed) this.layout();
  }

  /** @param {any} stats */
  #explainNothing(stats) {
    const { list } = this.labels;
    const wordless = list.length > 0 && !list.some((label) => label.codeword);
    const nothing = !stats.labels || wordless;
    byId("matrix").hidden = nothing;
    byId("matrix-told").hidden = nothing;
    byId("matrix-text").hidden = nothing;
    byId("matrix-empty").hidden = !nothing;
    const none = "No label yet. Each gets a row here with its first lesson.";
    const why = wordless ? `The method ${stats.method} gives labels no codewords.` : none;
    setText(byId("matrix-empty"), why);
  }

  /** @param {number} first */
  #grown(first) {
    const { list } = this.labels;
    const { scrollTop, clientHeight, scrollHeight } = this.view;
    const atEnd = scrollTop + clientHeight >= scrollHeight - 4;
    const now = performance.now();
    if (first > 0) for (let row = first; row < list.length; row++) this.young.set(row, now);
    const lengths = list.slice(0, 300).map(({ label }) => labelText(label).length);
    this.longest = Math.max(1, ...lengths);
    this.cycles = Math.max(this.cycles, list.length ? list[list.length - 1].cycle + 1 : 0);
    this.layout();
    if (first > 0 && atEnd) this.view.scrollTop = this.view.scrollHeight;
  }

  /** Where everything stands. @returns {import("./matrix_paint.js").Place} */
  #place() {
    const n = this.labels.list.length;
    const { bits, cycles } = this;
    const [width, room] = [bits * cycles, this.view.clientWidth];
    const gutter = Math.min(Math.round(this.longest * 6.6) + 14, room < 500 ? 84 : 150);
    const cell = within(CELL, (room - gutter) / Math.max(1, width));
    const row = within(ROW, Math.floor(FILLED / Math.max(1, n)));
    return { n, bits, cycles, width, gutter, cell, row, room };
  }

  /** Give the view its size; the canvas keeps the size of what is seen. */
  layout() {
    const { n, width, gutter, cell, row } = this.#place();
    setText(byId("codes-size"), n ? this.#words(n, width) : "");
    const height = HEAD + n * row;
    this.view.style.height = `${Math.min(TALLEST, height)}px`;
    byId("matrix-space").style.width = `${Math.ceil(gutter + width * cell - 0.01)}px`;
    byId("matrix-space").style.height = `${height}px`;
    this.draw();
  }

  /** @param {number} n @param {number} width */
  #words(n, width) {
    const { cut, total } = this.labels;
    const shown = cut ? `first ${count(n)} of ${count(total)} labels` : counted(n, "label");
    return `${shown} × ${counted(width, "bit")}`;
  }

  /** Draw at the next frame, once. */
  draw() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.#draw();
    });
  }

  #draw() {
    const place = this.#place();
    const { clientWidth: wide, clientHeight: tall, scrollLeft: left, scrollTop: top } = this.view;
    if (!wide || !tall || !place.width) return;
    const { at, young } = this;
    const pen = sized(this.canvas, wide, tall);
    paint(pen, this.labels.list, place, { left, top, tall, at, young });
    this.map.draw(this.labels.list, HEAD + place.n * place.row);
    if (young.size) this.draw();
  }

  #scrolled() {
    this.#follow();
    this.draw();
  }

  /** Codewords stand on a staircase: keep the stairs in view while going down. */
  #follow() {
    const { scrollTop, clientHeight } = this.view;
    if (scrollTop === this.was) return;
    this.was = scrollTop;
    const { gutter, cell, row, room, width, n } = this.#place();
    if (width * cell <= room - gutter) return;
    const line = Math.min(n - 1, Math.floor((scrollTop + clientHeight / 2) / row));
    const middle = this.labels.list[line];
    this.view.scrollLeft = (middle.cycle + 0.5) * this.bits * cell - (room - gutter) / 2;
  }

  /** @param {PointerEvent} event */
  #point(event) {
    const box = this.view.getBoundingClientRect();
    const { gutter, cell, row, n, width } = this.#place();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const line = Math.floor((y + this.view.scrollTop - HEAD) / row);
    const bit = Math.floor((x + this.view.scrollLeft - gutter) / cell);
    const inside = y > HEAD && line < n;
    this.#move(inside ? line : -1, inside && x >= gutter && bit < width ? bit : -1);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const { n, width, row: tall } = this.#place();
    const page = Math.max(1, Math.floor(this.view.clientHeight / tall) - 2);
    /** @type {Object<string, number>} */
    const rows = { ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page, Home: -n, End: n };
    const bits = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!n || !(event.key in rows || bits)) return;
    event.preventDefault();
    const begun = this.at.row >= 0;
    const start = event.key === "End" ? n - 1 : 0;
    const row = within([0, n - 1], begun ? this.at.row + (rows[event.key] ?? 0) : start);
    const first = this.labels.list[row].cycle * this.bits;
    const next = this.at.bit < 0 ? first : within([0, width - 1], this.at.bit + (bits ?? 0));
    this.#move(row, bits ? next : -1);
    this.#reveal(row, bits ? next : first);
  }

  /** Scroll to a cell. @param {number} row @param {number} bit */
  #reveal(row, bit) {
    const { gutter, cell, row: tall, room } = this.#place();
    const { view } = this;
    const y = row * tall;
    if (y < view.scrollTop) view.scrollTop = y;
    const bottom = HEAD + y + tall - view.clientHeight;
    if (bottom > view.scrollTop) view.scrollTop = bottom;
    const [x, wide] = [bit * cell, room - gutter];
    const seen = x >= view.scrollLeft && x + cell <= view.scrollLeft + wide;
    if (!seen) view.scrollLeft = x - wide / 2;
  }

  /** @param {number} row @param {number} bit */
  #move(row, bit) {
    if (row === this.at.row && bit === this.at.bit) return;
    this.at = { row, bit };
    this.#tell();
    this.draw();
  }

  /** Say what is pointed at. */
  #tell() {
    const label = this.labels.list[this.at.row];
    setText(byId("matrix-told"), label ? this.#about(label) : IDLE);
  }

  /** @param {import("./labels.js").Label} label */
  #about(label) {
    const { bit } = this.at;
    const value = label.codeword?.[bit - label.cycle * this.bits];
    const sign = value === undefined ? "inactive" : value > 0 ? "+1" : "−1";
    const parts = [labelText(label.label), `cycle ${label.cycle}`];
    if (bit >= 0) parts.push(`bit ${bit}: ${sign}`);
    parts.push(entriesCounted(label.entries));
    if (label.lessons !== null) parts.push(counted(label.lessons, "lesson"));
    if (label.accuracy !== null) parts.push(`accuracy ${share(label.accuracy)}`);
    parts.push(`word ${label.codeword ? signs(label.codeword) : "none"}`);
    return parts.join(" · ");
  }
}

/** @param {number[]} bounds @param {number} value */
function within([least, most], value) {
  return Math.max(least, Math.min(most, value));
}
