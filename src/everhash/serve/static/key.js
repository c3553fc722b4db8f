/** Asking for a key, once for all requests that miss it. */

import { byId, setText } from "./dom.js";

/**
 * @param {import("./api.js").Api} api
 * @param {() => void} given called when somebody has typed a key without being asked
 */
export function startKey(api, given) {
  const dialog = byId("key-dialog");
  const opener = byId("key-open");
  opener.hidden = !api.key;
  let refused = false;
  /** @type {Promise<boolean>|null} */
  let asking = null;
  byId("key-no").addEventListener("click", () => dialog.close("no"));

  /** One dialog, for as many as ask. @param {import("./api.js").ApiError|null} error */
  const askOnce = (error) => {
    asking ??= ask(api, dialog, error).then((typed) => {
      refused = !typed;
      asking = null;
      return typed;
    });
    return asking;
  };
  opener.addEventListener("click", async () => {
    if (await askOnce(null)) given();
  });
  api.askForKey = async (error) => {
    opener.hidden = false; // whoever says no now may come back to it
    // somebody who said no is asked again for what needs more rights, but not for every number
    return error.status === 401 && refused ? false : askOnce(error);
  };
}

/**
 * @param {import("./api.js").Api} api
 * @param {HTMLDialogElement} dialog
 * @param {import("./api.js").ApiError|null} error null if nobody was refused
 * @returns {Promise<boolean>} whether a key was given
 */
function ask(api, dialog, error) {
  setText(byId("key-reason"), reason(api, error));
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

/** Why a key is asked for. @param {import("./api.js").Api} api @param {any} error */
function reason(api, error) {
  if (error?.status === 403) return `Not enough: ${error.message}.`;
  if (error && api.key) return "The server does not know this key.";
  return api.key ? "Use another key instead." : "This server needs a key.";
}
