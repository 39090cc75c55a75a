// Live state by WebSocket: a snapshot, then changes; after a break it connects again by itself.

import { signal } from "../vendor/preact.js";
import { API, token } from "./api.js";

const FIRST_WAIT = 500;
const LONGEST_WAIT = 15000;
const SILENCE = 75000; // over two of the server's pulses: nothing heard means nothing is known

// state: connecting | live | stale; at: when something was last heard
export const live = signal({ state: "connecting", at: null, pipelines: new Map() });

let socket = null;
let wait = FIRST_WAIT;
let timer = 0;
let silence = 0;

export function connect() {
  clearTimeout(timer);
  if (socket) socket.close();
  const url = new URL("status?view=overview", API);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  const offered = ["tidegate"];
  if (token.get()) offered.push(`tidegate.token.${token.get()}`);
  const mine = new WebSocket(url, offered);
  socket = mine;
  mine.onmessage = (event) => {
    wait = FIRST_WAIT;
    heard(JSON.parse(event.data));
    clearTimeout(silence);
    silence = setTimeout(() => mine.close(), SILENCE);
  };
  mine.onclose = () => {
    if (socket !== mine) return;
    clearTimeout(silence);
    live.value = { ...live.value, state: "stale" };
    timer = setTimeout(connect, wait);
    wait = Math.min(wait * 2, LONGEST_WAIT);
  };
}

// {type: snapshot | change | pulse, pipelines: {name: {overview, lines?} | {problem} | null}}; null: gone
function heard(message) {
  const pipelines = new Map(message.type === "snapshot" ? [] : live.value.pipelines);
  for (const [name, state] of Object.entries(message.pipelines || {})) {
    if (state) pipelines.set(name, state.lines ? merged(pipelines.get(name), state) : state);
    else pipelines.delete(name);
  }
  live.value = { state: "live", at: new Date().toISOString(), pipelines };
}

// A change brings the figures, and of the tables only the lines that differ; null: gone.
function merged(old, { overview, lines }) {
  const left = new Map(Object.entries(lines));
  const kept = (old?.overview?.lines || []).flatMap((line) => {
    if (!left.has(line.table)) return [line];
    const now = left.get(line.table);
    left.delete(line.table);
    return now ? [now] : [];
  });
  return { overview: { ...overview, lines: [...kept, ...[...left.values()].filter(Boolean)] } };
}

// What was asked for once serves until the socket has spoken.
export function seed({ pipelines }) {
  if (live.value.at) return;
  const found = pipelines.map(({ name, overview, problem }) => [name, overview ? { overview } : { problem }]);
  live.value = { ...live.value, pipelines: new Map(found) };
}

export const liveOverview = (name) => live.value.pipelines.get(name)?.overview;

// A page that comes back (laptop lid, tab) should not wait for the next try.
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && live.value.state === "stale") connect();
});
addEventListener("online", () => connect());
