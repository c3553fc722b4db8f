/** Giving entries labels and taking them away, each with a way back. */

import { entryWords } from "./faces.js";
import { askForNew } from "./labelling.js";
import { nearLabels } from "./near.js";
import { labelText, same } from "./texts.js";

/** @typedef {import("./faces.js").Entry} Entry */

export class Changes {
  /**
   * @param {any} page
   * @param {(entry: Entry, labels: any[]) => Promise<void>} changed
   */
  constructor(page, changed) {
    this.page = page;
    this.changed = changed;
  }

  /** Whether a label can be taken away again: that needs the row of the entry. */
  get canUndo() {
    return this.page.stats?.keep_features === "all";
  }

  /** Whether the collection has kept the row of an entry. @param {Entry} entry */
  keepsRow(entry) {
    const kept = this.page.stats?.keep_features;
    return kept === "all" || (kept === "unlabelled" && !entry.labels.length);
  }

  /**
   * Label an entry, which teaches its label. One that is not known is asked for once before.
   * @param {Entry} entry
   * @param {any} wanted
   */
  async label(entry, wanted) {
    const { labels } = this.page;
    await labels.arrived(); // or a known one would be taken for new
    const label = labels.known.has(same(wanted)) ? wanted : await this.#confirmed(entry, wanted);
    if (label === undefined) return;
    const told = await this.#try(() => this.#give(entry, [label]));
    if (!told) return;
    const fresh = told.new.length > 0;
    const undo = this.canUndo ? () => this.#undo(entry, [label], fresh) : null;
    const news = fresh ? ", a new label" : "";
    this.page.toast(`#${entry.id} is ${labelText(label)} now${news}`, undo);
    if (fresh) await labels.reach(labels.total + 1).catch(() => {});
    await this.changed(entry, [label]);
  }

  /**
   * The label that is meant after all; undefined for none.
   * @param {Entry} entry
   * @param {any} label
   */
  #confirmed(entry, label) {
    const { labels } = this.page;
    const near = nearLabels(labelText(label), labels.list);
    return askForNew(label, near, { entry: entryWords(entry), final: !this.canUndo });
  }

  /** Take the labels of an entry away. @param {Entry} entry */
  async unlabel(entry) {
    if (!(await this.#try(() => this.#take(entry)))) return;
    const undo = () => this.#undo(entry, [], false);
    this.page.toast(`#${entry.id} has no label any more`, undo);
    await this.changed(entry, []);
  }

  /**
   * Give an entry back the labels it had, unless it was changed meanwhile.
   * @param {Entry} entry as it was
   * @param {any[]} given what it was given since
   * @param {boolean} fresh whether that was a new label, which then goes too
   */
  async #undo(entry, given, fresh) {
    const done = await this.#try(async () => {
      const { entries } = await this.page.api.post("get", { ids: [entry.id] });
      if (same(entries[0].labels) !== same(given)) throw new Error("it was changed meanwhile");
      await (entry.labels.length ? this.#give(entry, entry.labels) : this.#take(entry));
      return true;
    });
    if (!done) return;
    if (fresh) await this.#drop(given[0]);
    const had = entry.labels.map(labelText).join(", ");
    this.page.toast(`Undone: #${entry.id} ${had ? `is ${had}` : "has no label"} again`);
    await this.changed(entry, entry.labels);
  }

  /** @param {Entry} entry @param {any[]} labels */
  #give(entry, labels) {
    const teach = this.keepsRow(entry);
    const all = labels.length === 1 ? labels : [labels];
    return this.page.api.post("label", { ids: [entry.id], labels: all, teach });
  }

  /** @param {Entry} entry */
  #take(entry) {
    return this.page.api.post("unlabel", { ids: [entry.id] });
  }

  /** Forget a label that nobody else has got meanwhile. @param {any} label */
  async #drop(label) {
    const { api, labels } = this.page;
    const at = labels.list.findIndex((/** @type {any} */ one) => same(one.label) === same(label));
    const told = await api.get("labels", { start: Math.max(0, at), limit: 1 }).catch(() => null);
    const [first] = told?.labels ?? [];
    if (!first || same(first.label) !== same(label) || first.entries) return;
    await this.#try(() => api.post("labels/drop", { label }));
  }

  /** What a change answers; null if it failed, which is said. @param {() => Promise<any>} change */
  async #try(change) {
    try {
      return await change();
    } catch (error) {
      const { message, hint } = /** @type {any} */ (error);
      this.page.toast(hint ? `${message} (${hint})` : message);
      return null;
    }
  }
}
