// What a table is in: word, shape and colour, in one place. The word tells; colour only repeats it.

import { html } from "../vendor/preact.js";

// Worst first. shape: circle | square | triangle | diamond | ring | cross
const KNOWN = {
  broken: { word: "broken", tone: "bad", shape: "cross" },
  differs: { word: "differs", tone: "bad", shape: "cross" },
  failing: { word: "failing", tone: "bad", shape: "cross" },
  source: { word: "source", tone: "held", shape: "diamond" },
  held: { word: "held", tone: "held", shape: "square" },
  letters: { word: "dead letters", tone: "held", shape: "diamond" },
  needs: { word: "needs a sweep", tone: "held", shape: "diamond" },
  lagging: { word: "lagging", tone: "held", shape: "diamond" },
  stopped: { word: "stopped", tone: "held", shape: "square" },
  not_deployed: { word: "not deployed", tone: "held", shape: "square" },
  sweeping: { word: "sweeping", tone: "sweeping", shape: "triangle" },
  unproven: { word: "unproven", tone: "plain", shape: "ring" },
  healthy: { word: "healthy", tone: "open", shape: "circle" },
  open: { word: "open", tone: "open", shape: "circle" },
  done: { word: "done", tone: "open", shape: "circle" },
  failed: { word: "failed", tone: "bad", shape: "cross" },
  queued: { word: "waiting", tone: "plain", shape: "ring" },
  running: { word: "running", tone: "sweeping", shape: "triangle" },
};
const SHAPES = {
  circle: html`<circle cx="5" cy="5" r="4" />`,
  ring: html`<path d="M5 0.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 0 0 0-9zM5 2.5a2.5 2.5 0 1 1 0 5a2.5 2.5 0 0 1 0-5z" fill-rule="evenodd" />`,
  square: html`<path d="M1 1h8v8H1z" />`,
  triangle: html`<path d="M5 0.5 9.5 9H0.5z" />`,
  diamond: html`<path d="M5 0 10 5 5 10 0 5z" />`,
  cross: html`<path d="M2 0.6 5 3.6 8 0.6 9.4 2 6.4 5l3 3L8 9.4l-3-3-3 3L0.6 8l3-3-3-3z" />`,
};

// Those that are chosen from, worst first.
export const STATES = ["differs", "failing", "held", "letters", "needs", "lagging", "sweeping", "unproven", "healthy"];

export const conditionWord = (name) => KNOWN[name]?.word || name;

export function Mark({ name }) {
  return html`<svg class="mark" viewBox="0 0 10 10" width="10" height="10" aria-hidden="true" focusable="false">${SHAPES[KNOWN[name]?.shape || "ring"]}</svg>`;
}

export function Badge({ name, word }) {
  return html`<span class=${`badge badge-${KNOWN[name]?.tone || "plain"}`}><${Mark} name=${name} />${word || conditionWord(name)}</span>`;
}

export const isIn = (line, state) => (state === "healthy" ? line.state === "healthy" : line.conditions.includes(state));
