// One pipeline: the flow, its tables, what may be done with them.

import { html, useState } from "../vendor/preact.js";
import { holdGate, maintain, openGate, start, stop, sweep, verify } from "./actions.js";
import { pipelinePath } from "./api.js";
import { act } from "./dialog.js";
import { Flow } from "./flow.js";
import { ago } from "./format.js";
import { connect, liveStatus } from "./live.js";
import { useLoad } from "./load.js";
import { tableLink } from "./routes.js";
import { Loading, Said, Trouble } from "./states.js";
import { Tables } from "./tables.js";

export function PipelineView({ name }) {
  const [version, setVersion] = useState(0);
  const first = useLoad(`${pipelinePath(name)}/status?source=true`, version);
  const status = liveStatus(name) || first.data;
  const retry = () => {
    setVersion(version + 1);
    connect();
  };
  if (!status && first.problem) return html`<h1>${name}</h1><${Trouble} problem=${first.problem} retry=${retry} />`;
  if (!status) return html`<h1>${name}</h1><${Loading} />`;
  const source = first.data ? { ...status, source: first.data.source, capture_lag_bytes: first.data.capture_lag_bytes } : status;
  return html`
    <div class="head"><h1>${name}</h1><div class="actions">
      <button class="primary" onClick=${() => act(sweep(name, status.tables))}>Sweep …</button>
      <button onClick=${() => act(holdGate(name, status.tables))}>Hold …</button>
      <button onClick=${() => act(openGate(name, status.tables))}>Open …</button>
      <button onClick=${() => act(verify(name, status.tables))}>Verify …</button>
      <button onClick=${() => act(maintain(name, status.tables))}>Compact …</button>
      ${status.running?.state === "stopped"
        ? html`<button onClick=${() => act(start(name))}>Start …</button>`
        : html`<button onClick=${() => act(stop(name))}>Stop …</button>`}
    </div></div>
    <${Stopped} running=${status.running} />
    ${!status.deployed && html`<p class="notice">This pipeline is not deployed: nothing is captured. <code>tidegate deploy</code> makes its publication and slot.</p>`}
    ${first.problem && html`<p class="notice bad-notice">The source cannot be asked: ${first.problem.message}. ${first.problem.hint}</p>`}
    <${Guard} guard=${first.data?.guard} />
    <${Flow} status=${source} tables=${status.tables} link=${(table) => tableLink(name, table)} />
    <section class="panel"><h2>Tables</h2>
      <${Tables} pipeline=${name} tables=${status.tables} caption=${`Tables of ${name}`} /></section>`;
}

export function Stopped({ running }) {
  if (running?.state !== "stopped") return null;
  return html`<p class="notice">Stopped${running.actor && ` by ${running.actor}`} ${ago(running.since)}${running.reason && `: ${running.reason}`}. Nothing is captured or applied until <code>tidegate start</code>; the source keeps its WAL meanwhile.</p>`;
}

// Only what is wrong; a quiet guard takes no space.
function Guard({ guard }) {
  const found = (guard?.findings || []).filter((one) => one.verdict !== "ok");
  if (!found.length) return null;
  return html`<div class="notice"><h2>The source guard warns</h2><ul>
    ${found.map((one) => html`<li key=${one.check}><${Said} text=${`${one.says}. `} />${one.next && html`<span class="muted"><${Said} text=${one.next} /></span>`}</li>`)}
  </ul></div>`;
}
