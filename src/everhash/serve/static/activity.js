/** What the stream does: a rate, a line of the last minute, tallies, and a log. */

import { byId, el, hear, setText } from "./dom.js";
import { word } from "./explain.js";
import { refreshWords } from "./glance.js";
import { count, counted, entriesCounted, labelText, rate } from "./texts.js";

const SECONDS = 60;
const LATELY = 3; // seconds the rate is taken over
const LINES = 40;
const NAMED = 5; // new labels that a line names

/** @type {[string, string, string][]} name, title, and the word that explains it */
const TALLIES = [
  ["rows", "rows arrived", ""],
  ["labels", "new labels", ""],
  ["flips", "bits flipped", "flipped"],
  ["refreshes", "refreshes", "refresh"],
];

export class Activity {
  /** @param {import("./stream.js").Stream} stream */
  constructor(stream) {
    /** Rows of each of the last seconds, the one under way at the end. */
    this.buckets = new Float64Array(SECONDS + 1);
    this.second = thisSecond();
    /** @type {Object<string, {sum: number, shown: HTMLElement}>} */
    this.tallies = {};
    /** @type {{kind: string, n: number, times: number, line: HTMLElement}|null} */
    this.last = null;
    for (const [name, title, meaning] of TALLIES) {
      const shown = el("dd", { "data-tally": name, text: "0" });
      const told = el("dt", {}, meaning ? word(meaning, title) : title);
      byId("tallies").append(el("div", {}, told, shown));
      this.tallies[name] = { sum: 0, shown };
    }
    hear(stream, "learned", (told) => this.#learned(told));
    hear(stream, "forgotten", ({ rows }) => this.#forgotten(rows));
    hear(stream, "added", (told) => this.#added(told));
    hear(stream, "labelled", (told) => this.#entries("labelled", told));
    for (const verb of ["updated", "unlabelled", "removed"]) {
      hear(stream, verb, (told) => this.#entries(verb, told));
    }
    hear(stream, "renamed", ({ label, to }) => this.#named("renamed", label, "to", to));
    hear(stream, "merged", ({ label, into }) => this.#named("merged", label, "into", into));
    hear(stream, "dropped", ({ label }) => this.#write("dropped", `dropped ${labelText(label)}`));
    hear(stream, "refreshed", (report) => this.#refreshed(report));
    setInterval(() => this.#draw(), 1000);
  }

  /** @param {{rows: number, new_labels?: any[]}} told */
  #learned({ rows, new_labels = [] }) {
    this.#arrived(rows);
    this.#greet(new_labels);
    this.#merge("learned", rows, (n) => `learned ${counted(n, "row")}`);
  }

  /** @param {number} rows */
  #forgotten(rows) {
    this.#merge("forgotten", rows, (n) => `forgot ${counted(n, "row")}`);
  }

  /** @param {{count: number, learned: boolean}} told */
  #added(told) {
    if (told.learned) return; // an ingest is told once, as rows that were learned
    this.#arrived(told.count);
    this.#entries("added", told);
  }

  /** @param {string} verb @param {{count: number, new_labels?: any[]}} told */
  #entries(verb, told) {
    this.#greet(told.new_labels ?? []);
    this.#merge(verb, told.count, (n) => `${verb} ${entriesCounted(n)}`);
  }

  /** @param {string} verb @param {any} label @param {string} link @param {any} other */
  #named(verb, label, link, other) {
    this.#write(verb, `${verb} ${labelText(label)} ${link} ${labelText(other)}`);
  }

  /** @param {any} report */
  #refreshed(report) {
    this.#count("refreshes", 1);
    this.#count("flips", report.bits_flipped);
    this.#write("refreshed", refreshWords(report));
  }

  /** @param {any[]} labels */
  #greet(labels) {
    if (!labels.length) return;
    this.#count("labels", labels.length);
    const names = labels.slice(0, NAMED).map(labelText).join(", ");
    const more = labels.length > NAMED ? ` and ${count(labels.length - NAMED)} more` : "";
    this.#write("new", `new ${labels.length === 1 ? "label" : "labels"}: ${names}${more}`);
  }

  /** @param {number} rows */
  #arrived(rows) {
    this.#roll();
    this.buckets[SECONDS] += rows;
    this.#count("rows", rows);
  }

  /** @param {string} name @param {number} n */
  #count(name, n) {
    const tally = this.tallies[name];
    tally.sum += n;
    setText(tally.shown, count(tally.sum));
  }

  /**
   * One line for a run of events of a kind.
   * @param {string} kind
   * @param {number} n
   * @param {(n: number) => string} words
   */
  #merge(kind, n, words) {
    if (this.last?.kind !== kind) {
      const line = this.#write(kind, words(n));
      this.last = { kind, n, times: 1, line };
      return;
    }
    this.last.n += n;
    this.last.times += 1;
    const [time, text] = this.last.line.children;
    setText(time, clock());
    setText(text, `${words(this.last.n)} in ${count(this.last.times)} batches`);
  }

  /** @param {string} kind @param {string} text */
  #write(kind, text) {
    const log = byId("log");
    const time = el("time", { text: clock() });
    const line = el("li", { "data-kind": kind }, time, el("span", { text }));
    if (!log.querySelector("[data-kind]")) log.replaceChildren();
    log.prepend(line);
    while (log.children.length > LINES) log.lastElementChild?.remove();
    this.last = null;
    return line;
  }

  /** Move the buckets on to this second. */
  #roll() {
    const steps = Math.min(this.buckets.length, thisSecond() - this.second);
    if (steps <= 0) return;
    this.buckets.copyWithin(0, steps);
    this.buckets.fill(0, this.buckets.length - steps);
    this.second = thisSecond();
  }

  #draw() {
    this.#roll();
    const past = this.buckets.subarray(0, SECONDS);
    const lately = past.subarray(SECONDS - LATELY).reduce((sum, n) => sum + n, 0) / LATELY;
    const peak = Math.max(...past);
    const top = 1.1 * Math.max(1, peak);
    const points = Array.from(past, (n, second) => {
      const [x, y] = [(second * 60) / (SECONDS - 1), 23 - (22 * n) / top];
      return `${x.toFixed(2)} ${y.toFixed(2)}`;
    }).join("L");
    byId("spark-line").setAttribute("d", `M${points}`);
    byId("spark-fill").setAttribute("d", `M0 24L${points}L60 24Z`);
    const said = `rows a second in the last minute: ${rate(lately)} now, ${rate(peak)} at most`;
    byId("spark").setAttribute("aria-label", said);
    setText(byId("rate"), rate(lately));
  }
}

function thisSecond() {
  return Math.floor(performance.now() / 1000);
}

function clock() {
  return new Date().toLocaleTimeString("en-GB");
}
