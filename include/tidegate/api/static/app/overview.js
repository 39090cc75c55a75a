// Every table of every pipeline at a glance.

import { html, useState } from "../vendor/preact.js";
import { plural } from "./format.js";
import { connect, live } from "./live.js";
import { useLoad } from "./load.js";
import { pipelineLink } from "./routes.js";
import { Empty, Loading, Trouble } from "./states.js";
import { Tables } from "./tables.js";

export function Overview() {
  const [version, setVersion] = useState(0);
  const { data, problem } = useLoad("connectors", version);
  const retry = () => {
    setVersion(version + 1);
    connect();
  };
  if (problem && !data) return html`<h1>Pipelines</h1><${Trouble} problem=${problem} retry=${retry} />`;
  if (!data) return html`<h1>Pipelines</h1><${Loading} />`;
  const known = live.value.at ? [...live.value.pipelines.keys()] : data.items.map((item) => item.name);
  const names = known.toSorted();
  return html`<div class="head"><h1>Pipelines</h1><span class="muted">${plural(names.length, "pipeline")}</span></div>
    ${problem && html`<${Trouble} problem=${problem} retry=${retry} />`}
    ${names.length === 0 ? html`<${None} />` : names.map((name) => html`<${Summary} key=${name} name=${name} />`)}`;
}

function Summary({ name }) {
  const { status, problem: broken } = live.value.pipelines.get(name) || {};
  return html`<section class="panel" aria-label=${`Pipeline ${name}`}>
    <div class="head"><h2><a href=${pipelineLink(name)}>${name}</a></h2>
      ${status && !broken && html`<span class="muted">${words(status)}</span>`}</div>
    ${broken ? html`<p class="notice bad-notice">${broken.detail} ${broken.hint && html`<span class="muted">${broken.hint}</span>`}</p>`
      : status ? html`<${Tables} pipeline=${name} tables=${status.tables} caption=${`Tables of ${name}`} />` : html`<${Loading} />`}
  </section>`;
}

function words(status) {
  const closed = status.tables.filter((table) => table.gate.state !== "open").length;
  const letters = status.tables.reduce((sum, table) => sum + table.dead_letters, 0);
  const parts = [plural(status.tables.length, "table")];
  parts.push(closed ? `${closed} closed` : "all gates open");
  if (letters) parts.push(plural(letters, "dead letter"));
  if (!status.deployed) parts.push("not deployed");
  if (status.running?.state === "stopped") parts.push("stopped");
  return parts.join(" · ");
}

function None() {
  return html`<${Empty} title="No pipeline yet">
    <p>A pipeline is one YAML file: the source, and the tables taken from it. Put it into the folder of pipelines, or write it by asking:</p>
    <pre>tidegate init include/config/pipelines/shop.yaml</pre>
    <p class="muted">It appears here as soon as the file is there.</p>
  </${Empty}>`;
}
