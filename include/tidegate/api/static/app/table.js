// One table, closely: where it stands, what happened, what it is made of.

import { html, useState } from "../vendor/preact.js";
import { holdGate, maintain, openGate, setOffset, sweep, verify } from "./actions.js";
import { query, tablePath } from "./api.js";
import { Badge } from "./conditions.js";
import { act, finished } from "./dialog.js";
import { Files } from "./files.js";
import { Flow } from "./flow.js";
import { ago, bytes, clock, count, plural, position, rate, seconds } from "./format.js";
import { GateBadge } from "./gate.js";
import { Letters } from "./letters.js";
import { connect, liveOverview } from "./live.js";
import { useLoad } from "./load.js";
import { Plot } from "./plot.js";
import { tableLink } from "./routes.js";
import { RowHistory } from "./row_history.js";
import { Schema } from "./schema.js";
import { Snapshots } from "./snapshots.js";
import { Loading, Said, Trouble } from "./states.js";
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
  const now = liveOverview(pipeline);
  const moved = now?.lines.find((one) => one.table === table);
  // Asked again when the live state says that something changed.
  const version = `${tries} ${finished.value} ${moved?.snapshot_id} ${JSON.stringify(moved?.gate)} ${moved?.dead_letters} ${moved?.proven} ${moved?.differs}`;
  const { data, problem } = useLoad(tablePath(pipeline, table), version);
  const retry = () => {
    setTries(tries + 1);
    connect();
  };
  if (!data) return html`<h1>${table}</h1>${problem ? html`<${Trouble} problem=${problem} retry=${retry} />` : html`<${Loading} />`}`;
  const status = { ...data.status, ...live(moved) };
  const chosen = TABS[tab] ? tab : "timeline";
  return html`
    <${Head} pipeline=${pipeline} status=${status} held=${data.held} />
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

// What the socket tells at once; the rest comes with the next answer.
function live(line) {
  if (!line) return {};
  const { gate, lag_seconds, lag_bytes, rows, snapshot_id, snapshot_at, dead_letters, position: at, needs } = line;
  return { gate, lag_seconds, lag_bytes, rows, snapshot_id, snapshot_at, dead_letters, position: at, needs, conditions: line.conditions, action: line.action };
}

function Head({ pipeline, status, held }) {
  const { table, gate } = status;
  const one = [status];
  // The button that helps stands out; on a healthy table none does.
  const helps = status.action === "approve" ? "open" : status.action; // nothing to approve any more
  const loud = (...names) => (!held && names.includes(helps) ? "primary" : undefined);
  return html`<div class="head"><h1>${table}</h1><${GateBadge} gate=${gate} />
    <span class="muted">${status.lake_table} · ${status.write_mode}</span>
    <div class="actions">
      ${held && html`<a class="button primary" href=${tableLink(pipeline, table, "schema")}>Look at it and approve it</a>`}
      ${gate.state === "open"
        ? html`<button onClick=${() => act(holdGate(pipeline, one))}>Hold …</button>`
        : html`<button class=${loud("open")} onClick=${() => act(openGate(pipeline, one))}>Open …</button>`}
      <button class=${loud("verify", "repair")} onClick=${() => act(verify(pipeline, one))}>Verify …</button>
      <button class=${loud("sweep")} onClick=${() => act(sweep(pipeline, one))}>Sweep …</button>
      <button onClick=${() => act(maintain(pipeline, one))}>Compact …</button>
      ${status.position && html`<button onClick=${() => act(setOffset(pipeline, status))}>Set position …</button>`}
    </div></div>`;
}

// Why its changes do not flow, or flow with trouble: fields, with the way on.
function Notices({ pipeline, status, held }) {
  const { gate, conditions = [] } = status;
  const failed = conditions.includes("failing") && !gate.failed ? newest(status) : null;
  return html`
    ${status.needs && gate.state === "open" && html`<${Notice} title=${`This table needs ${status.needs}`} next="No change reaches it before that." />`}
    ${gate.state === "held" && html`<${Notice} title=${held ? "A schema change holds this table" : "Held"} why=${gate.reason || "no reason was given"} by=${gate.actor} since=${gate.since} run=${gate.run}
      next=${held ? "Its changes wait in the change log until the change is approved." : "Its changes wait in the change log until the gate is opened."} />`}
    ${gate.failed && html`<${Notice} bad title="The sweep failed" why=${gate.failed.reason || "no reason was given"} by=${gate.actor} since=${gate.failed.at} run=${gate.run}
      next="Sweep … goes on where it ended; Open … with “give up” abandons it. Readers see the rows from before; changes wait in the change log." />`}
    ${gate.before && html`<${Notice} title="Held before" why=${gate.before.reason || "no reason was given"} by=${gate.before.actor} since=${gate.before.since} next="This is still to be mended." />`}
    ${gate.state === "sweeping" && !gate.failed && html`<${Notice} plain title="Being swept" why=${gate.reason} by=${gate.actor} since=${gate.since} run=${gate.run} next="Readers see the rows from before; changes wait in the change log." />`}
    ${failed && html`<${Notice} bad title="The last run failed" why=${failed.error?.message || failed.reason} code=${failed.error?.code} since=${failed.at} run=${failed.run} next=${failed.error?.hint} />`}
    ${status.dead_letters > 0 && html`<${Notice} title=${`${plural(status.dead_letters, "change")} could not be applied`} next=${html`<a href=${tableLink(pipeline, status.table, "letters")}>Look at the dead letters</a>`} />`}`;
}

function newest({ last_apply: applied, last_sweep: swept }) {
  if (!applied || !swept) return applied || swept;
  return applied.at > swept.at ? applied : swept;
}

function Notice({ title, why, code, by, since, run, next, bad, plain }) {
  const said = typeof next === "string" ? html`<${Said} text=${next} />` : next;
  const fields = [["Why", why], ["Code", code && html`<code>${code}</code>`], ["By", by], ["Since", since && html`<time datetime=${since}>${clock(since)}</time>, ${ago(since)}`], ["Run", run && html`<code>${run}</code>`], ["Next", said]];
  return html`<section class=${`notice ${bad ? "bad-notice" : plain ? "plain-notice" : ""}`} aria-label=${title}><h2>${title}</h2>
    <dl class="fields">${fields.filter(([, value]) => value).map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl></section>`;
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
    <section class="panel"><${Plot} title="Lag of each snapshot" times=${times} values=${points.map((point) => point.lag_seconds)} format=${seconds} group=${table} /></section>
    <section class="panel"><${Plot} title="Rows per second" times=${times} values=${points.map((point) => point.rows_per_second)} format=${rate} group=${table} /></section>
  </div>`;
}

function Verified({ proof }) {
  if (!proof) return html`<span class="muted">never verified</span>`;
  if (proof.differs) return html`<${Badge} name="differs" /><span class="sub">${ago(proof.last_at)}</span>`;
  if (!proof.position) return html`<span class="muted">nothing proven</span>${proof.withdrawn && html`<span class="sub">${proof.withdrawn}</span>`}`;
  return html`<span class="mono">${position(proof.position)}</span>
    <span class="sub">${Math.round(proof.coverage)} % of keys, ${ago(proof.at)}</span>`;
}
