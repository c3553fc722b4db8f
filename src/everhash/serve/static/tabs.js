/** The two ways to ask, as tabs. */

import { byId } from "./dom.js";

/**
 * Arrow keys go from one to the next, as people expect of tabs.
 * @returns {(id: string) => void} selects a tab
 */
export function startTabs() {
  const tabs = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("[role=tab]")]);
  const select = (/** @type {HTMLElement} */ tab) => {
    for (const each of tabs) {
      const chosen = each === tab;
      each.setAttribute("aria-selected", String(chosen));
      each.tabIndex = chosen ? 0 : -1;
      byId(each.getAttribute("aria-controls") ?? "").hidden = !chosen;
    }
  };
  tabs.forEach((tab, i) => {
    tab.addEventListener("click", () => select(tab));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = tabs[(i + step + tabs.length) % tabs.length];
      next.focus();
      select(next);
    });
  });
  return (id) => select(byId(id));
}
