// One pipeline: what is wrong, its figures and flow, its tables and what ran.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { holdGate, maintain, openGate, start, stop, sweep, verify } from "./actions.js";
import { pipelinePath } from "./api.js";
import { Attention, guarded } from "./attention.js";
import { DayPlot } from "./bars.js";
import { act } from "./dialog.js";
import { Finder } from "./finder.js";
import { Flow, heldWord, sourceWord } from "./flow.js";
import { ago, bytes, count, position, seconds } from "./format.js";
import { GateBar } from "./gate.js";
import { connect, live, liveOverview, seed } from "./live.js";
import { useLoad } from "./load.js";
import { pipelineLink, tableLink } from "./routes.js";
import { Runs } from "./runs.js";
import { Loading, Trouble } from "./states.js";
import { TableList } from "./table_list.js";

const TABS = { tables: "Tables", runs: "Runs", flow: "Flow" };

export function PipelineView({ name, tab, chosen }) {
  const [version, setVersion] = useState(0);
  const asked = useRef(live.value.at ? null : "overview"); // the socket has told already, or will
  const first = useLoad(asked.current, version);
  const seen = useLoad(`${pipelinePath(name)}/status?source=true`, version); // once, not with every figure
  useEffect(() => first.data && seed(first.data), [first.data]);
  const retry = () => {
    setVersion(version + 1);
    connect();
  };
  const now = liveOverview(name);
  const broken = live.value.pipelines.get(name)?.problem;
  if (!now && (broken || first.problem || (first.data && seen.problem))) {
    const problem = broken ? { message: broken.detail, hint: broken.hint, code: broken.code, title: broken.title } : first.problem || seen.problem;
    return html`<h1>${name}</h1><${Trouble} problem=${problem} retry=${retry} />`;
  }
  if (!now) return html`<h1>${name}</h1><${Loading} />`;
  const source = { ...now, source: seen.data?.source, capture_lag_bytes: seen.data?.capture_lag_bytes };
  const current = TABS[tab] ? tab : "tables";
  return html`
    <div class="head"><h1>${name}</h1><${Actions} name=${name} now=${now} /></div>
    <${Attention} glances=${[{ name, overview: now }]} single more=${guarded(seen.data?.guard)} />
    ${seen.problem && html`<p class="notice bad-notice">The source cannot be asked: ${seen.problem.message}. ${seen.problem.hint}</p>`}
    <${Figures} name=${name} now=${source} />
    <section class="panel">
      <nav class="tabs" aria-label="About this pipeline">
        ${Object.entries(TABS).map(([key, title]) => html`<a key=${key} href=${pipelineLink(name, key === "tables" ? "" : key)} aria-current=${key === current ? "page" : undefined}>${title}</a>`)}
      </nav>
      <div class="tab">${current === "runs" ? html`<${Runs} pipeline=${name} version=${now.activity.rows_day} />`
        : current === "flow" ? html`<${Flow} status=${source} tables=${now.lines} link=${(table) => tableLink(name, table)} />`
        : html`<${Finder} label=${`Tables of ${name}`} chosen=${chosen} lines=${now.lines} />
            <${TableList} pipeline=${name} lines=${now.lines} chosen=${chosen} caption=${`Tables of ${name}`} />`}</div>
    </section>`;
}

// What may be done with several tables; none of it is what a healthy pipeline waits for.
function Actions({ name, now }) {
  const { lines } = now;
  return html`<div class="actions">
    <button onClick=${() => act(verify(name, lines))}>Verify …</button>
    <button onClick=${() => act(holdGate(name, lines))}>Hold …</button>
    <button onClick=${() => act(openGate(name, lines))}>Open …</button>
    <button onClick=${() => act(sweep(name, lines))}>Sweep …</button>
    <button onClick=${() => act(maintain(name, lines))}>Compact …</button>
    ${now.running?.state === "stopped"
      ? html`<button onClick=${() => act(start(name))}>Start …</button>`
      : html`<button onClick=${() => act(stop(name))}>Stop …</button>`}
  </div>`;
}

function Figures({ name, now }) {
  return html`<section class="panel figures"><dl class="facts">
    <div><dt>Tables</dt><dd>${count(now.tables)}<span class="sub"><${GateBar} gates=${now.gates} /></span></dd></div>
    <div><dt>Worst lag</dt><dd>${seconds(now.worst_lag_seconds)}<span class="sub">${now.worst_lag_table ? html`<a href=${tableLink(name, now.worst_lag_table)}>${now.worst_lag_table}</a> ${bytes(now.worst_lag_bytes)}` : "no table is behind"}</span></dd></div>
    <div><dt>Source</dt><dd>${sourceWord(now)}<span class="sub">${heldWord(now.source)}</span></dd></div>
    <div><dt>Captured through</dt><dd class="mono">${position(now.captured_through)}<span class="sub">${ago(now.captured_at)}</span></dd></div>
    <div><dt>Dead letters</dt><dd>${now.dead_letters ? html`<a class="bad" href=${pipelineLink(name, "", { state: "letters" })}>${count(now.dead_letters)}</a>` : "0"}</dd></div>
    <div><dt>Proven</dt><dd>${Math.floor(now.proven_share)} %<span class="sub">${count(now.proven_tables)} of ${count(now.tables)} tables in full</span></dd></div>
  </dl><${DayPlot} title="Changes" activity=${now.activity} /></section>`;
}
