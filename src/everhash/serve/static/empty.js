/** What a collection without entries shows instead of a search: how entries come. */

import { button, byId, el } from "./dom.js";
import { counted } from "./texts.js";

/** Show it while there are no entries. @param {any} stats @param {URL} root of the service */
export function showEmpty(stats, root) {
  const box = byId("empty");
  const none = stats.entries === 0;
  byId("search-title").classList.toggle("unseen", none);
  for (const id of ["options", "halves"]) byId(id).hidden = none;
  for (const id of ["live", "codes", "glance"]) byId(id).hidden = none && !stats.labels;
  if (none && box.hidden) box.replaceChildren(...invitation(stats, root.href.replace(/\/$/, "")));
  box.hidden = !none;
}

/** @param {any} stats @param {string} url */
function invitation({ dim, readonly, name }, url) {
  const empty = `${name ?? "This collection"} has no entries yet.`;
  const title = el("p", { class: "lead", text: empty });
  if (readonly) {
    const text = "This server only reads. Entries that another process adds appear by themselves.";
    return [title, el("p", { text })];
  }
  const text = `Add rows of ${counted(dim, "number")}; they appear here by themselves.`;
  return [
    title,
    el("p", { text }),
    way("On the command line, from a table with a column of labels", [
      `everhash ingest ${url} rows.csv --label label`,
    ]),
    way("In Python", [
      "import everhash",
      `collection = everhash.connect("${url}")`,
      "collection.ingest(X, y)  # y: a label for each row of X, None for none",
    ]),
    way("Over HTTP, from a NumPy file, without labels", [
      `curl ${url}/ingest -H "Content-Type: application/x-npy" --data-binary @rows.npy`,
    ]),
  ];
}

/** @param {string} title @param {string[]} lines */
function way(title, lines) {
  const code = lines.join("\n");
  const copy = button("Copy", { class: "small", "aria-label": `copy: ${title}` }, async () => {
    const copied = await navigator.clipboard?.writeText(code).then(() => true, () => false);
    copy.textContent = copied ? "Copied" : "Select it, then copy";
  });
  const head = el("p", { class: "way-head" }, el("span", { text: title }), copy);
  return el("div", { class: "way" }, head, el("pre", { tabindex: 0, text: code }));
}
