// The one dialog: an action's form, what will happen, then the run it started.

import { html, signal, useEffect, useRef, useState } from "../vendor/preact.js";
import { send } from "./api.js";
import { Field, read, startValues } from "./form.js";
import { Run } from "./run.js";
import { Said } from "./states.js";

const current = signal(null);
export const finished = signal(0); // counts actions and runs that ended: views look again

export function act(action) {
  current.value = { ...action, opener: document.activeElement };
}

export function ActionDialog() {
  const box = useRef(null);
  const action = current.value;
  useEffect(() => {
    if (action && !box.current.open) box.current.showModal();
  }, [action]);
  const close = () => box.current.close();
  const closed = () => {
    action?.opener?.focus?.(); // back to where the keyboard was
    current.value = null;
  };
  return html`<dialog ref=${box} onClose=${closed} aria-labelledby="dialog-title">
    ${action && html`<${Ask} key=${action.title} action=${action} close=${close} />`}
  </dialog>`;
}

function Ask({ action, close }) {
  const [values, setValues] = useState(() => startValues(action.fields));
  const [key, setKey] = useState(() => crypto.randomUUID());
  const [state, setState] = useState({});
  const change = (name) => (value) => {
    setValues({ ...values, [name]: value });
    setKey(crypto.randomUUID()); // another form is another request
    setState({});
  };
  const looking = action.plan && !state.plan; // the dry run's answer comes before the question
  const submit = async (event) => {
    event.preventDefault();
    try {
      const ready = read(action.fields, values);
      setState({ ...state, problem: null, busy: true });
      if (looking) {
        setState({ plan: await send("POST", action.plan, action.body(ready)) });
        return;
      }
      const answer = await send(action.method || "POST", action.path, action.body(ready, state.plan), key);
      setState({ answer, values: ready });
      if (!action.pipeline) finished.value += 1;
    } catch (problem) {
      setState({ problem });
    }
  };
  if (state.answer) return html`<${Answer} action=${action} answer=${state.answer} values=${state.values} close=${close} />`;
  const impossible = action.fields.some((field) => field.kind === "tables" && !field.options.length);
  const ready = action.fields.every((field) => field.kind !== "tables" || values[field.name].length);
  return html`<form onSubmit=${submit}>
    <h2 id="dialog-title">${action.title}</h2>
    ${action.fields.map((field) => html`<${Field} key=${field.name} field=${field} value=${values[field.name]} change=${change(field.name)} />`)}
    ${ready && !impossible && html`<div role=${state.plan ? "status" : undefined} class=${action.danger && !looking ? "notice bad-notice" : "notice plain-notice"}><h3>What will happen</h3>
      <ul class="will">${values.dry_run && html`<li><strong>Nothing: a dry run only says what would.</strong></li>`}
        ${action.will(values, state.plan).map((sentence) => html`<li key=${sentence}><${Said} text=${sentence} /></li>`)}</ul></div>`}
    ${state.problem && html`<div class="notice bad-notice" role="alert"><strong>${state.problem.message}</strong>
      ${state.problem.hint && html`<p><${Said} text=${state.problem.hint} /></p>`}${state.problem.code && html`<p><code>${state.problem.code}</code></p>`}</div>`}
    <div class="dialog-end"><button type="button" onClick=${close}>Cancel</button>
      <button class=${action.danger && !looking ? "danger" : "primary"} disabled=${state.busy || impossible}>${values.dry_run || looking ? "Dry run" : action.verb}</button></div>
  </form>`;
}

function Answer({ action, answer, values, close }) {
  const ended = () => {
    finished.value += 1;
  };
  return html`<div class="dialog-body">
    <h2 id="dialog-title">${action.title}</h2>
    ${action.pipeline
      ? html`<${Run} pipeline=${action.pipeline} first=${answer} ended=${ended} />`
      : html`<pre role="status">${action.done(values, answer)}</pre>`}
    <div class="dialog-end"><button class="primary" onClick=${close} autofocus>Close</button></div>
  </div>`;
}
