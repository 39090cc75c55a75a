// One table, closely: where it stands, what happened, what it is made of.

import { html, useState } from "../vendor/preact.js";
import { holdGate, maintain, openGate, setOffset, sweep, verify } from "./actions.js";
import { query, tablePath } from "./api.js";
import { act, finished } from "./dialog.js";
import { Files } from "./files.js";
import { Flow } from "./flow.js";
import { ago, bytes, clock, count, position, rate, seconds } from "./format.js";
import { GateBadge } from "./gate.js";
import { Letters } from "./letters.js";
import { connect, liveStatus } from "./live.js";
import { useLoad } from "./load.js";
import { Plot } from "./plot.js";
import { tableLink } from "./routes.js";
import { RowHistory } from "./row_history.js";
import { Schema } from "./schema.js";
import { Snapshots } from "./snapshots.js";
import { Loading, Trouble } from "./states.js";
import { Verified } from "./tables.js";
import { Timeline } from "./timeline.js";

const TABS = {
  timeline: { title: "Timeline", view: Timeline },
  snapshots: { title: "Snapshots", view: Snapshots },
  schema: { title: "Schema", view: Schema },
  files: { title: "Files", view: Files },
  letters: { title: "Dead letters", view: Letters },
  row: { title: "A row's history", view: RowHistory },
};

export function TableView({ pipeline, table, tab }) {
  const [tries, setTries] = useState(0);
  const now = liveStatus(pipeline);
  const moved = now?.tables.find((one) => one.table === table);
  // Asked again when the live state says that something changed.
  const version = `${tries} ${finished.value} ${moved?.snapshot_id} ${moved?.gate.state} ${moved?.dead_letters}`;
  const { data, problem } = useLoad(tablePath(pipeline, table), version);
  const retry = () => {
    setTries(tries + 1);
    connect();
  };
  if (!data) return html`<h1>${table}</h1>${problem ? html`<${Trouble} problem=${problem} retry=${retry} />` : html`<${Loading} />`}`;
  const status = { ...data.status, ...moved };
  const chosen = TABS[tab] ? tab : "timeline";
  return html`
    <${Head} pipeline=${pipeline} status=${status} />
    ${problem && html`<${Trouble} problem=${problem} retry=${retry} />`}
    <${Notices} pipeline=${pipeline} status=${status} held=${data.held} />
    <${Flow} status=${now || { deployed: true }} tables=${[status]} />
    <${Facts} status=${status} files=${data.files} />
    <${Plots} pipeline=${pipeline} table=${table} version=${status.snapshot_id} />
    <section class="panel">
      <nav class="tabs" aria-label="About this table">
        ${Object.entries(TABS).map(([key, { title }]) => html`<a key=${key} href=${tableLink(pipeline, table, key)} aria-current=${key === chosen ? "page" : undefined}>${title}${key === "letters" && status.dead_letters ? ` (${status.dead_letters})` : ""}</a>`)}
      </nav>
      <div class="tab"><${TABS[chosen].view} pipeline=${pipeline} table=${table} detail=${data} status=${status} version=${version} /></div>
    </section>`;
}

function Head({ pipeline, status }) {
  const { table, gate } = status;
  const one = [status];
  return html`<div class="head"><h1>${table}</h1><${GateBadge} gate=${gate} />
    <span class="muted">${status.lake_table} · ${status.write_mode}</span>
    <div class="actions">
      <button class="primary" onClick=${() => act(sweep(pipeline, one))}>Sweep …</button>
      ${gate.state === "open"
        ? html`<button onClick=${() => act(holdGate(pipeline, one))}>Hold …</button>`
        : html`<button onClick=${() => act(openGate(pipeline, one))}>Open …</button>`}
      <button onClick=${() => act(verify(pipeline, one))}>Verify …</button>
      <button onClick=${() => act(maintain(pipeline, one))}>Compact …</button>
      ${status.position && html`<button onClick=${() => act(setOffset(pipeline, status))}>Set position …</button>`}
    </div></div>`;
}

function Notices({ pipeline, status, held }) {
  const { gate } = status;
  return html`
    ${status.needs && html`<p class="notice">This table needs ${status.needs} before changes flow.</p>`}
    ${held ? html`<p class="notice">A schema change holds this table. <a href=${tableLink(pipeline, status.table, "schema")}>Look at it and approve it</a></p>`
      : gate.state === "held" && html`<p class="notice">Held${gate.actor && ` by ${gate.actor}`} ${gate.since && ago(gate.since)}: ${gate.reason || "no reason was given"}. Its changes wait in the change log.</p>`}
    ${gate.failed && html`<p class="notice">The sweep failed ${ago(gate.failed.at)}: ${gate.failed.reason || "no reason was given"}. Readers see the rows from before; changes wait in the change log. <b>Sweep …</b> goes on where it ended, <b>Open …</b> with “give up” abandons it.</p>`}
    ${gate.before && html`<p class="notice">Held before, ${ago(gate.before.since)}${gate.before.actor && ` by ${gate.before.actor}`}: ${gate.before.reason || "no reason was given"}.</p>`}
    ${gate.state === "sweeping" && !gate.failed && html`<p class="notice plain-notice">Being swept${gate.run && html` by run <code>${gate.run}</code>`} since ${clock(gate.since)}. Readers see the rows from before; changes wait in the change log.</p>`}`;
}

function Facts({ status, files }) {
  return html`<dl class="facts panel">
    <div><dt>Lag</dt><dd>${seconds(status.lag_seconds)}<span class="sub">${bytes(status.lag_bytes)} of log</span></dd></div>
    <div><dt>Applied position</dt><dd class="mono">${position(status.position)}</dd></div>
    <div><dt>Last snapshot</dt><dd>${ago(status.snapshot_at)}<span class="sub mono">${status.snapshot_id || ""}</span></dd></div>
    <div><dt>Rows</dt><dd>${count(status.rows)}</dd></div>
    <div><dt>Files</dt><dd>${files ? `${count(files.data_files)} data, ${count(files.delete_files)} delete` : "–"}<span class="sub">${files ? bytes(files.bytes) : ""}</span></dd></div>
    <div><dt>Verified through</dt><dd><${Verified} proof=${status.verified_through} /></dd></div>
  </dl>`;
}

function Plots({ pipeline, table, version }) {
  const { data } = useLoad(query(`${tablePath(pipeline, table)}/series`, { limit: 200 }), version);
  const points = data?.points || [];
  if (points.filter((point) => point.lag_seconds != null).length < 2) return null; // a dot is no plot
  const times = points.map((point) => new Date(point.at).getTime() / 1000);
  return html`<div class="columns">
    <section class="panel"><${Plot} title="Lag of each snapshot" times=${times} values=${points.map((point) => point.lag_seconds)} format=${seconds} /></section>
    <section class="panel"><${Plot} title="Rows per second" times=${times} values=${points.map((point) => point.rows_per_second)} format=${rate} /></section>
  </div>`;
}
