/** The entries, a page at a time or those that fit what somebody looks for, to pick one from. */

import { button, byId, el, setText } from "./dom.js";
import { entryWords, face, labelsText } from "./faces.js";
import { startRoving } from "./roving.js";
import { count, exact, labelText, same } from "./texts.js";

const PAGE = 60;
const PATIENCE = 3000; // milliseconds that a look through many entries goes on by itself
const ALL_LABELLED = "No entry is without a label.";
const NOT_YET = "Nothing so far.";

/**
 * @typedef {import("./faces.js").Entry} Entry
 * @typedef {{text: string, label?: any}} Wanted
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
    /** @type {Wanted} what is looked for */
    this.wanted = { text: "" };
    /** @type {Entry[]} */
    this.entries = [];
    /** @type {number|null} entries of the kind; null where nobody has counted */
    this.total = 0;
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
    byId("entries-more").addEventListener("click", () => this.go(this.trail, true));
  }

  /** Whether something is looked for. */
  get #looks() {
    return this.wanted.text !== "" || this.wanted.label !== undefined;
  }

  /** Show those that fit. @param {Wanted} wanted */
  look(wanted) {
    this.wanted = wanted;
    return this.go([BEGIN]);
  }

  /** Pick the first entry on show, or go down to it. @param {boolean} down */
  first(down) {
    const tile = this.list.querySelector(".entry");
    if (down) tile?.focus();
    else tile?.click();
  }

  /** Pick one at random. */
  async any() {
    const { api, stats } = this.page;
    const start = Math.floor(Math.random() * (stats?.arrived ?? 0));
    const unlabelled = this.onlyUnlabelled;
    for (const from of [start, 0]) {
      const { entries } = await api.get("entries", { start: from, limit: 1, unlabelled });
      if (entries.length) return this.pick(entries[0]);
    }
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
    const before = this.#place.before + this.entries.length;
    this.go([...this.trail, { start: this.next, before }]);
  }

  #newest() {
    const start = Math.max(0, (this.total ?? 0) - PAGE);
    this.go([{ start, before: start }]);
  }

  /** Show a page, and say so if that fails. @param {Place[]} trail @param {boolean} [further] */
  async go(trail, further = false) {
    try {
      await this.load(trail, further);
    } catch (error) {
      setText(byId("entries-range"), /** @type {Error} */ (error).message);
    }
  }

  /**
   * Load the page a trail ends at.
   * @param {Place[]} [trail]
   * @param {boolean} [further] go on where the last look has ended
   */
  async load(trail = this.trail, further = false) {
    const turn = ++this.turn;
    const { start, before } = trail[trail.length - 1];
    const named = await this.#named();
    const known = further ? this.entries : before ? [] : named;
    const from = further ? (this.next ?? 0) : start;
    const { entries, next, total } = await this.#collect(known, named, from, turn);
    await this.#addCodes(entries);
    if (turn !== this.turn) return; // somebody has turned the page meanwhile
    // who has come to the end knows how many there are, and later pages remember
    const counted = next === null ? before + entries.length : before ? this.total : null;
    [this.trail, this.next, this.total, this.entries] = [trail, next, total ?? counted, entries];
    this.#fill(entries);
    this.#range();
  }

  /** The entry whose id is what was typed, wherever it stands. @returns {Promise<Entry[]>} */
  async #named() {
    const { text } = this.wanted;
    if (!text || text.length > 64) return [];
    const ids = /^-?\d{1,15}$/.test(text) ? [text, Number(text)] : [text];
    const { has } = await this.page.api.post("has", { ids });
    const there = ids.filter((_, i) => has[i]);
    if (!there.length) return [];
    const { entries } = await this.page.api.post("get", { ids: there });
    const plain = (/** @type {Entry} */ { labels }) => !labels.length;
    return this.onlyUnlabelled ? entries.filter(plain) : entries;
  }

  /**
   * Fill a page. A look through many entries takes several requests.
   * @param {Entry[]} known
   * @param {Entry[]} named that stand on the first page, wherever they come
   * @param {number} start
   * @param {number} turn
   * @returns {Promise<{entries: Entry[], next: number|null, total: number|null}>}
   */
  async #collect(known, named, start, turn) {
    const entries = [...known];
    const there = new Set([...known, ...named].map(({ id }) => same(id)));
    const end = Date.now() + PATIENCE;
    for (let from = start; ; ) {
      const told = await this.#ask(from);
      entries.push(...told.entries.filter((/** @type {Entry} */ { id }) => !there.has(same(id))));
      const full = entries.length >= known.length + PAGE || !this.#looks;
      if (turn === this.turn && told.next !== null && !full) this.#tellHowFar(told.next);
      if (full || told.next === null || Date.now() > end || turn !== this.turn) {
        return { entries, next: told.next, total: told.total };
      }
      from = told.next;
    }
  }

  /** How far a look has come. @param {number} next where it goes on */
  #tellHowFar(next) {
    const arrived = count(this.page.stats?.arrived);
    setText(byId("entries-range"), `looking, ${count(next)} of ${arrived}…`);
  }

  /** @param {number} start */
  #ask(start) {
    const { text, label } = this.wanted;
    /** @type {Object<string, any>} */
    const params = { start, limit: PAGE, unlabelled: this.onlyUnlabelled };
    if (text) params.text = text;
    if (label !== undefined) Object.assign(params, { label: same(label), json: true });
    return this.page.api.get("entries", params);
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
    if (this.#looks || total === this.total) return;
    this.total = total;
    if (this.entries.length < PAGE || this.next === null) this.load().catch(() => {});
    else this.#range();
  }

  #range() {
    const { start, before } = this.#place;
    const shown = this.entries.length;
    const further = this.#looks && shown < PAGE && this.next !== null;
    setText(byId("entries-range"), shown || further ? this.#told(before, shown, further) : "");
    byId("entries-empty").hidden = shown > 0;
    setText(byId("entries-empty"), further ? NOT_YET : this.#none());
    byId("entries-more").hidden = !further;
    byId("page-first").disabled = byId("page-back").disabled = start === 0;
    const last = this.next === null || (this.#looks && before + shown === this.total);
    byId("page-on").disabled = last || further;
    byId("page-last").disabled = this.next === null || this.onlyUnlabelled || this.#looks;
  }

  /**
   * Which entries are on show, and of how many, as far as that is known.
   * @param {number} before
   * @param {number} shown
   * @param {boolean} further
   */
  #told(before, shown, further) {
    const range = `${exact(before + 1)}–${exact(before + shown)}`;
    const verb = this.#looks ? " found" : "";
    if (further) return `${before ? range : exact(shown)} found in the first ${count(this.next)}`;
    if (this.total === null) return `${range} found so far`;
    const all = this.#looks && this.total === shown;
    return all ? `${exact(shown)} found` : `${range} of ${count(this.total)}${verb}`;
  }

  /** Why no entry is on show. */
  #none() {
    const { text, label } = this.wanted;
    if (label !== undefined) {
      const named = `Entries labelled ${labelText(label)} are hidden by “only unlabelled”.`;
      return this.onlyUnlabelled ? named : "No entry has this label.";
    }
    if (!text) return ALL_LABELLED;
    const kind = this.onlyUnlabelled ? "No unlabelled entry" : "No entry";
    const chips = byId("find-labels").hidden ? "" : " Choose a label above to list its entries.";
    return `${kind} has this in its id or text.${chips}`;
  }

  /** Mark an entry as the one that was asked about. @param {any} id or null */
  mark(id) {
    this.chosen = id === null ? null : same(id);
    for (const tile of this.list.querySelectorAll(".entry")) {
      tile.setAttribute("aria-pressed", String(tile.dataset.id === this.chosen));
    }
  }
}
