// Search and states: one row of choices, kept in the address. What they let through is decided here.

import { html, useEffect, useRef } from "../vendor/preact.js";
import { Mark, STATES, conditionWord, isIn } from "./conditions.js";
import { count } from "./format.js";
import { choose, chosenLink } from "./routes.js";

export function Finder({ label, chosen, lines }) {
  const field = useRef(null);
  useEffect(() => {
    // Whoever came by a link to some state wants to see those tables, not what stands above them.
    const box = field.current.closest(".finder");
    if (chosen.state && box.getBoundingClientRect().top > innerHeight / 2) box.scrollIntoView();
  }, [chosen.state]);
  useEffect(() => {
    const slash = (event) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target.closest?.("input, select, textarea, dialog")) return;
      event.preventDefault();
      field.current.focus();
    };
    addEventListener("keydown", slash);
    return () => removeEventListener("keydown", slash);
  }, []);
  const found = STATES.map((state) => [state, lines.filter((line) => isIn(line, state)).length]);
  const shown = found.filter(([state, number]) => number || state === chosen.state);
  return html`<div class="finder" role="search" aria-label=${label}>
    <label class="find"><span class="visually-hidden">Search tables</span>
      <input ref=${field} type="search" placeholder="Search tables  ( / )" maxlength="200" autocomplete="off" spellcheck=${false}
        value=${chosen.q || ""} onInput=${(event) => choose({ q: event.target.value })} /></label>
    <ul class="chips" aria-label="Tables by state">
      <${Chip} state="" chosen=${chosen.state} number=${lines.length} />
      ${shown.map(([state, number]) => html`<${Chip} key=${state} state=${state} chosen=${chosen.state} number=${number} />`)}
    </ul>
  </div>`;
}

function Chip({ state, chosen = "", number }) {
  const on = state === chosen;
  return html`<li><a class=${`chip chip-${state || "all"}`} href=${chosenLink({ state: on ? "" : state })} aria-current=${on ? "true" : undefined}>
    ${state && html`<${Mark} name=${state} />`}${state ? conditionWord(state) : "all"} <b>${count(number)}</b></a></li>`;
}

// A name is found by its parts in any order; a state by being one of the table's conditions.
export function matching(lines, { q = "", state = "" }, pipeline = "") {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length && !state) return lines;
  return lines.filter((line) => {
    const name = `${pipeline} ${line.table}`.toLowerCase();
    return words.every((word) => name.includes(word)) && (!state || isIn(line, state));
  });
}
