/** All labels the collection knows, in order of arrival, loaded a page at a time as they come. */

import { labelText, same } from "./texts.js";

const PAGE = 1000;
const MOST = 20_000; // beyond that the page shows the first ones and says so

/**
 * @typedef {{label: any, cycle: number, entries: number, lessons: number|null,
 *   accuracy: number|null, codeword: Int8Array|null}} Label
 */

/** Dispatches `grown` (new labels) and `counted` (how labels stand has changed). */
export class Labels extends EventTarget {
  /** @param {import("./api.js").Api} api */
  constructor(api) {
    super();
    this.api = api;
    this.total = 0;
    /** @type {Label[]} */
    this.list = [];
    /** @type {Map<string, Label>} */
    this.known = new Map();
    /** @type {Promise<void>|null} */
    this.loading = null;
    /** Labels whose counts may be old, from `counted` on and round again. */
    this.old = 0;
    this.counted = 0;
  }

  /** Whether there are more than the page shows. */
  get cut() {
    return this.total > this.list.length && this.list.length >= MOST;
  }

  /** Rows learned of all labels; null where the method does not count them, or not all are here. */
  get lessons() {
    if (this.list.length < this.total) return null;
    let sum = 0;
    for (const { lessons } of this.list) {
      if (lessons === null) return null;
      sum += lessons;
    }
    return sum;
  }

  /** Bring the list up to this many labels. @param {number} total */
  async reach(total) {
    if (total < this.list.length) this.#clear(); // another collection took this one's place
    this.total = Math.max(total, this.list.length);
    if (this.list.length >= Math.min(total, MOST)) return;
    this.loading ??= this.#load().finally(() => (this.loading = null));
    await this.loading;
  }

  /** Wait for labels that are on their way; those that do not come are nobody's trouble here. */
  async arrived() {
    await this.loading?.catch(() => {});
  }

  /**
   * Show something now, and again when labels come, as long as its node is on the page.
   * @param {Node} node
   * @param {() => void} show
   */
  keepShowing(node, show) {
    const again = () => {
      if (node.isConnected) show();
      else this.removeEventListener("grown", again);
    };
    this.addEventListener("grown", again);
    show();
  }

  /** Read all again: labels were renamed, or some are gone. */
  async reload() {
    await this.arrived();
    this.#clear();
    await this.reach(this.total);
  }

  async #load() {
    for (;;) {
      const first = this.list.length;
      const told = await this.api.get("labels", { start: first, limit: PAGE });
      told.labels.forEach((/** @type {any} */ label) => this.#take(label));
      this.total = told.total;
      if (this.list.length > first) this.#tell("grown", { first });
      if (!told.labels.length || this.list.length >= Math.min(told.total, MOST)) return;
    }
  }

  /** Something has changed, so any label may stand otherwise. */
  outdated() {
    this.old = this.list.length;
  }

  /** Ask again how some labels stand. @returns {Promise<boolean>} whether others are left */
  async recount() {
    if (!this.list.length || this.loading) return this.old > 0;
    const start = this.counted < this.list.length ? this.counted : 0;
    this.counted = start + PAGE;
    this.old = Math.max(0, this.old - PAGE);
    const told = await this.api.get("labels", { start, limit: PAGE });
    for (const { label, entries, lessons, accuracy } of told.labels) {
      const known = this.known.get(same(label));
      if (known) Object.assign(known, { entries, lessons, accuracy });
    }
    this.#tell("counted", {});
    return this.old > 0;
  }

  /** @param {string} type @param {any} detail */
  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  /** @param {any} told */
  #take(told) {
    const label = { ...told, codeword: told.codeword && Int8Array.from(told.codeword) };
    this.list.push(label);
    this.known.set(same(told.label), label);
  }

  #clear() {
    this.list = [];
    this.known.clear();
    this.#tell("grown", { first: 0 });
  }

  /**
   * The label that somebody means by a text: a known one that reads so, else the text itself.
   * @param {string} text
   */
  meant(text) {
    if (this.known.has(same(text))) return text;
    return this.list.find(({ label }) => labelText(label) === text)?.label ?? text;
  }

  /** The word of a label, or null. @param {any} label */
  word(label) {
    return this.known.get(same(label))?.codeword ?? null;
  }
}
