// What ran: work that was started from here with its log, and every run that left a report.

import { html, useState } from "../vendor/preact.js";
import { pipelinePath, query } from "./api.js";
import { Badge } from "./conditions.js";
import { finished } from "./dialog.js";
import { clock, count, plural, seconds } from "./format.js";
import { followTop } from "./links.js";
import { useLoad, usePages } from "./load.js";
import { tableLink } from "./routes.js";
import { Run } from "./run.js";
import { Empty, Loading, Said, Trouble } from "./states.js";

const PAGE = 25;
const STARTED = 10;

export function Runs({ pipeline, version }) {
  const again = `${version} ${finished.value}`;
  return html`<${Started} pipeline=${pipeline} version=${again} /><${Reports} pipeline=${pipeline} version=${again} />`;
}

function Started({ pipeline, version }) {
  const [open, setOpen] = useState(null);
  const { data, problem } = useLoad(query(`${pipelinePath(pipeline)}/runs`, { limit: STARTED }), version);
  if (problem) return html`<${Trouble} problem=${problem} />`;
  if (!data?.length) return null;
  const chosen = data.find((run) => run.id === open);
  return html`<h2>Started from this page or the API</h2>
    <div class="scroll"><table class="cards"><caption class="visually-hidden">Work that was started, newest first</caption>
      <thead><tr><th scope="col">Work</th><th scope="col">State</th><th scope="col">Tables</th><th scope="col">Started</th><th scope="col">By</th><th scope="col">Log</th></tr></thead>
      <tbody>${data.map((run) => html`<tr key=${run.id}>
        <th scope="row">${run.verb}${run.options.dry_run ? " (dry run)" : ""}<span class="sub mono">${run.id}</span></th>
        <td data-label="State"><${Badge} name=${run.state} />${run.error?.message && html`<span class="sub reason" title=${run.error.message}>${run.error.message}</span>`}</td>
        <td data-label="Tables">${named(pipeline, run.options.tables || [])}</td>
        <td data-label="Started" class="nowrap">${clock(run.started_at)}</td>
        <td data-label="By">${run.started_by}</td>
        <td data-label="Log"><div class="actions"><button class="small" aria-expanded=${open === run.id} onClick=${() => setOpen(open === run.id ? null : run.id)}>Log<span class="visually-hidden"> of ${run.id}</span></button>
          ${run.link && html`<a class="button small" href=${run.link} onClick=${followTop}>Airflow</a>`}</div></td>
      </tr>`)}</tbody></table></div>
    ${chosen && html`<${Log} key=${chosen.id} pipeline=${pipeline} run=${chosen} />`}
    <h2>Every run that left a report</h2>`;
}

// The list has no logs: the run is asked for by itself, and followed while it goes on.
function Log({ pipeline, run }) {
  const { data, problem } = useLoad(`${pipelinePath(pipeline)}/runs/${encodeURIComponent(run.id)}`);
  if (problem) return html`<${Trouble} problem=${problem} />`;
  if (!data) return html`<${Loading} />`;
  return html`<section class="change" aria-label=${`Log of ${run.id}`}><${Run} pipeline=${pipeline} first=${data} ended=${() => undefined} opened /></section>`;
}

function Reports({ pipeline, version }) {
  const { items, next, problem, more } = usePages(`${pipelinePath(pipeline)}/reports`, PAGE, version);
  if (problem && !items) return html`<${Trouble} problem=${problem} />`;
  if (!items) return html`<${Loading} />`;
  if (!items.length) return html`<${Empty} title="Nothing has run yet"><p>A run that found nothing to do leaves no report.</p></${Empty}>`;
  return html`<div class="scroll"><table class="cards"><caption class="visually-hidden">Runs, newest first</caption>
      <thead><tr><th scope="col">Ended</th><th scope="col">Run</th><th scope="col">Outcome</th><th scope="col">Tables</th><th scope="col" class="number">Rows</th><th scope="col" class="number">Took</th><th scope="col">Why</th></tr></thead>
      <tbody>${items.map((run) => html`<tr key=${run.id}>
        <th scope="row" class="nowrap"><time datetime=${run.at}>${clock(run.at)}</time></th>
        <td data-label="Run">${run.kind}<span class="sub mono">${run.run}</span></td>
        <td data-label="Outcome"><${Badge} name=${run.outcome} />${run.failed > 0 && run.tables > 1 && html`<span class="sub">${count(run.failed)} of ${plural(run.tables, "table")} failed</span>`}</td>
        <td data-label="Tables">${run.tables > 2 ? plural(run.tables, "table") : named(pipeline, run.concerned)}</td>
        <td data-label="Rows" class="number">${count(run.rows)}</td>
        <td data-label="Took" class="number">${seconds(run.seconds)}</td>
        <td data-label="Why" class="why">${run.error ? html`<span class="reason" title=${run.error.message}>${run.error.message}</span><code class="sub">${run.error.code}</code>${run.error.hint && html`<span class="sub reason"><${Said} text=${run.error.hint} /></span>`}` : html`<span class="muted">–</span>`}</td>
      </tr>`)}</tbody></table></div>
    ${next && html`<button onClick=${more}>Show older</button>`}`;
}

function named(pipeline, tables) {
  if (!tables.length) return html`<span class="muted">–</span>`;
  if (tables.length > 2) return plural(tables.length, "table");
  return tables.map((table, place) => html`${place > 0 && ", "}<a key=${table} href=${tableLink(pipeline, table)}>${table}</a>`);
}
