/** Brings the page up: one object that its parts share, and who hears of what. */

import { Activity } from "./activity.js";
import { Api } from "./api.js";
import { redrawCodes } from "./codes.js";
import { forgetColours } from "./colours.js";
import { button, byId, hear, setText } from "./dom.js";
import { Entries } from "./entries.js";
import { Glance, refreshWords } from "./glance.js";
import { startKey } from "./key.js";
import { Labels } from "./labels.js";
import { Matrix } from "./matrix.js";
import { startMatrixText } from "./matrix_text.js";
import { Search } from "./search.js";
import { Stream } from "./stream.js";
import { startTheme } from "./theme.js";

const RECOUNT = [1000, 5000]; // milliseconds between counts of few labels, and of many
const FEW = 200;
const TOAST = 6000;

const api = new Api(new URL("../", import.meta.url));
const labels = new Labels(api);
/** @type {any} what the parts share */
const page = { api, labels, toast, stats: null, readonly: false };
const stream = new Stream(api);
const matrix = new Matrix(labels);
const search = new Search(page);
const glance = new Glance(api, refreshed, (error) => toast(error.message));
page.entries = new Entries(page, (entry) => search.ask({ kind: "entry", entry }));
const forgetRefusal = startKey(api);

let recounted = 0;
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
  page.entries.grown(stats);
  labels.reach(stats.labels).then(() => matrix.show(stats), complain);
  setText(byId("about"), `${stats.dim} features · ${stats.bits} bits a cycle`);
  const facts = [`everhash ${stats.version}`, `method ${stats.method}`, `commit ${stats.commit}`];
  setText(byId("facts"), facts.join(" · "));
  for (const node of document.querySelectorAll(".dim")) setText(node, String(stats.dim));
  recount();
}

/** Where a method keeps no record of what it learned, its labels do. @param {any} stats */
function figures(stats) {
  const { rows, accuracy } = stats.learned ?? { rows: labels.lessons, accuracy: null };
  return { rows_learned: rows, accuracy, ...stats };
}

/** Ask how many lessons labels have had, now and then. */
function recount() {
  if (Date.now() - recounted < RECOUNT[labels.list.length > FEW ? 1 : 0]) return;
  recounted = Date.now();
  labels.recount().catch(complain);
}

/** @param {any} report */
function refreshed(report) {
  toast(refreshWords(report));
  search.again();
}

/** Show an error at the top of the page. @param {any} error */
function complain({ message, hint, status }) {
  const box = byId("trouble");
  box.hidden = false;
  box.replaceChildren(hint ? `${message} (${hint}) ` : `${message} `);
  if (status === 401) box.append(button("Enter a key", { class: "small" }, askAgain));
}

function askAgain() {
  forgetRefusal();
  load();
  stream.start();
}

/** Say something that soon goes away. @param {string} text */
function toast(text) {
  const box = byId("toast");
  box.hidden = false;
  setText(box, text);
  clearTimeout(quiet);
  quiet = setTimeout(() => (box.hidden = true), TOAST);
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
