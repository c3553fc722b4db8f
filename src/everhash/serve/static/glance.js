/** The collection in eight numbers, and the button that refreshes it. */

import { button, byId, el, setText } from "./dom.js";
import { bytes, count, counted, entriesCounted, exact, share } from "./words.js";

const SPOKEN_EVERY = 10_000; // milliseconds
const POLL = 300;

/** @type {[string, string, (n: number) => string, string][]} */
const TILES = [
  ["entries", "Entries", count, "rows that can be found"],
  ["labels", "Labels", count, "each has a codeword"],
  ["cycles", "Cycles", count, "groups of labels that share hash functions"],
  ["width", "Width", count, "hash functions of all cycles, in bits"],
  ["rows_learned", "Rows learned", count, "lessons the mapping has had"],
  ["accuracy", "Accuracy", share, "rows given the right label before they were learned"],
  ["bytes", "File", bytes, "size of the collection's file; new entries wait in the log beside it"],
  ["stale_bits", "Stale bits", count, "stored bits older than the function that made them"],
];
const REFRESH = "Bring unlabelled entries up to date with the newest hash functions";

export class Glance {
  /**
   * @param {import("./api.js").Api} api
   * @param {(report: any) => void} refreshed
   * @param {(error: any) => void} failed
   */
  constructor(api, refreshed, failed) {
    this.api = api;
    this.refreshed = refreshed;
    this.failed = failed;
    this.spoken = 0;
    /** @type {Object<string, {tile: HTMLElement, value: HTMLElement, note: HTMLElement}>} */
    this.tiles = {};
    for (const [name, title] of TILES) this.#add(name, title);
    this.tiles.accuracy.tile.hidden = true;
    const look = { max: 1, hidden: true, "aria-label": "progress of the refresh" };
    this.progress = el("progress", look);
    const props = { id: "refresh", class: "small", title: REFRESH };
    this.button = button("Refresh", props, () => this.refresh());
    this.tiles.stale_bits.note.before(this.button);
    this.tiles.stale_bits.note.after(this.progress);
  }

  /** @param {string} name @param {string} title */
  #add(name, title) {
    const value = el("span", { class: "value", text: "–", "data-stat": name });
    const note = el("span", { class: "note" });
    const about = el("dd", {}, value, note);
    const tile = el("div", { class: "tile", "data-tile": name }, el("dt", { text: title }), about);
    byId("glance").append(tile);
    this.tiles[name] = { tile, value, note };
  }

  /** @param {any} stats */
  show(stats) {
    for (const [name, , format, meaning] of TILES) {
      const { tile, value } = this.tiles[name];
      setText(value, format(stats[name]));
      tile.title = `${(format === share ? share : exact)(stats[name])}: ${meaning}`;
    }
    this.tiles.accuracy.tile.hidden = stats.accuracy === null;
    for (const [name, text] of Object.entries(notes(stats))) setText(this.tiles[name].note, text);
    this.button.hidden = Boolean(stats.readonly);
    this.#speak(stats);
  }

  /** Tell a screen reader now and then, not with every row. @param {any} stats */
  #speak(stats) {
    if (Date.now() - this.spoken < SPOKEN_EVERY) return;
    this.spoken = Date.now();
    const { entries, labels, stale_bits } = stats;
    const stale = counted(stale_bits, "stale bit");
    setText(byId("spoken"), `${entriesCounted(entries)}, ${counted(labels, "label")}, ${stale}`);
  }

  /** Start a refresh and follow its job. */
  async refresh() {
    this.button.disabled = true;
    this.progress.hidden = false;
    this.progress.removeAttribute("value"); // how far it is may not be known
    try {
      const { job } = await this.api.post("refresh");
      this.refreshed(await this.#follow(job));
    } catch (error) {
      this.failed(error);
    }
    this.button.disabled = false;
    this.progress.hidden = true;
  }

  /** @param {string} job */
  async #follow(job) {
    for (;;) {
      const told = await this.api.get(`jobs/${encodeURIComponent(job)}`);
      if (told.state === "failed") throw new Error(told.error?.message ?? "the refresh failed");
      if (told.state === "done") return told.report;
      if (told.progress > 0) this.progress.value = told.progress;
      await new Promise((resolve) => setTimeout(resolve, POLL));
    }
  }
}

/** What stands below some of the numbers. @param {any} stats */
function notes(stats) {
  const { learned, entries, unlabelled, width, bits, stale_bits, coded, coding } = stats;
  const stored = (coded ?? 0) * (coding === "full" ? width : bits);
  const stale = stored ? (100 * stale_bits) / stored : 0;
  const ofStored = `${stale.toFixed(stale ? 1 : 0)} % of those stored`;
  return {
    entries: entries ? `${count(unlabelled)} unlabelled` : "",
    width: width ? `${bits} bits a cycle` : "",
    accuracy: learned ? `on ${counted(learned.scored_rows, "new row")}` : "",
    bytes: stats.bytes ? "without its log" : "",
    stale_bits: stats.refreshing ? "being refreshed" : stored ? ofStored : "",
  };
}

/** A report in a line. @param {any} report */
export function refreshWords(report) {
  const parts = [
    `${count(report.bits_recomputed)} bits computed again`,
    `${count(report.bits_certified)} proved unchanged`,
    counted(report.bits_flipped, "bit flipped", "bits flipped"),
  ];
  return `refreshed ${entriesCounted(report.entries)}: ${parts.join(", ")}`;
}
