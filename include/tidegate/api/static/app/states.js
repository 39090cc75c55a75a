// What the page shows when there is nothing to show: empty, refused, unreachable, stale.

import { html, useState } from "../vendor/preact.js";
import { token } from "./api.js";
import { ago } from "./format.js";

// Sentences of the API, which mark `commands` as the command line's do.
export function Said({ text }) {
  return String(text || "").split("`").map((part, place) => (place % 2 ? html`<code key=${place}>${part}</code>` : part));
}

export function Empty({ title, children }) {
  return html`<div class="empty"><p class="empty-title">${title}</p>${children}</div>`;
}

export function Loading() {
  return html`<p class="loading" role="status">Loading …</p>`;
}

// One place decides what a problem looks like.
export function Trouble({ problem, retry }) {
  if (problem.status === 401) return html`<${SignIn} problem=${problem} retry=${retry} />`;
  const title =
    problem.status === 0
      ? "The API cannot be reached"
      : problem.status === 403
        ? "You are not allowed to see this"
        : problem.title || "That did not work";
  const hint =
    problem.status === 0
      ? "Is `tidegate serve` (or Airflow's API server) still running? The page asks again by itself."
      : problem.status === 403
        ? "Ask for the role that may read Tidegate's pipelines."
        : problem.hint;
  return html`<div class="trouble" role="alert">
    <p class="trouble-title">${title}</p>
    <p><${Said} text=${problem.message} />${problem.code && html` <code>${problem.code}</code>`}</p>
    ${hint && html`<p class="muted"><${Said} text=${hint} /></p>`}
    ${retry && html`<button onClick=${retry}>Try again</button>`}
  </div>`;
}

function SignIn({ problem, retry }) {
  const [value, setValue] = useState("");
  const submit = (event) => {
    event.preventDefault();
    token.set(value.trim());
    (retry || (() => location.reload()))();
  };
  const refused = Boolean(token.get());
  return html`<form class="trouble signin" onSubmit=${submit}>
    <p class="trouble-title" role=${refused ? "alert" : undefined}>
      ${refused ? "This token was refused" : "Sign in"}
    </p>
    <p>${refused ? problem.hint : "The page needs the token that `tidegate serve` was started with."}</p>
    <label>API token
      <input type="password" autocomplete="current-password" required value=${value}
        onInput=${(event) => setValue(event.target.value)} />
    </label>
    <button class="primary">Sign in</button>
    <p class="muted">It is kept by this tab only. Under Airflow, log in to Airflow and reload.</p>
  </form>`;
}

// Old figures are said to be old rather than shown as if they were live.
export function Freshness({ live }) {
  const { state, at } = live;
  const words = { live: "Live", connecting: "Connecting", stale: "Not live" }[state];
  return html`<span class=${`fresh fresh-${state}`} role="status">
    <span class="fresh-mark" aria-hidden="true"></span>${words}${state === "stale" && at && `: figures from ${ago(at)}`}
  </span>`;
}
