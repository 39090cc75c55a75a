// Every pipeline at a glance: what is wrong first, then one line each, then what is looked for.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { Attention } from "./attention.js";
import { Bars, barsOf } from "./bars.js";
import { Badge } from "./conditions.js";
import { Finder, matching } from "./finder.js";
import { bytes, count, plural, seconds } from "./format.js";
import { GateBar } from "./gate.js";
import { connect, live, seed } from "./live.js";
import { useLoad } from "./load.js";
import { pipelineLink, tableLink } from "./routes.js";
import { Empty, Loading, Trouble } from "./states.js";
import { NoMatch, TableList } from "./table_list.js";

const FEW = 30; // as many tables are shown without being looked for

export function Overview({ chosen }) {
  const [version, setVersion] = useState(0);
  const asked = useRef(live.value.at ? null : "overview"); // the socket has told already, or will
  const { data, problem } = useLoad(asked.current, version);
  useEffect(() => data && seed(data), [data]);
  const retry = () => {
    setVersion(version + 1);
    connect();
  };
  if (problem && !data) return html`<h1>Pipelines</h1><${Trouble} problem=${problem} retry=${retry} />`;
  if (!data && !live.value.at) return html`<h1>Pipelines</h1><${Loading} />`;
  const glances = live.value.at || !data ? [...live.value.pipelines].map(([name, state]) => ({ name, ...state })) : data.pipelines;
  const sorted = glances.toSorted((one, other) => one.name.localeCompare(other.name));
  const lines = sorted.flatMap(({ overview }) => overview?.lines || []);
  const looking = Boolean(chosen.q || chosen.state);
  return html`<div class="head"><h1>Pipelines</h1><span class="muted">${plural(sorted.length, "pipeline")}, ${plural(lines.length, "table")}</span></div>
    ${problem && html`<${Trouble} problem=${problem} retry=${retry} />`}
    ${sorted.length === 0 ? html`<${None} />` : html`
      ${lines.length > 0 && html`<${Finder} label="Tables of every pipeline" chosen=${chosen} lines=${lines} />`}
      ${looking ? html`<${Found} glances=${sorted} chosen=${chosen} />` : html`
        <${Attention} glances=${sorted} />
        <${Lines} glances=${sorted} />
        ${lines.length <= FEW && html`<${Found} glances=${sorted} chosen=${chosen} />`}`}`}`;
}

function Found({ glances, chosen }) {
  const found = glances.filter(({ name, overview }) => overview && matching(overview.lines, chosen, name).length);
  if (!found.length) return chosen.q || chosen.state ? html`<${NoMatch} />` : null;
  return found.map(({ name, overview }) => html`<section class="panel" key=${name} aria-label=${`Pipeline ${name}`}>
    <div class="head"><h2><a href=${pipelineLink(name, "", chosen)}>${name}</a></h2><span class="muted">${plural(matching(overview.lines, chosen, name).length, "table")}</span></div>
    <${TableList} pipeline=${name} lines=${overview.lines} chosen=${chosen} caption=${`Tables of ${name}`} /></section>`);
}

function Lines({ glances }) {
  return html`<section class="panel" aria-label="Every pipeline">
    <div class="scroll"><table class="cards pipelines">
      <caption class="visually-hidden">One line per pipeline</caption>
      <thead><tr><th scope="col">Pipeline</th><th scope="col" class="number">Tables</th><th scope="col">Gates</th>
        <th scope="col" class="number">Worst lag</th><th scope="col">Changes, last 24 hours</th><th scope="col" class="number">Last hour</th>
        <th scope="col" class="number">Letters</th><th scope="col" class="number">Proven</th></tr></thead>
      <tbody>${glances.map(({ name, overview, problem }) => (problem || !overview ? html`<${Broken} key=${name} name=${name} problem=${problem} />` : html`<${Line} key=${name} name=${name} now=${overview} />`))}</tbody>
    </table></div></section>`;
}

const KINDS = { postgres: "PostgreSQL", mysql: "MySQL" };

function Line({ name, now }) {
  const { activity } = now;
  return html`<tr aria-label=${`Pipeline ${name}`}>
    <th scope="row"><a href=${pipelineLink(name)}>${name}</a><span class="sub">${KINDS[now.source_type] || now.source_type}${now.running?.state === "stopped" ? ", stopped" : ""}${now.deployed ? "" : ", not deployed"}</span></th>
    <td data-label="Tables" class="number">${count(now.tables)}</td>
    <td data-label="Gates"><${GateBar} gates=${now.gates} /></td>
    <td data-label="Worst lag" class="number">${seconds(now.worst_lag_seconds)}${now.worst_lag_table && html`<span class="sub"><a href=${tableLink(name, now.worst_lag_table)}>${now.worst_lag_table}</a> ${bytes(now.worst_lag_bytes)}</span>`}</td>
    <td data-label="Changes, last 24 hours" class="figure"><div><${Bars} bars=${barsOf(activity)} label=${name} /><span class="sub">${count(activity.rows_day)}</span></div></td>
    <td data-label="Last hour" class="number">${count(activity.rows_hour)}</td>
    <td data-label="Letters" class="number">${now.dead_letters ? html`<a class="bad" href=${pipelineLink(name, "", { state: "letters" })}>${count(now.dead_letters)}</a>` : "0"}</td>
    <td data-label="Proven" class="number">${Math.floor(now.proven_share)} %<span class="sub">${count(now.proven_tables)} of ${plural(now.tables, "table")}</span></td>
  </tr>`;
}

function Broken({ name, problem }) {
  return html`<tr aria-label=${`Pipeline ${name}`}><th scope="row"><a href=${pipelineLink(name)}>${name}</a></th>
    <td colspan="7" data-label="Problem"><${Badge} name="broken" /> <span class="reason">${problem?.detail}</span></td></tr>`;
}

function None() {
  return html`<${Empty} title="No pipeline yet">
    <p>A pipeline is one YAML file: the source, and the tables taken from it. Put it into the folder of pipelines, or write it by asking:</p>
    <pre>tidegate init include/config/pipelines/shop.yaml</pre>
    <p class="muted">It appears here as soon as the file is there.</p>
  </${Empty}>`;
}
