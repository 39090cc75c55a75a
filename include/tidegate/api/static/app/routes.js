// Addresses within the page. They live behind the #, so that no server and no base path knows them.
// What is chosen on a view (search, states, folded schemas) stands there too: a link shows the same.

import { signal } from "../vendor/preact.js";

const part = encodeURIComponent;

export const route = signal(parse(location.hash));
addEventListener("hashchange", () => {
  route.value = parse(location.hash);
});

export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [pipeline, ...rest] = path.split("/").filter(Boolean).map(decodeURIComponent);
  const chosen = Object.fromEntries(new URLSearchParams(query));
  if (rest[0] === "tables" && rest[1]) return { pipeline, table: rest[1], tab: rest[2] || "timeline", chosen };
  return { pipeline, tab: rest[0] || "tables", chosen };
}

export const overviewLink = () => "#/";
export const pipelineLink = (name, tab, chosen) => `#/${part(name)}${tab ? `/${tab}` : ""}${asked(chosen)}`;
export const tableLink = (name, table, tab) => `#/${part(name)}/tables/${part(table)}${tab ? `/${tab}` : ""}`;

// The present address with other choices; an empty one is left out.
export function chosenLink(changes) {
  const path = location.hash.split("?", 1)[0] || "#/";
  return path + asked({ ...route.value.chosen, ...changes });
}

// Takes the place of the present address: typing a word is not ten steps back.
export function choose(changes) {
  history.replaceState(history.state, "", chosenLink(changes));
  route.value = parse(location.hash);
}

function asked(chosen = {}) {
  const pairs = Object.entries(chosen).filter(([, value]) => value);
  return pairs.length ? `?${new URLSearchParams(pairs)}` : "";
}

export function crumbs({ pipeline, table }) {
  const trail = [{ text: "Pipelines", href: overviewLink() }];
  if (pipeline) trail.push({ text: pipeline, href: pipelineLink(pipeline) });
  if (table) trail.push({ text: table, href: tableLink(pipeline, table) });
  return trail;
}
