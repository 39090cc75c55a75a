// The table's schemas: the one that waits, lake and source side by side; the present one; the past.

import { html } from "../vendor/preact.js";
import { approve } from "./actions.js";
import { tablePath } from "./api.js";
import { act } from "./dialog.js";
import { clock, position } from "./format.js";
import { useLoad } from "./load.js";
import { Empty, Loading, Trouble } from "./states.js";

export function Schema({ pipeline, table, version }) {
  const { data, problem } = useLoad(`${tablePath(pipeline, table)}/schema`, version);
  if (problem?.status === 404) return html`<${Empty} title="No schema is known yet"><p>${problem.hint}</p></${Empty}>`;
  if (problem) return html`<${Trouble} problem=${problem} />`;
  if (!data) return html`<${Loading} />`;
  return html`${data.held && html`<${Held} pipeline=${pipeline} held=${data.held} />`}
    <h2>Columns now</h2><${Columns} columns=${data.columns} />
    <h2>How it came to this</h2><${Past} rows=${data.history} />`;
}

function Held({ pipeline, held }) {
  const change = ({ lake, source }) => (lake === "–" ? "added" : source === "–" ? "removed" : "differs");
  const words = { added: "new at the source", removed: "only in the lake", differs: "differs" };
  return html`<section class="notice"><h2>A schema change waits for a word</h2>
    <ul class="will">${held.reasons.map((reason) => html`<li key=${reason}>${reason}</li>`)}</ul>
    <div class="scroll"><table><caption class="visually-hidden">Lake and source side by side</caption>
      <thead><tr><th scope="col">Column</th><th scope="col">Lake</th><th scope="col">Source now</th><th scope="col">Change</th></tr></thead>
      <tbody>${held.sides.map((side) => html`<tr key=${side.column} class=${change(side)}><th scope="row">${side.column}</th><td class="mono">${side.lake}</td><td class="mono">${side.source}</td><td>${words[change(side)]}</td></tr>`)}</tbody></table></div>
    ${held.approvable
      ? html`<button class="primary" onClick=${() => act(approve(pipeline, held))}>Approve …</button>`
      : html`<p>No approval makes the lake's table hold this without an answer: keep a column's lake type, or give the table a new lake table and sweep it.</p>
          <button onClick=${() => act(approve(pipeline, held))}>Approve with answers …</button>`}
  </section>`;
}

function Columns({ columns }) {
  return html`<div class="scroll"><table><caption class="visually-hidden">Columns of the newest schema</caption>
    <thead><tr><th scope="col">Column</th><th scope="col">Source</th><th scope="col">Lake</th><th scope="col">Null</th></tr></thead>
    <tbody>${columns.map((column) => html`<tr key=${column.name}><th scope="row">${column.name} ${column.key != null && html`<span class="badge badge-plain">key</span>`}</th>
      <td class="mono">${column.source_type}</td><td class="mono">${column.lake_type}</td><td>${column.nullable ? "may be" : "never"}</td></tr>`)}</tbody></table></div>`;
}

function Past({ rows }) {
  return html`<ol class="timeline">${rows.toReversed().map((row) => html`<li key=${row.number}>
    <time datetime=${row.recorded_at}>${clock(row.recorded_at)}</time><strong>version ${row.number}${row.current ? " (now)" : ""}</strong>
    <span>${row.changes.join("; ") || "first seen"}${row.approved_by && ` · approved by ${row.approved_by}`} <span class="muted mono">${position(row.first_used)}</span></span></li>`)}</ol>`;
}
