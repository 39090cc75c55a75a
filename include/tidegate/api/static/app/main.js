// The page: which view is asked for, the frame around it, the live state it is drawn from.

import { html, render, useEffect, useErrorBoundary } from "../vendor/preact.js";
import { ActionDialog } from "./dialog.js";
import { connect, live } from "./live.js";
import { Overview } from "./overview.js";
import { PipelineView } from "./pipeline.js";
import { crumbs, overviewLink, route } from "./routes.js";
import { Freshness } from "./states.js";
import { TableView } from "./table.js";
import { ThemeSwitch } from "./theme.js";

function Page() {
  const [broken, again] = useErrorBoundary((error) => console.error(error));
  const where = route.value;
  const trail = crumbs(where);
  useEffect(() => {
    document.title = [...trail.map(({ text }) => text).reverse(), "Tidegate"].join(" · ");
    document.querySelector("main")?.focus({ preventScroll: true });
  }, [where.pipeline, where.table]);
  return html`
    <header class="top">
      <a class="skip" href=${location.hash || "#/"} onClick=${skip}>Skip to the content</a>
      <a class="brand" href=${overviewLink()}><img src="static/icon.svg" width="22" height="22" alt="" /><span class="brand-name">Tidegate</span></a>
      <nav aria-label="Where you are"><ol class="crumbs">
        ${trail.map(({ text, href }, index) => html`<li key=${href}><a href=${href} aria-current=${index === trail.length - 1 ? "page" : undefined}>${text}</a></li>`)}
      </ol></nav>
      <div class="top-end"><${Freshness} live=${live.value} /><${ThemeSwitch} /></div>
    </header>
    <main tabindex="-1">
      ${broken
        ? html`<div class="trouble" role="alert"><p class="trouble-title">The page broke</p><p>${broken.message}</p><button onClick=${again}>Try again</button></div>`
        : html`<${View} where=${where} />`}
    </main>
    <${ActionDialog} />`;
}

function View({ where }) {
  if (where.table) return html`<${TableView} key=${`${where.pipeline}/${where.table}`} ...${where} />`;
  if (where.pipeline) return html`<${PipelineView} key=${where.pipeline} name=${where.pipeline} tab=${where.tab} chosen=${where.chosen} />`;
  return html`<${Overview} chosen=${where.chosen} />`;
}

function skip(event) {
  event.preventDefault();
  document.querySelector("main").focus();
}

connect();
const place = document.getElementById("page");
place.replaceChildren();
render(html`<${Page} />`, place);
