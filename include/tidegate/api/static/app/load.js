// Reading from the API inside a component: first answer, later answers, and what went wrong.

import { useEffect, useRef, useState } from "../vendor/preact.js";
import { get } from "./api.js";

// Asks again whenever `path` or `version` changes; keeps the last answer meanwhile.
export function useLoad(path, version = 0) {
  const [state, setState] = useState({ data: null, problem: null, loading: true, path });
  const latest = useRef(0);
  useEffect(() => {
    if (!path) return undefined;
    const turn = ++latest.current;
    const mine = () => turn === latest.current;
    get(path).then(
      (data) => mine() && setState({ data, problem: null, loading: false, path }),
      (problem) =>
        mine() && setState((old) => ({ data: old.path === path ? old.data : null, problem, loading: false, path })),
    );
    return () => {
      latest.current += 1;
    };
  }, [path, version]);
  return state.path === path ? state : { data: null, problem: null, loading: true, path };
}

const waiting = [];
let running = 0;
const AT_ONCE = 3; // sparklines must not push the page's own requests aside

export function queued(path) {
  return new Promise((resolve, reject) => {
    waiting.push({ path, resolve, reject });
    next();
  });
}

function next() {
  if (running >= AT_ONCE || !waiting.length) return;
  const { path, resolve, reject } = waiting.shift();
  running += 1;
  get(path)
    .then(resolve, reject)
    .finally(() => {
      running -= 1;
      next();
    });
}
