/** Asking by an entry, a vector or a file; and the same again after something has changed. */

import { Answers } from "./answers.js";
import { button, byId, calm, el, setText } from "./dom.js";
import { clearScope, judgeScope } from "./scope.js";
import { startTabs } from "./tabs.js";
import { readVector } from "./vector.js";
import { counted, labelText, payloadVector, same } from "./words.js";

const LIKELY = 3; // labels offered first
const MANY = 2000; // labels beyond which the nearest ones are not asked for
const BY_WORD = "asked by its codeword: its features are not kept";

/**
 * @typedef {import("./faces.js").Entry} Entry
 * @typedef {{kind: "entry", entry: Entry}
 *   | {kind: "vector", row: number[]}
 *   | {kind: "file", file: File, at: number}} Query
 */

export class Search {
  /** @param {any} page */
  constructor(page) {
    this.page = page;
    /** @type {Query|null} */
    this.query = null;
    this.turn = 0;
    this.answers = new Answers(page, {
      search: (entry) => this.ask({ kind: "entry", entry }),
      likely: (entry) => this.#likely(entry),
      label: (entry, label) => this.label(entry, label),
      unlabel: (entry) => this.unlabel(entry),
    });
    startTabs();
    byId("by-vector").addEventListener("submit", (/** @type {Event} */ event) => {
      event.preventDefault();
      this.#askVector();
    });
    byId("by-file").addEventListener("submit", (/** @type {Event} */ event) => {
      event.preventDefault();
      this.#askFile();
    });
    for (const id of ["k", "by"]) {
      byId(id).addEventListener("change", () => this.query && this.ask(this.query));
    }
  }

