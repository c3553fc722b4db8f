/** The entries, a page at a time, to pick one from. */

import { button, byId, el, setText } from "./dom.js";
import { entryWords, face, labelsText } from "./faces.js";
import { startRoving } from "./roving.js";
import { count, exact, same } from "./words.js";

const PAGE = 60;
const NONE = "No entry yet. They come with everhash ingest, the Python client, or POST /ingest.";
const ALL_LABELLED = "No entry is without a label.";

/**
 * @typedef {import("./faces.js").Entry} Entry
 *
 * Where a page starts, and how many entries of the kind come before it. Starts are places in the
 * order of arrival; removed entries keep theirs, so one cannot be had from the other.
 * @typedef {{start: number, before: number}} Place
 */
/** @type {Place} */
const BEGIN = { start: 0, before: 0 };

export class Entries {
  /**
   * @param {any} page
   * @param {(entry: Entry) => void} pick
   */
  constructor(page, pick) {
    this.page = page;
    this.pick = pick;
    /** @type {Place[]} the pages that were turned, the one on show last */
    this.trail = [BEGIN];
    this.total = 0;
    this.shown = 0;
    /** @type {number|null} */
    this.next = null;
    /** @type {string|null} */
    this.chosen = null;
    this.turn = 0;
    this.list = byId("entries");
    this.rove = startRoving(this.list, ".entry");
    byId("only-unlabelled").addEventListener("change", () => this.go([BEGIN]));
    byId("page-first").addEventListener("click", () => this.go([BEGIN]));
    byId("page-back").addEventListener("click", () => this.#back());
    byId("page-on").addEventListener("click", () => this.#on());
    byId("page-last").addEventListener("click", () => this.#newest());
  }

  get onlyUnlabelled() {
    return byId("only-unlabelled").checked;
  }

  get #place() {
    return this.trail[this.trail.length - 1];
  }

  #back() {
    const place = this.#place;
    const [start, before] = [place.start, place.before].map((n) => Math.max(0, n - PAGE));
    this.go(this.trail.length > 1 ? this.trail.slice(0, -1) : [{ start, before }]);
  }

  #on() {
    if (this.next === null) return;
    this.go([...this.trail, { start: this.next, before: this.#place.before + this.shown }]);
  }

  #newest() {
    const start = Math.max(0, this.total - PAGE);
    this.go([{ start, before: start }]);
  }

  /** Show a page, and say so if that fails. @param {Place[]} trail */
  async go(trail) {
    try {
      await this.load(trail);
    } catch (error) {
      setText(byId("entries-range"), /** @type {Error} */ (error).message);
    }
  }

  /** Load the page a trail ends at. @param {Place[]} [trail] */
  async load(trail = this.trail) {
    const turn = ++this.turn;
    const { entries, next, total } = await this.#ask(trail[trail.length - 1].start);
    await this.#addCodes(entries);
    if (turn !== this.turn) return; // somebody has turned the page meanwhile
    [this.trail, this.next, this.total, this.shown] = [trail, next, total, entries.length];
    this.#fill(entries);
    this.#range();
  }

  /** @param {number} start */
  #ask(start) {
    const unlabelled = this.onlyUnlabelled;
    return this.page.api.get("entries", { start, limit: PAGE, unlabelled });
  }

  /** Entries with neither picture nor text are shown by their code. @param {Entry[]} entries */
  async #addCodes(entries) {
    const bare = entries.filter(({ thumbnail, payload, labels }) => {
      return !thumbnail && payload === null && !labels.length;
    });
    if (!bare.length) return;
    const told = await this.page.api.post("get", { ids: bare.map(({ id }) => id) });
    bare.forEach((entry, i) => (entry.code = told.entries[i].code));
  }

  /**
   * Put tiles in place. Those that show the same stay, under pointer and focus.
   * @param {Entry[]} entries
   */
  #fill(entries) {
    const { list } = this;
    const tiles = /** @type {HTMLElement[]} */ ([...list.children]);
    const there = new Map(tiles.map((tile) => [tile.dataset.shows, tile]));
    entries.forEach((entry, i) => {
      const shows = `${same(entry.id)} ${same(entry.labels)}`;
      const tile = there.get(shows) ?? el("li", { "data-shows": shows }, this.#tile(entry));
      if (list.children[i] !== tile) list.insertBefore(tile, list.children[i] ?? null);
    });
    while (list.children.length > entries.length) list.lastElementChild.remove();
    const texts = entries.some(({ thumbnail, payload }) => !thumbnail && payload !== null);
    list.classList.toggle("texts", texts);
    this.rove();
  }

  /** @param {Entry} entry */
  #tile(entry) {
    const [words, plain] = [entryWords(entry), entry.labels.length === 0];
    const props = {
      class: plain ? "entry plain" : "entry",
      title: words,
      "data-id": same(entry.id),
      "aria-label": `search by ${words}`,
      "aria-pressed": String(same(entry.id) === this.chosen),
    };
    const tile = button("", props, () => this.pick(entry));
    const tag = el("span", { class: "tag", text: plain ? "?" : labelsText(entry) });
    tile.append(face(entry, this.page, 50), tag);
    return tile;
  }

  /** The collection has this many entries now. @param {any} stats */
  grown(stats) {
    const total = this.onlyUnlabelled ? stats.unlabelled : stats.entries;
    if (total === this.total) return;
    this.total = total;
    if (this.shown < PAGE || this.next === null) this.load().catch(() => {});
    else this.#range();
  }

  #range() {
    const { start, before } = this.#place;
    const range = `${exact(before + 1)}–${exact(before + this.shown)} of ${count(this.total)}`;
    setText(byId("entries-range"), this.shown ? range : "");
    byId("entries-empty").hidden = this.total > 0;
    setText(byId("entries-empty"), this.onlyUnlabelled ? ALL_LABELLED : NONE);
    byId("page-first").disabled = byId("page-back").disabled = start === 0;
    byId("page-on").disabled = this.next === null;
    byId("page-last").disabled = this.next === null || this.onlyUnlabelled;
  }

  /** Mark an entry as the one that was asked about. @param {any} id or null */
  mark(id) {
    this.chosen = id === null ? null : same(id);
    for (const tile of this.list.querySelectorAll(".entry")) {
      tile.setAttribute("aria-pressed", String(tile.dataset.id === this.chosen));
    }
  }
}
