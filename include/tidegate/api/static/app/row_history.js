// Every change of one row that the change log still holds.

import { html, useState } from "../vendor/preact.js";
import { tablePath } from "./api.js";
import { clock, position } from "./format.js";
import { Values } from "./letters.js";
import { useLoad } from "./load.js";
import { Empty, Loading, Trouble } from "./states.js";

const OPS = { c: "created", u: "updated", d: "deleted", t: "truncated", r: "read by a sweep" };

export function RowHistory({ pipeline, table }) {
  const schema = useLoad(`${tablePath(pipeline, table)}/schema`);
  const [typed, setTyped] = useState([]);
  const [key, setKey] = useState(null);
  const columns = (schema.data?.columns || []).filter((column) => column.key != null);
  const names = columns.length ? columns.toSorted((one, other) => one.key - other.key).map(({ name }) => name) : ["key"];
  const ask = (event) => {
    event.preventDefault();
    const parts = names.map((_, place) => typed[place] || "");
    setKey(parts.length === 1 ? parts[0] : JSON.stringify(parts));
  };
  const change = (place) => (event) => setTyped(typed.toSpliced(place, 1, event.target.value));
  if (schema.loading) return html`<${Loading} />`;
  return html`<form class="inline" onSubmit=${ask}>
      ${names.map((name, place) => html`<label key=${name}>${name}<input required name="key" autocomplete="off" value=${typed[place] || ""} onInput=${change(place)} /></label>`)}
      <button class="primary">Show its changes</button>
    </form>
    ${key !== null && html`<${Changes} key=${key} path=${`${tablePath(pipeline, table)}/rows/${encodeURIComponent(key)}/history`} />`}`;
}

function Changes({ path }) {
  const { data, problem } = useLoad(path);
  if (problem) return html`<${Trouble} problem=${problem} />`;
  if (!data) return html`<${Loading} />`;
  const since = data.since ? `The change log reaches back to ${clock(data.since)}.` : "The change log is empty.";
  const changes = data.changes;
  if (!changes.length) return html`<${Empty} title="No change of this key is known"><p>${since} A row that only a sweep has read has no change.</p></${Empty}>`;
  return html`<p class="muted">${since}</p>${changes.map((change) => html`<section class="change" key=${change.event_id}>
    <h2>${OPS[change.op] || change.op} <span class="muted">${clock(change.committed_at)} · <span class="mono">${position(change.position)}</span>${" · "}
      ${change.snapshot_id ? html`in snapshot <span class="mono">${change.snapshot_id}</span>` : "not applied yet, or before the last sweep"}</span></h2>
    <${Values} before=${change.before} after=${change.after} unchanged=${change.unchanged} /></section>`)}`;
}
