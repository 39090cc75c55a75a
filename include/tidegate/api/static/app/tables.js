// The dense table: one row per table, the same on the overview and in a pipeline.

import { html } from "../vendor/preact.js";
import { query, tablePath } from "./api.js";
import { ago, bytes, clock, count, position, rate, seconds } from "./format.js";
import { GateBadge } from "./gate.js";
import { tableLink } from "./routes.js";
import { Sparkline, useSeries } from "./sparkline.js";

const SPARK_POINTS = 30;

export function Tables({ pipeline, tables, caption }) {
  return html`<div class="scroll"><table class="cards">
    <caption class="visually-hidden">${caption}</caption>
    <thead><tr>
      <th scope="col">Table</th><th scope="col">Gate</th><th scope="col" class="number">Lag</th>
      <th scope="col" class="number">Rows/s</th><th scope="col">Applied position</th>
      <th scope="col">Last snapshot</th><th scope="col" class="number">Rows</th>
      <th scope="col" class="number">Dead letters</th><th scope="col">Verified through</th>
    </tr></thead>
    <tbody>${tables.map((table) => html`<${Row} key=${table.table} pipeline=${pipeline} table=${table} />`)}</tbody>
  </table></div>`;
}

function Row({ pipeline, table }) {
  const path = query(`${tablePath(pipeline, table.table)}/series`, { limit: SPARK_POINTS });
  const series = useSeries(path, table.snapshot_id);
  const points = series?.points || [];
  const speeds = points.map((point) => point.rows_per_second).filter((value) => value != null);
  return html`<tr>
    <th scope="row"><a href=${tableLink(pipeline, table.table)}>${breakable(table.table)}</a>
      ${table.needs && html`<span class="sub bad">needs ${table.needs}</span>`}</th>
    <td data-label="Gate"><${GateBadge} gate=${table.gate} />
      ${table.gate.state !== "open" && html`<span class="sub reason" title=${table.gate.reason}>${table.gate.reason || ""}</span>`}</td>
    <td data-label="Lag" class="number figure"><div><${Sparkline} values=${points.map((point) => point.lag_seconds)} label="Lag of the last snapshots" />
      <span>${seconds(table.lag_seconds)}<span class="sub">${bytes(table.lag_bytes)}</span></span></div></td>
    <td data-label="Rows/s" class="number figure"><div><${Sparkline} values=${speeds} label="Rows per second of the last snapshots" />
      <span>${rate(speeds.at(-1))}</span></div></td>
    <td data-label="Applied position" class="mono">${position(table.position)}</td>
    <td data-label="Last snapshot" class="nowrap"><time datetime=${table.snapshot_at} title=${clock(table.snapshot_at)}>${ago(table.snapshot_at)}</time></td>
    <td data-label="Rows" class="number">${count(table.rows)}</td>
    <td data-label="Dead letters" class="number">${table.dead_letters
      ? html`<a class="bad" href=${tableLink(pipeline, table.table, "letters")}>${count(table.dead_letters)}</a>` : "0"}</td>
    <td data-label="Verified through"><${Verified} proof=${table.verified_through} /></td>
  </tr>`;
}

// Long names may break behind the dot, not in the middle of a word.
function breakable(name) {
  const [first, ...rest] = name.split(".");
  return rest.length ? html`${first}.<wbr />${rest.join(".")}` : name;
}

export function Verified({ proof }) {
  if (!proof) return html`<span class="muted">never verified</span>`;
  if (proof.differs) return html`<span class="badge badge-bad">differs</span><span class="sub">${ago(proof.last_at)}</span>`;
  if (!proof.position) return html`<span class="muted">nothing proven</span>${proof.withdrawn && html`<span class="sub">${proof.withdrawn}</span>`}`;
  return html`<span class="mono">${position(proof.position)}</span>
    <span class="sub">${Math.round(proof.coverage)} % of keys, ${ago(proof.at)}</span>`;
}
