// What waits for a person, and why: first on every view. Reasons are fields; help is a button.

import { html, useState } from "../vendor/preact.js";
import { openGate, start, sweep, verify } from "./actions.js";
import { Badge } from "./conditions.js";
import { act } from "./dialog.js";
import { ago, clock, count, plural, seconds } from "./format.js";
import { pipelineLink, tableLink } from "./routes.js";
import { Said } from "./states.js";

const FIRST = 6;
const NAMED = 2;
const SEVERITIES = ["bad", "warn", "note"];
const KINDS = ["broken", "differs", "failing", "source", "held", "letters", "needs", "lagging", "stopped", "not_deployed", "unproven"];

// glances: [{name, overview?, problem?}]; more: findings that only one view knows
export function Attention({ glances, single, more = [] }) {
  const [all, setAll] = useState(false);
  const own = more.map((finding) => ({ key: finding.reason, name: glances[0].name, finding, lines: [] }));
  const found = [...glances.flatMap(findingsOf), ...own].toSorted((one, other) => rank(one) - rank(other));
  if (!found.length) return html`<p class="notice ok-notice" role="status"><strong>Nothing waits for you.</strong> ${calm(glances)}</p>`;
  const shown = all ? found : found.slice(0, FIRST);
  return html`<section class="panel attention" aria-label="Needs attention">
    <h2>Needs attention <span class="muted">${count(found.length)}</span></h2>
    <div class="scroll"><table class="cards findings">
      <caption class="visually-hidden">What is wrong, why, since when, and what helps</caption>
      <thead><tr><th scope="col">What</th><th scope="col">Where</th><th scope="col">Why</th><th scope="col">Since</th><th scope="col">By</th><th scope="col">Do</th></tr></thead>
      <tbody>${shown.map((one) => html`<${Row} key=${one.key} ...${one} single=${single} />`)}</tbody>
    </table></div>
    ${found.length > FIRST && html`<button class="quiet small" onClick=${() => setAll(!all)} aria-expanded=${all}>${all ? "Show fewer" : `Show all ${found.length}`}</button>`}
  </section>`;
}

function findingsOf({ name, overview, problem }) {
  if (problem) {
    const { detail: reason, code, hint } = problem;
    return [{ key: `${name} broken`, name, lines: [], finding: { kind: "broken", severity: "bad", tables: [], reason, code, hint } }];
  }
  return overview.findings.map((finding) => ({
    key: [name, finding.kind, finding.reason, finding.code, finding.actor, finding.action].join(" "),
    name,
    finding,
    lines: overview.lines.filter((line) => finding.tables.includes(line.table)),
  }));
}

const rank = ({ finding }) => SEVERITIES.indexOf(finding.severity) * KINDS.length + KINDS.indexOf(finding.kind);

// What the source guard warns of, when the source was asked.
export function guarded(guard) {
  const told = (guard?.findings || []).filter((one) => one.verdict !== "ok");
  return told.map(({ verdict, says, next }) => ({ kind: "source", severity: verdict === "act" ? "bad" : "warn", tables: [], reason: says, hint: next }));
}

function calm(glances) {
  const tables = glances.reduce((sum, { overview }) => sum + (overview?.tables || 0), 0);
  return `${plural(tables, "table")} of ${plural(glances.length, "pipeline")}: every gate is open, nothing lags, and every key is proven.`;
}

function Row({ name, finding, lines, single }) {
  const { kind, reason, code, hint, since, actor, run } = finding;
  return html`<tr class=${`finding finding-${finding.severity}`}>
    <th scope="row"><${Badge} name=${kind} /></th>
    <td data-label="Where" class="where"><${Where} name=${name} finding=${finding} single=${single} /></td>
    <td data-label="Why" class="why">${kind === "lagging" ? `${seconds(finding.lag_seconds)} behind the change log` : kind === "letters" ? `${plural(finding.letters, "change")} could not be applied` : html`<span class="reason" title=${reason}>${reason || "no reason was given"}</span>`}
      ${code && html`<code class="sub">${code}</code>`}${hint && html`<span class="sub reason"><${Said} text=${hint} /></span>`}</td>
    <td data-label="Since" class=${since ? "nowrap" : "nowrap none"}>${since ? html`<time datetime=${since} title=${clock(since)}>${ago(since)}</time>` : html`<span class="muted">–</span>`}</td>
    <td data-label="By" class=${actor || run ? "by" : "by none"}>${actor || (run ? html`<code>${run}</code>` : html`<span class="muted">–</span>`)}</td>
    <td class="do"><${Help} name=${name} finding=${finding} lines=${lines} /></td>
  </tr>`;
}

function Where({ name, finding, single }) {
  const { tables, kind } = finding;
  const few = tables.length <= NAMED;
  const own = single ? null : html`<a class="muted" href=${pipelineLink(name)}>${name}</a>${tables.length > 0 && " › "}`;
  if (!tables.length) return own || (kind === "source" ? "the source" : "the pipeline");
  return html`${own}${few
    ? tables.map((table, place) => html`${place > 0 && ", "}<a key=${table} href=${tableLink(name, table)}>${table}</a>`)
    : html`<a href=${pipelineLink(name, "", { state: kind })}>${plural(tables.length, "table")}</a>`}`;
}

// The one thing that helps; everything else is on the table's own page.
function Help({ name, finding, lines }) {
  const one = finding.tables.length === 1 ? finding.tables[0] : null;
  const list = pipelineLink(name, "", { state: finding.kind });
  const button = (word, action, loud = true) => html`<button class=${loud ? "small primary" : "small"} onClick=${() => act(action())}>${word}</button>`;
  const link = (word, tab, loud = true) => html`<a class=${loud ? "button small primary" : "button small"} href=${one ? tableLink(name, one, tab) : list}>${word}</a>`;
  switch (finding.action) {
    case "approve": return link("Review schema", "schema");
    case "letters": return link("See letters", "letters");
    case "open": return button("Open …", () => openGate(name, lines));
    case "sweep": return button("Sweep …", () => sweep(name, lines, lines));
    case "repair": return button("Verify …", () => verify(name, lines, lines));
    case "verify": return button("Verify …", () => verify(name, lines), false);
    case "runs": return html`<a class="button small" href=${pipelineLink(name, "runs")}>See runs</a>`;
    case "start": return button("Start …", () => start(name));
    default: return finding.tables.length ? link("Look", "", false) : null;
  }
}
