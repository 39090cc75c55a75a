// Addresses within the page. They live behind the #, so that no server and no base path knows them.

const part = encodeURIComponent;

export function parse(hash) {
  const [pipeline, ...rest] = hash.replace(/^#\/?/, "").split("/").filter(Boolean).map(decodeURIComponent);
  if (rest[0] === "tables" && rest[1]) return { pipeline, table: rest[1], tab: rest[2] || "timeline" };
  return { pipeline, tab: rest[0] || "tables" };
}

export const overviewLink = () => "#/";
export const pipelineLink = (name, tab) => `#/${part(name)}${tab ? `/${tab}` : ""}`;
export const tableLink = (name, table, tab) => `#/${part(name)}/tables/${part(table)}${tab ? `/${tab}` : ""}`;

export function crumbs({ pipeline, table }) {
  const trail = [{ text: "Pipelines", href: overviewLink() }];
  if (pipeline) trail.push({ text: pipeline, href: pipelineLink(pipeline) });
  if (table) trail.push({ text: table, href: tableLink(pipeline, table) });
  return trail;
}
