// Retained snapshots, each a place to go back to.

import { html } from "../vendor/preact.js";
import { rollback } from "./actions.js";
import { query, tablePath } from "./api.js";
import { act } from "./dialog.js";
import { clock, count, position } from "./format.js";
import { useLoad } from "./load.js";
import { Empty, Loading, Trouble } from "./states.js";

export function Snapshots({ pipeline, table, status, version }) {
  const { data, problem } = useLoad(query(`${tablePath(pipeline, table)}/snapshots`, { limit: 100 }), version);
  if (problem) return html`<${Trouble} problem=${problem} />`;
  if (!data) return html`<${Loading} />`;
  if (!data.items.length) return html`<${Empty} title="No snapshot yet"><p>The first sweep writes one.</p></${Empty}>`;
  return html`<div class="scroll"><table class="cards">
    <caption class="visually-hidden">Snapshots of ${table}, newest first</caption>
    <thead><tr><th scope="col">Snapshot</th><th scope="col">Committed</th><th scope="col">By</th>
      <th scope="col" class="number">Inserted</th><th scope="col" class="number">Updated</th><th scope="col" class="number">Deleted</th>
      <th scope="col" class="number">Rows</th><th scope="col">Position</th><th scope="col">Go back</th></tr></thead>
    <tbody>${data.items.map((one) => html`<tr key=${one.snapshot_id}>
      <th scope="row" class="mono">${one.snapshot_id}</th>
      <td data-label="Committed" class="nowrap">${clock(one.committed_at)}</td>
      <td data-label="By">${one.step || one.operation}${one.run && html`<span class="sub mono reason" title=${one.run}>${one.run}</span>`}</td>
      <td data-label="Inserted" class="number">${count(one.inserted)}</td>
      <td data-label="Updated" class="number">${count(one.updated)}</td>
      <td data-label="Deleted" class="number">${count(one.deleted)}</td>
      <td data-label="Rows" class="number">${count(one.rows)}</td>
      <td data-label="Position" class="mono">${position(one.position)}</td>
      <td data-label="Go back">${one.current
        ? html`<span class="badge badge-plain">current</span>`
        : one.on_main && one.position
          ? html`<button class="small" onClick=${() => act(rollback(pipeline, status, one))}>Roll back …<span class="visually-hidden"> to ${one.snapshot_id}</span></button>`
          : html`<span class="muted">not on main</span>`}</td>
    </tr>`)}</tbody></table></div>`;
}
