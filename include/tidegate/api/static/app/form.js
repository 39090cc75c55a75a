// Fields of an action's form, and their values.

import { html, useId } from "../vendor/preact.js";

const EMPTY = { check: false, text: "", tables: [], pairs: "" };

export function startValues(fields) {
  return Object.fromEntries(fields.map((field) => [field.name, field.value ?? EMPTY[field.kind]]));
}

// What the request gets: pairs become an object. Throws a sentence for people.
export function read(fields, values) {
  const read = { ...values };
  for (const field of fields) {
    if (field.kind === "tables" && !values[field.name].length) throw new Error("Choose at least one table.");
    if (field.kind === "pairs") read[field.name] = pairs(values[field.name]);
  }
  return read;
}

function pairs(text) {
  const found = {};
  for (const line of text.split("\n").map((one) => one.trim()).filter(Boolean)) {
    const [name, value] = line.split("=").map((one) => one.trim());
    if (!name || !value) throw new Error(`“${line}” is not name=value.`);
    found[name] = value;
  }
  return found;
}

export function Field({ field, value, change }) {
  const help = useId();
  if (field.kind === "check") {
    return html`<label class="check"><input type="checkbox" name=${field.name} checked=${value} onChange=${(event) => change(event.target.checked)} />${field.label}</label>`;
  }
  if (field.kind === "tables") return html`<${TablesField} field=${field} value=${value} change=${change} />`;
  const common = { name: field.name, value, required: field.required, placeholder: field.placeholder, "aria-describedby": field.help && help, onInput: (event) => change(event.target.value) };
  return html`<label>${field.label}
    ${field.kind === "pairs" ? html`<textarea rows="2" ...${common}></textarea>` : html`<input maxlength="500" autocomplete="off" ...${common} />`}
    ${field.help && html`<span class="muted" id=${help}>${field.help}</span>`}</label>`;
}

function TablesField({ field, value, change }) {
  if (!field.options.length) return html`<p class="notice">No table of this pipeline is in a state for this.</p>`;
  if (field.options.length === 1 && value.length === 1) return html`<p>Table <strong>${value[0]}</strong></p>`;
  const all = value.length === field.options.length;
  const toggle = (name) => change(value.includes(name) ? value.filter((one) => one !== name) : [...value, name]);
  return html`<fieldset><legend>${field.label}</legend>
    <label class="check"><input type="checkbox" checked=${all} onChange=${() => change(all ? [] : field.options)} />All of them</label>
    ${field.options.map((name) => html`<label class="check" key=${name}><input type="checkbox" name="tables" value=${name} checked=${value.includes(name)} onChange=${() => toggle(name)} />${name}</label>`)}
  </fieldset>`;
}
