// What the table is made of, and which upkeep is due or why not.

import { html } from "../vendor/preact.js";
import { maintain } from "./actions.js";
import { act } from "./dialog.js";
import { bytes, count } from "./format.js";
import { Empty } from "./states.js";

export function Files({ pipeline, detail, status }) {
  const { files, upkeep } = detail;
  if (!files) return html`<${Empty} title="There is no lake table yet"><p>A first sweep makes it.</p></${Empty}>`;
  return html`
    <dl class="facts">
      <div><dt>Data files</dt><dd>${count(files.data_files)}</dd></div>
      <div><dt>Delete files</dt><dd>${count(files.delete_files)}</dd></div>
      <div><dt>Size</dt><dd>${bytes(files.bytes)}</dd></div>
      <div><dt>Retained snapshots</dt><dd>${count(files.snapshots)}</dd></div>
    </dl>
    <h2>Upkeep</h2>
    <table class="cards"><caption class="visually-hidden">Upkeep of ${status.table}</caption>
      <thead><tr><th scope="col">Step</th><th scope="col">Due</th><th scope="col">Why</th></tr></thead>
      <tbody>${upkeep.map((step) => html`<tr key=${step.step}>
        <th scope="row">${step.step.replaceAll("_", " ")}</th>
        <td data-label="Due">${step.due ? html`<span class="badge badge-held">due</span>` : html`<span class="badge badge-plain">not due</span>`}</td>
        <td data-label="Why">${step.why}</td></tr>`)}</tbody></table>
    <div class="actions"><button onClick=${() => act(maintain(pipeline, [status]))}>Compact now …</button></div>`;
}
