/**
 * Giving entries labels and taking them away, each with a way back.
 *
 * Every change tells the server which labels the page believes the entry to have. Somebody else may
 * have changed them meanwhile: then nothing happens, and the page asks.
 */

import { entryWords } from "./faces.js";
import { askAnyway, askForNew } from "./labelling.js";
import { nearLabels } from "./near.js";
import { labelText, labelled, same } from "./texts.js";

const CONFLICT = "LabelConflictError";

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
   * @param {Entry} entry as the page shows it
   * @param {any} wanted
   */
  async label(entry, wanted) {
    const { labels } = this.page;
    await labels.arrived(); // or a known one would be taken for new
    const known = labels.known.has(same(wanted));
    const label = known ? wanted : await this.#confirmed(entry, wanted);
    if (label === undefined) return;
    await this.#change(entry, [label], !known && same(label) === same(wanted));
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

  /** Take the labels of an entry away. @param {Entry} entry as the page shows it */
  async unlabel(entry) {
    await this.#change(entry, [], false);
  }

  /**
   * Give an entry other labels, or none; ask if it has not those any more that the page shows.
   * @param {Entry} shown
   * @param {any[]} wanted
   * @param {boolean} fresh whether a new label may be made
   */
  async #change(shown, wanted, fresh) {
    for (let entry = shown; ; ) {
      try {
        const told = await this.#set(entry, wanted, entry.labels, fresh);
        return await this.#made(entry, wanted, (told.new ?? []).length > 0);
      } catch (error) {
        if (/** @type {any} */ (error).code !== CONFLICT) return this.#say(error);
      }
      const now = await this.#try(() => this.#read(entry));
      if (!now) return;
      const done = same(now.labels) === same(wanted); // somebody else has done just that
      if (done) this.page.toast(`#${now.id} ${labelled(now.labels)} already`);
      const moved = same(now.labels) !== same(entry.labels); // else it was changed back by now
      const stays = done || (moved && !(await this.#ask(now, wanted)));
      if (stays) return this.changed(now, now.labels);
      entry = now;
    }
  }

  /** @param {Entry} now @param {any[]} wanted */
  #ask(now, wanted) {
    return askAnyway(now, wanted, { final: !this.canUndo });
  }

  /**
   * Tell of a change, with a way back.
   * @param {Entry} had as it was before
   * @param {any[]} given
   * @param {boolean} fresh
   */
  async #made(had, given, fresh) {
    const undo = this.canUndo ? () => this.#undo(had, given, fresh) : null;
    const now = given.length ? `${labelled(given)} now` : "has no label any more";
    this.page.toast(`#${had.id} ${now}${fresh ? ", a new label" : ""}`, undo);
    const { labels } = this.page;
    if (fresh) await labels.reach(labels.total + 1).catch(() => {});
    await this.changed(had, given);
  }

  /**
   * Give an entry back the labels it had before a change, as long as that still stands.
   * @param {Entry} had as it was before
   * @param {any[]} given what the change gave it
   * @param {boolean} fresh whether that was a new label, which then goes too
   */
  async #undo(had, given, fresh) {
    try {
      await this.#set(had, had.labels, given, false);
    } catch (error) {
      if (/** @type {any} */ (error).code !== CONFLICT) return this.#say(error, "Not undone: ");
      const now = await this.#try(() => this.#read(had));
      if (!now) return;
      this.page.toast(`Not undone: #${now.id} ${labelled(now.labels)} now, by somebody else`);
      return this.changed(now, now.labels);
    }
    if (fresh) await this.#drop(given[0]);
    this.page.toast(`Undone: #${had.id} ${labelled(had.labels)} again`);
    await this.changed(had, had.labels);
  }

  /**
   * @param {Entry} entry
   * @param {any[]} labels
   * @param {any[]} expected the labels that it has, as far as the page knows
   * @param {boolean} fresh whether a new label may be made
   */
  #set(entry, labels, expected, fresh) {
    const asked = { ids: [entry.id], expect: [expected] };
    if (!labels.length) return this.page.api.post("unlabel", asked);
    const teach = this.keepsRow(entry);
    return this.page.api.post("label", { ...asked, labels: [labels], teach, new: fresh });
  }

  /** An entry as it is now. @param {Entry} entry @returns {Promise<Entry>} */
  async #read(entry) {
    return (await this.page.api.post("get", { ids: [entry.id] })).entries[0];
  }

  /** Forget a label; one that somebody else uses meanwhile stays. @param {any} label */
  async #drop(label) {
    await this.page.api.post("labels/drop", { label, unused: true }).catch(() => {});
  }

  /** Say what went wrong. @param {any} error @param {string} [before] */
  #say({ message, hint }, before = "") {
    this.page.toast(`${before}${hint ? `${message} (${hint})` : message}`);
  }

  /** What is asked; null if that failed, which is said. @param {() => Promise<any>} asked */
  async #try(asked) {
    try {
      return await asked();
    } catch (error) {
      this.#say(error);
      return null;
    }
  }
}
