// What happened to the table, newest first.

import { html } from "../vendor/preact.js";
import { tablePath } from "./api.js";
import { clock, count, position, seconds } from "./format.js";
import { usePages } from "./load.js";
import { Empty, Loading, Trouble } from "./states.js";

const PAGE = 25;
const BAD = /fail|error|differ|refus|abandon/;
const FACTS = {
  rows: ["rows", count], inserted: ["inserted", count], updated: ["updated", count], deleted: ["deleted", count],
  parked: ["dead letters", count], resolved: ["resolved", count], compared: ["compared", count],
  differing: ["differing", count], seconds: ["in", seconds], cut: ["cut", position], to_position: ["through", position],
};

export function Timeline({ pipeline, table, version }) {
  const { items, next, problem, more } = usePages(`${tablePath(pipeline, table)}/timeline`, PAGE, version);
  if (problem && !items) return html`<${Trouble} problem=${problem} />`;
  if (!items) return html`<${Loading} />`;
  if (!items.length) return html`<${Empty} title="Nothing has happened yet"><p>A first sweep is the first entry.</p></${Empty}>`;
  return html`<ol class="timeline">${items.map((entry) => html`<${Entry} key=${entry.id} entry=${entry} />`)}</ol>
    ${next && html`<button onClick=${more}>Show older</button>`}`;
}

function Entry({ entry }) {
  const facts = Object.entries(FACTS).filter(([name]) => entry.facts?.[name] != null);
  const said = [entry.outcome, entry.reason, entry.actor && `by ${entry.actor}`].filter(Boolean).join(" · ");
  return html`<li>
    <time datetime=${entry.at}>${clock(entry.at)}</time>
    <strong class=${BAD.test(entry.outcome || "") ? "bad" : ""}>${entry.kind === entry.event ? entry.kind : `${entry.kind}: ${entry.event}`}</strong>
    <span>${said} <span class="muted">${facts.map(([name, [word, shown]]) => `${word} ${shown(entry.facts[name])}`).join(", ")}
      ${entry.run && html` <code>${entry.run}</code>`}</span></span>
  </li>`;
}
