/** Numbers that somebody brings: a file that is dropped or chosen, or pasted text. */

import { byId, setText } from "./dom.js";
import { readNumbers } from "./numbers.js";
import { readQueryFile, rowsOf } from "./query_file.js";

/**
 * @param {() => number} dim numbers of a row
 * @param {(rows: import("./query_file.js").Rows) => void} brought
 * @param {() => void} show bring the form into view
 */
export function startBringing(dim, brought, show) {
  const [form, file, area] = [byId("by-numbers"), byId("file"), byId("search")];
  const take = async (/** @type {string} */ field, /** @type {() => Promise<any>} */ read) => {
    for (const each of ["file", "vector"]) blame(each, "");
    try {
      brought(await read());
    } catch (error) {
      blame(field, /** @type {Error} */ (error).message);
    }
  };
  const takeFile = (/** @type {File|undefined} */ one) => {
    if (one) take("file", () => readQueryFile(one, dim()));
  };
  form.addEventListener("submit", (/** @type {Event} */ event) => {
    event.preventDefault();
    take("vector", async () => rowsOf(readNumbers(byId("vector").value, dim()), "what you pasted"));
  });
  file.addEventListener("change", () => takeFile(file.files[0]));
  for (const type of ["dragenter", "dragover"]) {
    area.addEventListener(type, (/** @type {DragEvent} */ event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      area.classList.add("dropping");
    });
  }
  area.addEventListener("dragleave", (/** @type {DragEvent} */ event) => {
    if (!area.contains(event.relatedTarget)) area.classList.remove("dropping");
  });
  area.addEventListener("drop", (/** @type {DragEvent} */ event) => {
    area.classList.remove("dropping");
    const dropped = event.dataTransfer?.files[0];
    if (!dropped) return;
    event.preventDefault();
    show();
    takeFile(dropped);
  });
}

/** Say what is wrong with a field, or nothing. @param {string} field @param {string} text */
function blame(field, text) {
  setText(byId(`${field}-error`), text);
  byId(field).setAttribute("aria-invalid", String(Boolean(text)));
  if (text) byId(field).focus();
}
