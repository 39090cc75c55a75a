// A gate, drawn: posts with a leaf that is up (open), down (held), or down while a sweep goes round.

import { html } from "../vendor/preact.js";
import { Badge } from "./conditions.js";
import { count } from "./format.js";

export const GATE_WORDS = { open: "open", held: "held", sweeping: "sweeping" };

export function GateGlyph({ state }) {
  const shut = state !== "open";
  return html`<svg class=${`gate-glyph gate-${state}`} viewBox="0 0 48 36" width="48" height="36" aria-hidden="true" focusable="false">
    <path class="gate-water" d="M0 26h48" />
    ${shut && html`<path class="gate-dry" d="M27 26h21" />`}
    <path class="gate-post" d="M15 6v26M33 6v26M12 6h24" />
    ${shut ? html`<path class="gate-leaf" d="M18 16h12v14H18z" />` : html`<path class="gate-leaf" d="M18 8h12v7H18z" />`}
    ${state === "sweeping" && html`<path class="gate-sweep" d="M2 26C6 -4 42 -4 46 22M46 22l-5 -3M46 22l2 -6" />`}
  </svg>`;
}

// The word and the shape tell the state; colour only repeats it.
export function GateBadge({ gate }) {
  return html`<${Badge} name=${gate?.state || "open"} />`;
}

const BAR = 96;

// How many gates are in which state: a bar in proportion, and the words.
export function GateBar({ gates }) {
  const found = Object.keys(GATE_WORDS).map((state) => [state, gates[state] || 0]);
  const all = found.reduce((sum, [, number]) => sum + number, 0) || 1;
  let at = 0;
  const parts = found.filter(([, number]) => number).map(([state, number]) => {
    const wide = Math.max(3, (number / all) * BAR); // one of 500 is seen, too
    const part = html`<path key=${state} class=${`gate-part gate-part-${state}`} d=${`M${at.toFixed(1)} 0h${wide.toFixed(1)}v8H${at.toFixed(1)}z`} />`;
    at += wide;
    return part;
  });
  const closed = found.filter(([state, number]) => state !== "open" && number);
  return html`<span class="gate-bar"><svg viewBox=${`0 0 ${at.toFixed(1)} 8`} width=${BAR} height="8" preserveAspectRatio="none" aria-hidden="true" focusable="false">${parts}</svg>
    <span>${closed.length ? closed.map(([state, number]) => `${count(number)} ${GATE_WORDS[state]}`).join(", ") : "all open"}</span></span>`;
}
