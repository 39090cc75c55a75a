// Reading from the API inside a component: first answer, later answers, and what went wrong.

import { useEffect, useRef, useState } from "../vendor/preact.js";
import { get, query } from "./api.js";

// Asks again whenever `path` or `version` changes; keeps the last answer meanwhile. An answer to an
// earlier question about the same path is shown, too: who watches something that changes all the time
// would otherwise wait for ever.
export function useLoad(path, version = 0) {
  const [state, setState] = useState({ data: null, problem: null, loading: true, path });
  const asked = useRef({ path, turn: 0, shown: 0, gone: false });
  useEffect(() => () => void (asked.current.gone = true), []);
  useEffect(() => {
    const now = asked.current;
    now.path = path;
    if (!path) return;
    const turn = ++now.turn;
    const take = (next) => {
      if (now.gone || now.path !== path || turn < now.shown) return;
      now.shown = turn;
      setState(next);
    };
    get(path).then(
      (data) => take({ data, problem: null, loading: false, path }),
      (problem) => take((old) => ({ data: old.path === path ? old.data : null, problem, loading: false, path })),
    );
  }, [path, version]);
  return state.path === path ? state : { data: null, problem: null, loading: true, path };
}

// A list that is asked for page by page, newest first; `more` asks for the next one. When `version`
// changes it begins again at the newest.
export function usePages(path, limit, version) {
  const [state, setState] = useState({ items: null, next: null, problem: null });
  const load = (cursor, before) =>
    get(query(path, { limit, cursor })).then(
      (page) => setState({ items: [...before, ...page.items], next: page.next, problem: null }),
      (problem) => setState((old) => ({ ...old, problem })),
    );
  useEffect(() => void load(undefined, []), [path, version]);
  return { ...state, more: () => load(state.next, state.items) };
}
