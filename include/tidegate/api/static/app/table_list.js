// Tables, folded by schema: a schema is one line until it is opened or something is looked for.

import { html, useState } from "../vendor/preact.js";
import { Bars } from "./bars.js";
import { Badge, STATES, conditionWord } from "./conditions.js";
import { matching } from "./finder.js";
import { ago, bytes, clock, count, plural, seconds } from "./format.js";
import { choose, tableLink } from "./routes.js";
import { Empty } from "./states.js";

const UNFOLDED = 30; // as many tables need no folding
const ROWS = 200; // drawn at first; more on request
const COLUMNS = 8;

export function TableList({ pipeline, lines, chosen, caption }) {
  const [all, setAll] = useState(false);
  const found = matching(lines, chosen, pipeline);
  const looking = Boolean(chosen.q || chosen.state);
  if (!found.length) return looking ? html`<${NoMatch} />` : html`<${Empty} title="No tables"><p>The pipeline's file names none.</p></${Empty}>`;
  const groups = bySchema(found);
  const open = openSchemas(chosen, groups, looking || lines.length <= UNFOLDED);
  let left = all ? Infinity : ROWS;
  const drawn = groups.map(([schema, own]) => {
    const rows = open.has(schema) ? own.slice(0, left) : [];
    left -= rows.length;
    return { schema, own, rows, unfolded: open.has(schema) };
  });
  const missing = drawn.reduce((sum, { own, rows, unfolded }) => sum + (unfolded ? own.length - rows.length : 0), 0);
  const toggle = (schema) => choose({ open: [...flipped(open, schema)].join(",") || "none" });
  return html`<div class="scroll"><table class="cards lines">
    <caption class="visually-hidden">${caption}</caption>
    <thead><tr>
      <th scope="col">Table</th><th scope="col">State</th><th scope="col" class="number">Lag</th>
      <th scope="col">Changes, last 24 hours</th><th scope="col" class="number">Rows</th>
      <th scope="col" class="number">Letters</th><th scope="col" class="number">Proven</th><th scope="col">Last snapshot</th>
    </tr></thead>
    ${drawn.map((group) => html`<tbody key=${group.schema}>
      ${groups.length > 1 && html`<${Schema} group=${group} toggle=${toggle} />`}
      ${(groups.length > 1 ? group.rows : group.own.slice(0, all ? Infinity : ROWS)).map((line) => html`<${Line} key=${line.table} pipeline=${pipeline} line=${line} />`)}
    </tbody>`)}
  </table></div>
  ${missing > 0 && html`<button onClick=${() => setAll(true)}>Show ${plural(missing, "more table")}</button>`}`;
}

export function NoMatch() {
  return html`<${Empty} title="No table matches"><button onClick=${() => choose({ q: "", state: "" })}>Show all tables</button></${Empty}>`;
}

function bySchema(lines) {
  const groups = new Map();
  for (const line of lines) {
    const schema = line.table.split(".")[0];
    if (!groups.has(schema)) groups.set(schema, []);
    groups.get(schema).push(line);
  }
  return [...groups];
}

// Told by the address; else all of them, or none.
function openSchemas(chosen, groups, unfolded) {
  if (chosen.open) return new Set(chosen.open.split(","));
  return new Set(unfolded || groups.length === 1 ? groups.map(([schema]) => schema) : []);
}

function flipped(open, schema) {
  const next = new Set([...open].filter((one) => one !== "none"));
  if (!next.delete(schema)) next.add(schema);
  return next;
}

function Schema({ group, toggle }) {
  const { schema, own, unfolded } = group;
  const states = STATES.map((state) => [state, own.filter((line) => line.state === state).length]).filter(([, number]) => number);
  const lag = Math.max(0, ...own.map((line) => line.lag_seconds ?? 0));
  return html`<tr class="schema"><th scope="rowgroup" colspan=${COLUMNS}>
    <button class="fold" aria-expanded=${unfolded} onClick=${() => toggle(schema)}>
      <svg class="fold-mark" viewBox="0 0 10 10" width="10" height="10" aria-hidden="true" focusable="false"><path d="M2 1 8 5 2 9z" /></svg>
      <span class="fold-name">${schema}</span> <span class="muted">${plural(own.length, "table")}</span>
      <span class="fold-states">${states.map(([state, number]) => html`<${Badge} key=${state} name=${state} word=${`${number} ${conditionWord(state)}`} />`)}</span>
      <span class="muted fold-lag">at most ${seconds(lag)} behind</span>
    </button></th></tr>`;
}

function Line({ pipeline, line }) {
  const { gate, activity } = line;
  const others = line.conditions.filter((name) => name !== line.state);
  const why = gate.failed ? gate.failed.reason : line.state === "held" || line.state === "sweeping" ? gate.reason : line.state === "needs" ? line.needs : null;
  return html`<tr>
    <th scope="row"><a href=${tableLink(pipeline, line.table)}>${breakable(line.table)}</a></th>
    <td data-label="State" class=${why ? "state told" : "state"}><${Badge} name=${line.state} />${others.map((name) => html` <span key=${name} class="also">${conditionWord(name)}</span>`)}
      ${why && html`<span class="sub reason" title=${why}>${why}</span>`}</td>
    <td data-label="Lag" class="number">${seconds(line.lag_seconds)}<span class="sub">${line.lag_bytes ? bytes(line.lag_bytes) : ""}</span></td>
    <td data-label="Changes, last 24 hours" class="figure"><div><${Bars} bars=${activity.bars} label=${line.table} /><span class="sub">${count(activity.rows_day)}</span></div></td>
    <td data-label="Rows" class="number">${count(line.rows)}</td>
    <td data-label="Letters" class="number">${line.dead_letters
      ? html`<a class="bad" href=${tableLink(pipeline, line.table, "letters")}>${count(line.dead_letters)}</a>` : "0"}</td>
    <td data-label="Proven" class="number">${line.differs ? html`<span class="bad">differs</span>` : line.proven == null ? html`<span class="muted">never</span>` : `${Math.floor(line.proven)} %`}</td>
    <td data-label="Last snapshot" class="nowrap"><time datetime=${line.snapshot_at} title=${clock(line.snapshot_at)}>${ago(line.snapshot_at)}</time></td>
  </tr>`;
}

// Long names may break behind the dot, not in the middle of a word.
function breakable(name) {
  const [first, ...rest] = name.split(".");
  return rest.length ? html`${first}.<wbr />${rest.join(".")}` : name;
}
