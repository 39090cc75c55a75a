// Changes per half hour of the last day. Everything has the same axis, so bars stand below each other;
// a half hour in which nothing ran is a gap, one in which nothing changed a line on the ground.

import { html } from "../vendor/preact.js";
import { count, plural } from "./format.js";

const SLOTS = 48;
const UNIT = 3; // a bar of two, a space of one
const WIDTH = SLOTS * UNIT;

// [[slot, changes, failures, rows of sweeps], …]
export function Bars({ bars, label, height = 22 }) {
  if (!bars.length) return html`<span class="muted">no run</span>`;
  const top = Math.max(1, ...bars.map(([, rows]) => rows));
  const rows = bars.reduce((sum, [, number]) => sum + number, 0);
  const failed = bars.reduce((sum, [, , number]) => sum + number, 0);
  const swept = bars.filter(([, , , number]) => number);
  const said = `${label}: ${plural(rows, "change")} in 24 hours${swept.length ? ", swept" : ""}${failed ? `, ${plural(failed, "failure")}` : ""}`;
  return html`<svg class="bars" viewBox=${`0 0 ${WIDTH} ${height}`} width=${WIDTH} height=${height} preserveAspectRatio="none" role="img" aria-label=${said}>
    <path class="bars-ground" d=${`M0 ${height - 0.5}H${WIDTH}`} />
    <path class="bars-rows" d=${bars.filter(([, number]) => number).map((bar) => column(bar, top, height)).join("")} />
    <path class="bars-idle" d=${bars.filter(([, number]) => !number).map(([slot]) => `M${slot * UNIT} ${height - 1}h2`).join("")} />
    ${swept.length > 0 && html`<path class="bars-swept" d=${swept.map(([slot]) => `M${slot * UNIT} ${height - 1}h2`).join("")} />`}
    ${failed > 0 && html`<path class="bars-failed" d=${bars.filter(([, , number]) => number).map(([slot]) => `M${slot * UNIT} 0h2v3h-2z`).join("")} />`}
  </svg>`;
}

function column([slot, rows], top, height) {
  const tall = Math.max(1.5, (rows / top) * (height - 4));
  return `M${slot * UNIT} ${(height - tall).toFixed(1)}h2V${height}h-2z`;
}

export const barsOf = ({ rows, failed, swept }) =>
  rows.flatMap((number, slot) => (number == null ? [] : [[slot, number, failed[slot], swept[slot]]]));

// The same, large, with its axis in words.
export function DayPlot({ title, activity }) {
  const bars = barsOf(activity);
  const from = new Date(activity.since).getTime();
  const slot = activity.bucket_seconds * 1000;
  const hours = [0, 12, 24, 36].map((place) => new Date(from + place * slot).toLocaleTimeString("sv").slice(0, 5));
  return html`<figure class="plot day"><figcaption>${title} <span class="muted">${count(activity.rows_hour)} in the last hour, ${count(activity.rows_day)} in 24 hours</span></figcaption>
    <${Bars} bars=${bars} label=${title} height=${64} />
    <div class="day-axis" aria-hidden="true">${[...hours, "now"].map((word, place) => html`<span key=${place}>${word}</span>`)}</div></figure>`;
}
