// The HTTP API, relative to where the page is served: the same files work under Airflow's base path.

export const API = new URL("api/v1/cdc/", document.baseURI);
const TOKEN = "tidegate.token";

// A problem as the API tells it, or what kept us from asking.
export class Problem extends Error {
  constructor(status, body = {}) {
    super(body.detail || body.title || "the request failed");
    this.status = status;
    this.code = body.code || "";
    this.title = body.title || "";
    this.hint = body.hint || "";
  }
}

// The tab forgets the token when it is closed; under Airflow there is none, its login counts.
export const token = {
  get: () => sessionStorage.getItem(TOKEN) || "",
  set: (value) => sessionStorage.setItem(TOKEN, value),
  clear: () => sessionStorage.removeItem(TOKEN),
};

const known = new Map(); // url → {etag, body}: an unchanged answer is not sent twice

async function call(method, path, { body, key } = {}) {
  const url = new URL(path, API);
  const headers = { Accept: "application/json" };
  const before = method === "GET" ? known.get(url.href) : undefined;
  if (token.get()) headers.Authorization = `Bearer ${token.get()}`;
  if (before) headers["If-None-Match"] = before.etag;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key) headers["Idempotency-Key"] = key;
  let answer;
  try {
    answer = await fetch(url, {
      method,
      headers,
      credentials: "same-origin",
      cache: "no-store",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    throw new Problem(0, { title: "unreachable", detail: "the API did not answer", hint: String(error.message) });
  }
  if (answer.status === 304 && before) return before.body;
  const text = await answer.text();
  const parsed = text && /json/.test(answer.headers.get("content-type") || "") ? JSON.parse(text) : {};
  if (!answer.ok) throw new Problem(answer.status, parsed);
  const etag = answer.headers.get("etag");
  if (method === "GET" && etag) known.set(url.href, { etag, body: parsed });
  return parsed;
}

export const get = (path) => call("GET", path);

// The key belongs to the filled-in form, not to the click: pressing twice starts one run.
export const send = (method, path, body, key) => call(method, path, { body, key });

const part = encodeURIComponent;
export const pipelinePath = (name) => `connectors/${part(name)}`;
export const tablePath = (name, table) => `${pipelinePath(name)}/tables/${part(table)}`;

export function query(path, values) {
  const pairs = Object.entries(values).filter(([, value]) => value !== undefined && value !== "");
  return pairs.length ? `${path}?${new URLSearchParams(pairs)}` : path;
}
