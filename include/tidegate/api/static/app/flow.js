// The flow: source → change log → a gate per table → lake table → sinks.

import { html } from "../vendor/preact.js";
import { bytes, plural, position, seconds } from "./format.js";
import { GateBadge, GateGlyph } from "./gate.js";

const LANES = 4; // closed gates are shown one by one up to here; the rest is counted

export function Flow({ status, tables, link }) {
  const lanes = lanesOf(tables);
  return html`<figure class="flow" aria-label="The way of a change, from source to lake">
    <div class="flow-box">
      <span class="flow-kind">source</span>
      <strong>${sourceWord(status)}</strong>
      <span class="muted">${heldWord(status.source)}</span>
    </div>
    <div class="flow-line" aria-hidden="true"></div>
    <div class="flow-box">
      <span class="flow-kind">change log</span>
      <strong class="mono">${position(status.captured_through)}</strong>
      <span class="muted">${status.capture_lag_bytes == null ? (status.deployed ? "captured through" : "not deployed") : `${bytes(status.capture_lag_bytes)} behind`}</span>
    </div>
    <div class="flow-line" aria-hidden="true"></div>
    <ul class="flow-lanes">
      ${lanes.map((lane) => html`<${Lane} key=${lane.name} lane=${lane} link=${link} sinks=${status.sinks} />`)}
    </ul>
  </figure>`;
}

export function heldWord(source) {
  if (source && !source.reachable) return "asked just now";
  if (source?.by_time) return source.expiry_seconds == null ? "keeps its log" : `keeps its log ${seconds(source.expiry_seconds)}`;
  return source?.retained_bytes == null ? "not asked" : `${bytes(source.retained_bytes)} held`;
}

function Lane({ lane, link, sinks }) {
  const name = lane.table && link ? html`<a href=${link(lane.table)}>${lane.name}</a>` : lane.name;
  return html`<li class=${`flow-lane lane-${lane.state}`}>
    <${GateGlyph} state=${lane.state} />
    <div class="flow-box">
      <span class="flow-kind"><${GateBadge} gate=${{ state: lane.state }} /></span>
      <strong>${name}</strong>
      <span class="muted">${lane.note}</span>
    </div>
    ${(sinks || []).length > 0 && html`<div class="flow-line" aria-hidden="true"></div><div class="flow-box"><span class="flow-kind">sinks</span><strong>${sinks.join(", ")}</strong></div>`}
  </li>`;
}

function lanesOf(tables) {
  const closed = tables.filter((table) => table.gate.state !== "open");
  const open = tables.filter((table) => table.gate.state === "open");
  const shown = closed.slice(0, LANES).map(single);
  const more = closed.slice(LANES);
  if (more.length) shown.push({ name: `${plural(more.length, "more table")}`, state: more[0].gate.state, note: "closed" });
  if (open.length === 1 || (open.length && tables.length <= LANES)) return [...open.map(single), ...shown];
  if (open.length) shown.unshift({ name: plural(open.length, "table"), state: "open", note: worst(open) });
  return shown;
}

function single(table) {
  const state = table.gate.state;
  const notes = {
    open: table.needs ? `needs ${table.needs}` : `${seconds(table.lag_seconds)} behind`,
    held: table.gate.reason || "changes wait in the change log",
    sweeping: "re-read into a branch; changes wait in the change log",
  };
  return { name: table.table, table: table.table, state, note: notes[state] };
}

function worst(tables) {
  const lag = Math.max(...tables.map((table) => table.lag_seconds ?? 0));
  return `at most ${seconds(lag)} behind`;
}

const KINDS = { postgres: "PostgreSQL", mysql: "MySQL" };

export function sourceWord(status) {
  if (!status.source) return KINDS[status.source_type] || status.source_type || "–";
  return status.source.reachable ? "reachable" : "not reachable";
}
