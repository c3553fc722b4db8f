/** Brings the page up: one object that its parts share, and who hears of what. */

import { Accuracy } from "./accuracy.js";
import { Activity } from "./activity.js";
import { Api } from "./api.js";
import { redrawCodes } from "./codes.js";
import { forgetColours } from "./colours.js";
import { byId, hear, setText } from "./dom.js";
import { showEmpty } from "./empty.js";
import { Entries } from "./entries.js";
import { startWords } from "./explain.js";
import { startFinding } from "./find.js";
import { Glance, refreshWords } from "./glance.js";
import { startKey } from "./key.js";
import { Labels } from "./labels.js";
import { Matrix } from "./matrix.js";
import { startMatrixText } from "./matrix_text.js";
import { Search } from "./search.js";
import { Stream } from "./stream.js";
import { count, entriesCounted } from "./texts.js";
import { startTheme } from "./theme.js";

const RECOUNT = [1000, 5000]; // milliseconds between counts of few labels, and of many
const FEW = 200;
const TOAST = 6000;
const UNDO = 15_000; // long enough to read, think and press

const api = new Api(new URL("../", import.meta.url));
const labels = new Labels(api);
/** @type {any} what the parts share */
const page = { api, labels, toast, stats: null, readonly: false };
const stream = new Stream(api);
const matrix = new Matrix(labels);
const search = new Search(page);
const glance = new Glance(api, refreshed, (error) => toast(error.message));
page.entries = new Entries(page, (entry) => search.ask({ kind: "entry", entry }));
const accuracy = new Accuracy(stream);

let recounted = 0;
let recounting = 0;
let quiet = 0;
/** @type {Promise<void>|null} */
let loading = null;

/** Take the newest numbers to all who show them. @param {any} stats */
function take(stats) {
  page.stats = stats;
  page.readonly = Boolean(stats.readonly);
  byId("readonly").hidden = !page.readonly;
  glance.show(figures(stats));
  matrix.show(stats);
  accuracy.show(stats);
  showEmpty(stats, api.root);
  page.entries.grown(stats);
  labels.reach(stats.labels).then(() => matrix.show(stats), complain);
  introduce(stats);
  const facts = [`everhash ${stats.version}`, `method ${stats.method}`, `commit ${stats.commit}`];
  setText(byId("facts"), facts.join(" · "));
  for (const node of document.querySelectorAll(".dim")) setText(node, String(stats.dim));
  labels.outdated();
  recount();
}

/** Say at the top what is served. @param {any} stats */
function introduce({ name, entries, labels }) {
  byId("name").hidden = !name;
  setText(byId("name"), name ?? "");
  document.title = name ? `${name} · everhash` : "everhash";
  const many = `${count(labels)} ${labels === 1 ? "label" : "labels"}`;
  const told = entries < 1e6 ? entriesCounted(entries) : `${count(entries)} entries`;
  setText(byId("about"), `${told} · ${many}`);
}

/** Where a method keeps no record of what it learned, its labels do. @param {any} stats */
function figures(stats) {
  return { rows_learned: stats.learned?.rows ?? labels.lessons, ...stats };
}

/** Ask how labels stand, now and then, until all were asked for after the last change. */
function recount() {
  if (recounting) return;
  const due = recounted + RECOUNT[labels.list.length > FEW ? 1 : 0];
  recounting = setTimeout(async () => {
    recounted = Date.now();
    const left = await labels.recount().catch(complain);
    recounting = 0;
    if (left) recount();
  }, Math.max(0, due - Date.now()));
}

/** @param {any} report */
function refreshed(report) {
  toast(refreshWords(report));
  search.again();
}

/** Show an error at the top of the page. @param {any} error */
function complain({ message, hint }) {
  const box = byId("trouble");
  box.hidden = false;
  setText(box, hint ? `${message}: ${hint}` : message);
}

/**
 * Say something that soon goes away, with a way back if there is one.
 * @param {string} text
 * @param {(() => void)|null} [undo]
 */
function toast(text, undo = null) {
  const box = byId("toast");
  box.hidden = false;
  setText(byId("toast-text"), text);
  byId("toast-undo").hidden = !undo;
  byId("toast-undo").onclick = () => {
    box.hidden = true;
    undo?.();
  };
  clearTimeout(quiet);
  quiet = setTimeout(() => (box.hidden = true), undo ? UNDO : TOAST);
}

/** @param {{up: boolean, waiting: number|null}} state */
function connection({ up, waiting }) {
  byId("connection").dataset.state = up ? "up" : "down";
  const lost = waiting === null ? "not connected" : `connection lost, next try in ${waiting} s`;
  setText(byId("connection-text"), up ? "live" : lost);
  if (up) load();
}

/** Ask for everything; the stream tells what changes afterwards. */
function load() {
  loading ??= (async () => {
    try {
      take(await api.get("stats"));
      await page.entries.load();
      byId("trouble").hidden = true;
    } catch (error) {
      complain(error);
    }
    loading = null;
  })();
}

startWords();
startKey(api, () => {
  load();
  stream.start();
});
startFinding(
  labels,
  (wanted) => page.entries.look(wanted),
  (down) => page.entries.first(down),
);
byId("try").addEventListener("click", () => page.entries.any().catch(complain));
new Activity(stream);
startMatrixText(labels);
startTheme(() => {
  forgetColours();
  redrawCodes();
  matrix.draw();
});
addEventListener("resize", redrawCodes);
for (const type of ["grown", "counted"]) {
  hear(labels, type, () => page.stats && glance.show(figures(page.stats)));
}
for (const type of ["renamed", "merged", "dropped"]) {
  hear(stream, type, () => labels.reload().catch(complain));
}
hear(stream, "connection", connection);
hear(stream, "stats", take);
load();
stream.start();
