/** Asking for a key, once for all requests that miss it. */

import { byId, setText } from "./dom.js";

/**
 * @param {import("./api.js").Api} api
 * @returns {() => void} call it to be asked again after a refusal
 */
export function startKey(api) {
  const dialog = byId("key-dialog");
  let refused = false;
  /** @type {Promise<boolean>|null} */
  let asking = null;
  byId("key-no").addEventListener("click", () => dialog.close("no"));

  api.askForKey = (error) => {
    // somebody who said no is asked again for what needs more rights, but not for every number
    if (error.status === 401 && refused) return Promise.resolve(false);
    asking ??= ask(api, dialog, error).then((given) => {
      refused = !given;
      asking = null;
      return given;
    });
    return asking;
  };
  return () => (refused = false);
}

/**
 * @param {import("./api.js").Api} api
 * @param {HTMLDialogElement} dialog
 * @param {import("./api.js").ApiError} error
 * @returns {Promise<boolean>} whether a key was given
 */
function ask(api, dialog, error) {
  const unknown = api.key ? "The server does not know this key." : "This server needs a key.";
  setText(byId("key-reason"), error.status === 403 ? `${error.message}.` : unknown);
  byId("key").value = "";
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    const closed = () => {
      const key = byId("key").value.trim();
      const given = dialog.returnValue !== "no" && key !== "";
      if (given) api.key = key;
      resolve(given);
    };
    dialog.addEventListener("close", closed, { once: true });
  });
}
