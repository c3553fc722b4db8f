/** The collection in seven numbers, and the button that refreshes it while something is stale. */

import { button, byId, el, setText } from "./dom.js";
import { word } from "./explain.js";
import { bytes, count, counted, entriesCounted, exact } from "./texts.js";

const SPOKEN_EVERY = 10_000; // milliseconds
const POLL = 300;

/** @type {[string, string, (n: number) => string, string][]} */
const TILES = [
  ["entries", "Entries", count, "entries"],
  ["labels", "Labels", count, "label"],
  ["cycles", "Cycles", count, "cycle"],
  ["width", "Width", count, "width"],
  ["rows_learned", "Rows learned", count, "lesson"],
  ["bytes", "File", bytes, "file"],
  ["stale_bits", "Stale bits", count, "stale"],
];
/** Notes below the numbers that need explaining. @type {Object<string, string>} */
const NOTES = { entries: "unlabelled", rows_learned: "published" };

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
    this.asleep = true; // there is nothing to refresh
    this.busy = false;
    /** @type {Object<string, {value: HTMLElement, note: HTMLElement}>} */
    this.tiles = {};
    for (const [name, title, , meaning] of TILES) this.#add(name, word(meaning, title));
    const look = { max: 1, hidden: true, "aria-label": "progress of the refresh" };
    this.progress = el("progress", look);
    const props = { id: "refresh", class: "small", "aria-describedby": "refresh-why" };
    this.button = button("Refresh", props, () => this.refresh());
    this.tiles.stale_bits.note.id = "refresh-why";
    this.tiles.stale_bits.note.before(this.button);
    this.tiles.stale_bits.note.after(this.progress);
  }

  /** @param {string} name @param {HTMLElement} title */
  #add(name, title) {
    const value = el("span", { class: "value", text: "–", "data-stat": name });
    const note = NOTES[name] ? word(NOTES[name], "") : el("span");
    note.classList.add("note");
    const about = el("dd", {}, value, note);
    const tile = el("div", { class: "tile", "data-tile": name }, el("dt", {}, title), about);
    byId("glance").append(tile);
    this.tiles[name] = { value, note };
  }

  /** @param {any} stats */
  show(stats) {
    for (const [name, , format] of TILES) {
      const { value } = this.tiles[name];
      setText(value, format(stats[name]));
      value.title = exact(stats[name]);
    }
    for (const [name, text] of Object.entries(notes(stats))) {
      setText(this.tiles[name].note, text);
      this.tiles[name].note.hidden = !text;
    }
    this.asleep = whyAsleep(stats) !== "";
    this.button.disabled = this.asleep || this.busy;
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
    this.button.disabled = this.busy = true;
    this.progress.hidden = false;
    this.progress.removeAttribute("value"); // how far it is may not be known
    try {
      const { job } = await this.api.post("refresh");
      this.refreshed(await this.#follow(job));
    } catch (error) {
      this.failed(error);
    }
    this.busy = false;
    this.button.disabled = this.asleep;
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

/** Why nothing can be refreshed now; "" if something can. @param {any} stats */
function whyAsleep({ stale_bits, readonly, unrefreshable, refreshing }) {
  if (refreshing) return "being refreshed by itself";
  if (!stale_bits) return "nothing to refresh";
  if (readonly) return "this server only reads";
  return unrefreshable ? "no features are kept to refresh by" : "";
}

/** What stands below some of the numbers. @param {any} stats */
function notes(stats) {
  const { learned, entries, unlabelled, width, bits, stale_bits, coded, coding } = stats;
  const stored = (coded ?? 0) * (coding === "full" ? width : bits);
  const ofStored = stored ? `${((100 * stale_bits) / stored).toFixed(1)} % of those stored` : "";
  const waiting = learned ? learned.rows - learned.published_rows : 0;
  return {
    entries: entries ? `${count(unlabelled)} unlabelled` : "",
    width: width ? `${bits} bits a cycle` : "",
    rows_learned: waiting > 0 ? `${count(waiting)} unpublished` : "",
    bytes: stats.bytes ? "without its log" : "",
    stale_bits: whyAsleep(stats) || ofStored,
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
