/** Light and dark: as the system says, until somebody chooses. */

import { byId } from "./dom.js";

const CHOICE = "everhash-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

/** Whether the page is dark now. */
export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : dark.matches;
}

/**
 * Bring up the switch, and say when colours have changed.
 * @param {() => void} changed
 */
export function startTheme(changed) {
  const button = byId("theme");
  const show = () => {
    button.setAttribute("aria-pressed", String(isDark()));
    changed();
  };
  const chosen = localStorage.getItem(CHOICE);
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  button.addEventListener("click", () => {
    const next = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    localStorage.setItem(CHOICE, next);
    show();
  });
  dark.addEventListener("change", show);
  show();
}
