// Light or dark: one's own choice, else Airflow's (same origin), else the system's.

import { effect, html, signal } from "../vendor/preact.js";

const OWN = "tidegate.theme";
const AIRFLOW = "theme"; // where Airflow's UI keeps its own
const system = matchMedia("(prefers-color-scheme: dark)");

const choice = signal(localStorage.getItem(OWN) || "");
export const theme = signal(resolve());

function resolve() {
  const wanted = choice.value || localStorage.getItem(AIRFLOW) || "";
  return wanted === "dark" || wanted === "light" ? wanted : system.matches ? "dark" : "light";
}

effect(() => {
  theme.value = resolve();
});
effect(() => {
  document.documentElement.dataset.theme = theme.value;
});
system.addEventListener("change", () => (theme.value = resolve()));
addEventListener("storage", () => (theme.value = resolve()));

export function ThemeSwitch() {
  const other = theme.value === "dark" ? "light" : "dark";
  const change = () => {
    localStorage.setItem(OWN, other);
    choice.value = other;
  };
  return html`<button class="quiet" onClick=${change} aria-label=${`Use the ${other} theme`}>${other === "dark" ? "Dark" : "Light"}</button>`;
}
