// Figures as people read them.

import { signal } from "../vendor/preact.js";

// Whoever says how long ago something was is drawn again as time passes.
const now = signal(Date.now());
setInterval(() => (now.value = Date.now()), 10000);

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytes(value) {
  if (value == null) return "–";
  let unit = 0;
  let number = value;
  while (number >= 1024 && unit < UNITS.length - 1) {
    number /= 1024;
    unit += 1;
  }
  return `${unit && number < 10 ? number.toFixed(1) : Math.round(number)} ${UNITS[unit]}`;
}

export function count(value) {
  return value == null ? "–" : Number(value).toLocaleString("en");
}

export function rate(value) {
  if (value == null) return "–";
  if (value >= 1e6) return `${(value / 1e6).toFixed(1)}M/s`;
  if (value >= 1e4) return `${Math.round(value / 1e3)}K/s`;
  return `${value >= 10 || value === 0 ? Math.round(value) : value.toFixed(1)}/s`;
}

export function seconds(value) {
  if (value == null) return "–";
  if (value < 1) return `${value < 0.005 ? 0 : value.toFixed(2)} s`;
  if (value < 10) return `${value.toFixed(1)} s`;
  if (value < 120) return `${Math.round(value)} s`;
  if (value < 7200) return `${Math.round(value / 60)} min`;
  if (value < 172800) return `${Math.round(value / 3600)} h`;
  return `${Math.round(value / 86400)} d`;
}

export function ago(moment) {
  if (!moment) return "never";
  const past = (Math.max(now.value, Date.now()) - new Date(moment).getTime()) / 1000;
  return past < 1 ? "just now" : `${seconds(past)} ago`;
}

export function clock(moment) {
  if (!moment) return "–";
  const at = new Date(moment);
  const day = at.toLocaleDateString("sv");
  const today = new Date().toLocaleDateString("sv") === day;
  const time = at.toLocaleTimeString("sv");
  return today ? time : `${day} ${time}`;
}

// A position is epoch + fixed-width place; people compare the LSN's digits.
export function position(value) {
  if (!value) return "–";
  const place = String(value).split("/").pop();
  const found = /^([0-9A-Fa-f]{8})([0-9A-Fa-f]{8})(?:[.:-]|$)/.exec(place);
  if (!found) return place.length > 20 ? `…${place.slice(-18)}` : place;
  return `${parseInt(found[1], 16).toString(16)}/${found[2]}`.toUpperCase();
}

export function plural(number, word) {
  return `${count(number)} ${word}${number === 1 ? "" : "s"}`;
}
