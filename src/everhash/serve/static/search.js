/** Asking by an entry or by numbers; and the same again after something has changed. */

import { Answers } from "./answers.js";
import { startBringing } from "./bring.js";
import { Changes } from "./changes.js";
import { button, byId, calm, el } from "./dom.js";
import { word } from "./explain.js";
import { clearScope, judgeScope } from "./scope.js";
import { startTabs } from "./tabs.js";
import { counted, payloadVector, same } from "./texts.js";

const LIKELY = 3; // labels offered first
const MANY = 2000; // labels beyond which the nearest ones are not asked for

/**
 * @typedef {import("./faces.js").Entry} Entry
 * @typedef {{kind: "entry", entry: Entry}
 *   | {kind: "rows", rows: import("./query_file.js").Rows, at: number}} Query
 */

export class Search {
  /** @param {any} page */
  constructor(page) {
    this.page = page;
    /** @type {Query|null} */
    this.query = null;
    this.turn = 0;
    this.changes = new Changes(page, (entry, labels) => this.#changed(entry, labels));
    this.answers = new Answers(page, {
      search: (entry) => this.ask({ kind: "entry", entry }),
      likely: (entry) => this.#likely(entry),
      label: (entry, label) => this.changes.label(entry, label),
      unlabel: (entry) => this.changes.unlabel(entry),
    });
    const select = startTabs();
    const brought = (/** @type {any} */ rows) => this.ask({ kind: "rows", rows, at: 0 });
    startBringing(() => page.stats?.dim ?? 0, brought, () => select("tab-numbers"));
    const explain = () => (byId("by-word").dataset.word = byId("by").value);
    byId("by").addEventListener("change", explain);
    explain(); // a browser may have kept what was chosen before
    for (const id of ["k", "by"]) {
      byId(id).addEventListener("change", () => this.query && this.ask(this.query));
    }
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
      const { found, novelty, by } = await this.#send(query);
      const asked = query.kind === "entry" ? [query.entry] : [];
      const entries = await this.#entries([...found, ...asked]);
      const likely = query.kind === "entry" ? await this.#likely(query.entry) : [];
      if (turn !== this.turn) return;
      const shown = this.#shown(query, entries, likely);
      this.answers.show(shown, found, entries, { by, again });
      if (!again) scrollToAnswers();
      judgeScope(novelty, this.page.stats, this.#isLabelled(query, entries));
    } catch (error) {
      if (turn !== this.turn) return;
      const { message, hint } = /** @type {any} */ (error);
      this.answers.say(hint ? `${message} (${hint})` : message, true);
    }
  }

  /** The last search once more. */
  async again() {
    if (this.query) await this.ask(this.query, true);
  }

  /** @param {Query} query @returns {Promise<any>} */
  async #send(query) {
    const options = { k: Number(byId("k").value), by: byId("by").value, explain: true };
    const { kind } = query;
    const asked = kind === "rows" ? { rows: [await query.rows.row(query.at)] } : this.#asked(query);
    return (await this.page.api.post("search", { ...asked, ...options })).matches[0];
  }

  /**
   * An entry that carries its row is asked by it, so that a label does not change the question.
   * @param {{entry: Entry}} query
   */
  #asked({ entry: { id, payload } }) {
    const row = payloadVector(payload, this.page.stats?.dim);
    return row ? { rows: [row] } : { like: [id] };
  }

  /** Whether only a word is left to ask an entry by. @param {Entry} entry */
  #byWord(entry) {
    const worded = Boolean(this.page.labels.list[0]?.codeword);
    return worded && !this.changes.keepsRow(entry) && !("rows" in this.#asked({ entry }));
  }

  /**
   * Whether an entry with a label is asked about.
   * @param {Query} query
   * @param {Map<string, Entry>} entries by id
   */
  #isLabelled(query, entries) {
    if (query.kind !== "entry") return false;
    return (entries.get(same(query.entry.id)) ?? query.entry).labels.length > 0;
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
      const question = { ...this.#asked({ entry }), k: 1, labels: left.map(({ label }) => label) };
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
   */
  #shown(query, entries, likely) {
    if (query.kind === "entry") {
      const entry = entries.get(same(query.entry.id)) ?? query.entry;
      const [how, why] = ["asked by its ", ": its features are not kept"];
      const byWord = this.#byWord(entry) ? [how, word("codeword", "codeword"), why] : [];
      return this.answers.queryEntry(entry, likely, byWord);
    }
    const { rows, at } = query;
    const dim = counted(this.page.stats?.dim ?? 0, "number");
    const one = `Nearest to ${rows.name}, a row of ${dim}`;
    const text = rows.n > 1 ? `Nearest to row ${at + 1} of ${rows.n} in ${rows.name}` : one;
    const step = (/** @type {number} */ to, /** @type {string} */ name) => {
      const props = { class: "small", disabled: to < 0 || to >= rows.n };
      return button(name, props, () => this.ask({ ...query, at: to }));
    };
    const steps = rows.n > 1 ? [step(at - 1, "previous row"), step(at + 1, "next row")] : [];
    return [el("p", { class: "first" }, el("strong", { text }), ...steps)];
  }

  /** Show an entry with its new labels. @param {Entry} entry @param {any[]} labels */
  async #changed(entry, labels) {
    if (this.query?.kind === "entry" && same(this.query.entry.id) === same(entry.id)) {
      this.query = { kind: "entry", entry: { ...entry, labels, guess: null, home: null } };
    }
    await Promise.all([this.page.entries.load().catch(() => {}), this.again()]);
  }
}

/** Where answers stand below what was asked, bring them into view. */
function scrollToAnswers() {
  const query = byId("query");
  const asked = byId("halves").firstElementChild.getBoundingClientRect();
  const below = query.getBoundingClientRect().top >= asked.bottom;
  const behavior = calm() ? "auto" : "smooth";
  if (below) query.scrollIntoView({ behavior, block: "start" });
}