  #askVector() {
    try {
      const row = readVector(byId("vector").value, this.page.stats?.dim ?? 0);
      this.#blame("vector", "");
      this.ask({ kind: "vector", row });
    } catch (error) {
      this.#blame("vector", /** @type {Error} */ (error).message);
    }
  }

  #askFile() {
    const file = byId("file").files[0];
    this.#blame("file", file ? "" : "expected a .npy file, got none");
    if (file) this.ask({ kind: "file", file, at: 0 });
  }

  /** Say what is wrong with a field, or nothing. @param {string} field @param {string} text */
  #blame(field, text) {
    setText(byId(`${field}-error`), text);
    byId(field).setAttribute("aria-invalid", String(Boolean(text)));
    if (text) byId(field).focus();
  }

  /**
   * Search, and remember what for.
   * @param {Query} query
   * @param {boolean} [again] whether to show what moved
   */
  async ask(query, again = false) {
    const turn = ++this.turn;
    this.query = query;
    this.page.entries.mark(query.kind === "entry" ? query.entry.id : null);
    if (!again) this.answers.say("searching…");
    clearScope();
    try {
      const matches = await this.#send(query);
      const { found, novelty, by } = matches[query.kind === "file" ? query.at : 0];
      const asked = query.kind === "entry" ? [query.entry] : [];
      const entries = await this.#entries([...found, ...asked]);
      const likely = query.kind === "entry" ? await this.#likely(query.entry) : [];
      if (turn !== this.turn) return;
      const shown = this.#shown(query, entries, likely, matches.length);
      this.answers.show(shown, found, entries, by, again);
      if (!again) scrollToAnswers();
      judgeScope(novelty, this.page.stats);
    } catch (error) {
      if (turn !== this.turn) return;
      const { message, hint } = /** @type {any} */ (error);
      this.answers.say(hint ? `${message} (${hint})` : message, true);
      if (query.kind === "file") this.#blame("file", message);
    }
  }

  /** The last search once more. */
  async again() {
    if (this.query) await this.ask(this.query, true);
  }

  /** @param {Query} query @returns {Promise<any[]>} */
  async #send(query) {
    const { api } = this.page;
    const options = { k: Number(byId("k").value), by: byId("by").value };
    if (query.kind === "file") return (await api.upload("search", options, query.file)).matches;
    const asked = query.kind === "vector" ? { rows: [query.row] } : this.#asked(query.entry);
    return (await api.post("search", { ...asked, ...options, explain: true })).matches;
  }

  /**
   * An entry that carries its row is asked by it, so that a label does not change the question.
   * @param {Entry} entry
   */
  #asked({ id, payload }) {
    const row = payloadVector(payload, this.page.stats?.dim);
    return row ? { rows: [row] } : { ids: [id] };
  }

  /** Whether only a word is left to ask an entry by. @param {Entry} entry */
  #byWord(entry) {
    const worded = Boolean(this.page.labels.list[0]?.codeword);
    return worded && !this.#keepsRow(entry) && !("rows" in this.#asked(entry));
  }

  /** Whether the collection has kept the row of an entry. @param {Entry} entry */
  #keepsRow(entry) {
    const kept = this.page.stats?.keep_features;
    return kept === "all" || (kept === "unlabelled" && !entry.labels.length);
  }

  /** @param {{id: any}[]} asked @returns {Promise<Map<string, Entry>>} */
  async #entries(asked) {
    const ids = new Map(asked.map(({ id }) => [same(id), id]));
    if (!ids.size) return new Map();
    const told = await this.page.api.post("get", { ids: [...ids.values()] });
    return new Map(told.entries.map((/** @type {Entry} */ entry) => [same(entry.id), entry]));
  }

  /**
   * The labels nearest to an unlabelled entry, to be offered first.
   * @param {Entry} entry
   * @returns {Promise<any[]>}
   */
  async #likely(entry) {
    /** @type {import("./labels.js").Label[]} */
    let left = this.page.labels.list.filter((/** @type {any} */ label) => label.codeword);
    const likely = [];
    if (entry.labels.length || this.page.readonly || left.length > MANY) return likely;
    while (likely.length < LIKELY && left.length) {
      const question = { ...this.#asked(entry), k: 1, labels: left.map(({ label }) => label) };
      const { matches } = await this.page.api.post("search", question);
      const nearest = matches[0].found[0]?.label;
      if (nearest === undefined) break;
      likely.push(nearest);
      left = left.filter(({ label }) => same(label) !== same(nearest));
    }
    return likely;
  }

  /**
   * What was asked, above the answers.
   * @param {Query} query
   * @param {Map<string, Entry>} entries by id
   * @param {any[]} likely
   * @param {number} n queries in all
   */
  #shown(query, entries, likely, n) {
    if (query.kind === "entry") {
      const entry = entries.get(same(query.entry.id)) ?? query.entry;
      return this.answers.queryEntry(entry, likely, this.#byWord(entry) ? BY_WORD : "");
    }
    if (query.kind === "vector") {
      const text = `Nearest to a vector of ${counted(query.row.length, "number")}`;
      return [el("strong", { text })];
    }
    const text = `Nearest to row ${query.at + 1} of ${n} in ${query.file.name}`;
    const step = (/** @type {number} */ at, /** @type {string} */ name) => {
      const props = { class: "small", disabled: at < 0 || at >= n };
      return button(name, props, () => this.ask({ ...query, at }));
    };
    const steps = n > 1 ? [step(query.at - 1, "previous row"), step(query.at + 1, "next row")] : [];
    return [el("p", { class: "first" }, el("strong", { text }), ...steps)];
  }

  /**
   * Label an entry, which teaches its label, and ask the last search again.
   * @param {Entry} entry
   * @param {any} label
   */
  async label(entry, label) {
    const { api, labels } = this.page;
    const question = { ids: [entry.id], labels: [label], teach: this.#keepsRow(entry) };
    const told = await this.#change(() => api.post("label", question));
    if (!told) return;
    this.page.toast([`#${entry.id} is ${labelText(label)} now`, ...told.new.map(news)].join("; "));
    if (!labels.known.has(same(label))) await labels.reach(labels.list.length + 1).catch(() => {});
    await this.#changed(entry, [label]);
  }

  /** Take the labels of an entry away. @param {Entry} entry */
  async unlabel(entry) {
    const told = await this.#change(() => this.page.api.post("unlabel", { ids: [entry.id] }));
    if (!told) return;
    this.page.toast(`#${entry.id} has no label any more`);
    await this.#changed(entry, []);
  }

  /** What a change answers; null if it failed, which is said. @param {() => Promise<any>} change */
  async #change(change) {
    try {
      return await change();
    } catch (error) {
      this.page.toast(/** @type {Error} */ (error).message);
      return null;
    }
  }

  /** Show an entry with its new labels. @param {Entry} entry @param {any[]} labels */
  async #changed(entry, labels) {
    if (this.query?.kind === "entry" && same(this.query.entry.id) === same(entry.id)) {
      this.query = { kind: "entry", entry: { ...entry, labels, guess: null, home: null } };
    }
    await Promise.all([this.page.entries.load().catch(() => {}), this.again()]);
  }
}

/** A label that was not known before, in words. @param {{label: any, near: any[]}} fresh */
function news({ near }) {
  return near.length ? `a new label, much like ${near.map(labelText).join(", ")}` : "a new label";
}

/** Where answers stand below what was asked, bring them into view. */
function scrollToAnswers() {
  const query = byId("query");
  const below = query.getBoundingClientRect().top > byId("by-entry").getBoundingClientRect().bottom;
  const behavior = calm() ? "auto" : "smooth";
  if (below) query.scrollIntoView({ behavior, block: "start" });
}
