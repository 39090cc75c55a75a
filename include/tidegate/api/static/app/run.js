// Work that was started: where to watch it, how it goes, how it ended.

import { html, useEffect, useState } from "../vendor/preact.js";
import { get, pipelinePath } from "./api.js";
import { count, seconds } from "./format.js";
import { followTop } from "./links.js";
import { Said } from "./states.js";

const EVERY = 1500;
const WORDS = { queued: "Waiting to start", running: "Running", done: "Done", failed: "Failed" };

export function Run({ pipeline, first, ended, opened = false }) {
  const [run, setRun] = useState(first);
  const [lost, setLost] = useState(null);
  const over = run.state === "done" || run.state === "failed";
  useEffect(() => {
    if (over) {
      ended();
      return undefined;
    }
    const timer = setTimeout(
      () =>
        get(`${pipelinePath(pipeline)}/runs/${encodeURIComponent(run.id)}`).then(
          (next) => {
            setLost(null);
            setRun({ ...next }); // also when nothing changed: the next look is due
          },
          (problem) => {
            setLost(problem);
            setRun({ ...run });
          },
        ),
      EVERY,
    );
    return () => clearTimeout(timer);
  }, [run]);
  return html`
    <p role="status" class=${run.state === "failed" ? "bad" : ""}><strong>${WORDS[run.state]}</strong> <code>${run.id}</code>
      ${run.started_at && run.ended_at && html` <span class="muted">in ${seconds((new Date(run.ended_at) - new Date(run.started_at)) / 1000)}</span>`}</p>
    ${run.link && html`<p><a href=${run.link} onClick=${followTop}>Watch the Dag run in Airflow</a></p>`}
    ${!over && html`<p class="muted">It goes on if you close this; the timeline tells how it ended.</p>`}
    ${lost && html`<p class="notice">Asking for its state failed: ${lost.message}. Asking again.</p>`}
    ${run.error && html`<div class="notice bad-notice"><strong>${run.error.message || "It failed."}</strong>
      ${run.error.hint && html`<p><${Said} text=${run.error.hint} /></p>`}${run.error.code && html`<p><code>${run.error.code}</code></p>`}</div>`}
    ${run.result && html`<${Result} result=${run.result} />`}
    ${run.log?.length > 0 && html`<details open=${opened || run.state === "failed"}><summary>The end of its log</summary><pre tabindex="0">${run.log.join("\n")}</pre></details>`}`;
}

const SHOWN = ["rows", "inserted", "updated", "deleted", "resolved", "parked", "compared", "differing", "seconds"];

function Result({ result }) {
  const tables = Array.isArray(result.tables) ? result.tables : [];
  if (!tables.length) return html`<details><summary>What it said</summary><pre tabindex="0">${JSON.stringify(result, null, 2)}</pre></details>`;
  return html`<ul class="will">${tables.map((one) => html`<li key=${one.table}><strong>${one.table}</strong> ${one.status || one.verdict || one.outcome || ""}
    <span class="muted"> ${SHOWN.filter((name) => one[name] != null).map((name) => `${name} ${name === "seconds" ? seconds(one[name]) : count(one[name])}`).join(", ")}</span>
    ${one.error && html`<span class="bad"> ${one.error.message || one.error}</span>`}</li>`)}</ul>
    <details><summary>All it said</summary><pre tabindex="0">${JSON.stringify(result, null, 2)}</pre></details>`;
}
