// Links out of the page. Airflow shows it in a sandboxed frame that may neither open windows nor
// navigate the top; but it is of the same origin, so Airflow's own router can be asked to go there.

export function followTop(event) {
  if (window.top === window || event.ctrlKey || event.metaKey) return;
  try {
    const url = new URL(event.currentTarget.href);
    const { history } = window.top;
    history.pushState(null, "", url.pathname + url.search);
    window.top.dispatchEvent(new window.top.PopStateEvent("popstate", { state: null }));
    event.preventDefault();
  } catch (error) {
    console.warn("following the link inside the frame:", error.message); // another origin around us
  }
}
