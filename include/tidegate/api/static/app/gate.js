// A gate, drawn: posts with a leaf that is up (open), down (held), or down while a sweep goes round.

import { html } from "../vendor/preact.js";

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
  const state = gate?.state || "open";
  return html`<span class=${`badge badge-${state}`}>
    <svg viewBox="0 0 10 10" width="10" height="10" aria-hidden="true" focusable="false">
      ${state === "open" && html`<circle cx="5" cy="5" r="4" />`}
      ${state === "held" && html`<rect x="1" y="1" width="8" height="8" />`}
      ${state === "sweeping" && html`<path d="M5 0.5 9.5 9H0.5z" />`}
    </svg>${GATE_WORDS[state] || state}
  </span>`;
}
