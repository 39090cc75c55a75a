// Changes that could not be applied, and their way back.

import { html, useState } from "../vendor/preact.js";
import { discard, redrive } from "./actions.js";
import { pipelinePath, query } from "./api.js";
import { act } from "./dialog.js";
import { ago, position } from "./format.js";
import { useLoad } from "./load.js";
import { Empty, Loading, Trouble } from "./states.js";

export function Letters({ pipeline, table, version }) {
  const [open, setOpen] = useState(null);
  const { data, problem } = useLoad(query(`${pipelinePath(pipeline)}/dead-letters`, { table, limit: 100 }), version);
  if (problem) return html`<${Trouble} problem=${problem} />`;
  if (!data) return html`<${Loading} />`;
  if (!data.items.length) return html`<${Empty} title="No dead letters"><p>Every captured change could be applied.</p></${Empty}>`;
  return html`
    <div class="head"><p class="muted">Later changes of the same row wait behind a failed one. Mend the cause, then redrive.</p>
      <div class="actions"><button class="primary" onClick=${() => act(redrive(pipeline, table, data.items))}>Redrive all …</button></div></div>
    <div class="scroll"><table class="cards">
      <caption class="visually-hidden">Dead letters of ${table}</caption>
      <thead><tr><th scope="col">Why</th><th scope="col">Change</th><th scope="col">Position</th><th scope="col">Seen</th><th scope="col">Do</th></tr></thead>
      <tbody>${data.items.map((letter) => html`<tr key=${letter.event_id}>
        <th scope="row">${letter.message}<span class="sub"><code>${letter.code}</code></span></th>
        <td data-label="Change">${letter.op} · ${letter.role}<span class="sub">${letter.attempts === 1 ? "1 try" : `${letter.attempts} tries`}</span></td>
        <td data-label="Position" class="mono">${position(letter.position)}</td>
        <td data-label="Seen" class="nowrap">${ago(letter.last_seen)}</td>
        <td data-label="Do"><div class="actions">
          <button class="small" aria-expanded=${open === letter.event_id} onClick=${() => setOpen(open === letter.event_id ? null : letter.event_id)}>Values<span class="visually-hidden"> of ${letter.event_id}</span></button>
          <button class="small" onClick=${() => act(redrive(pipeline, table, [letter]))}>Redrive …</button>
          <button class="small danger" onClick=${() => act(discard(pipeline, table, letter))}>Discard …</button></div></td>
      </tr>`)}</tbody></table></div>
    ${open && html`<${Letter} pipeline=${pipeline} id=${open} />`}`;
}

// The row's values: only on request, and only for who may see rows.
function Letter({ pipeline, id }) {
  const { data, problem } = useLoad(`${pipelinePath(pipeline)}/dead-letters/${encodeURIComponent(id)}`);
  if (problem) return html`<${Trouble} problem=${problem} />`;
  if (!data) return html`<${Loading} />`;
  return html`<h2>The change <code>${id}</code></h2><${Values} before=${data.before} after=${data.after} unchanged=${data.unchanged} />`;
}

export function Values({ before, after, unchanged = [] }) {
  const sides = [before && ["Before", before], after && ["After", after]].filter(Boolean);
  const names = [...new Set([...Object.keys(before || {}), ...Object.keys(after || {})])];
  const shown = (values, name) =>
    unchanged.includes(name) && values === after ? "unchanged" : values[name] === null ? "null" : values[name];
  return html`<div class="scroll"><table>
    <thead><tr><th scope="col">Column</th>${sides.map(([title]) => html`<th scope="col" key=${title}>${title}</th>`)}</tr></thead>
    <tbody>${names.map((name) => html`<tr key=${name} class=${before && after && before[name] !== after[name] && !unchanged.includes(name) ? "differs" : ""}>
      <th scope="row">${name}</th>${sides.map(([title, values]) => html`<td class="mono" key=${title}>${shown(values, name)}</td>`)}</tr>`)}</tbody></table></div>`;
}
