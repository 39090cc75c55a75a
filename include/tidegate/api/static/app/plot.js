// A plot over time: uPlot, coloured by the page's own custom properties.

import { html, useEffect, useRef } from "../vendor/preact.js";
import uPlot from "../vendor/uplot.js";
import { theme } from "./theme.js";

const HEIGHT = 170;

export function Plot({ title, times, values, format }) {
  const place = useRef(null);
  const shown = theme.value; // drawn again when it changes: a canvas knows no CSS
  useEffect(() => {
    const box = place.current;
    const plot = new uPlot(options(box, title, format), [times, values], box);
    const resize = new ResizeObserver(() => plot.setSize({ width: box.clientWidth, height: HEIGHT }));
    resize.observe(box);
    return () => {
      resize.disconnect();
      plot.destroy();
    };
  }, [shown, times, values]);
  const last = values.findLast((value) => value != null);
  return html`<figure class="plot">
    <figcaption>${title} <span class="muted">now ${format(last)}</span></figcaption>
    <div ref=${place} role="img" aria-label=${`${title} over time, now ${format(last)}`}></div>
  </figure>`;
}

function options(box, title, format) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
  return {
    width: box.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false },
    scales: { y: { range: (_, low, high) => [0, Math.max(high, 1e-9) * 1.1] } },
    axes: [
      { ...axis, values: (plot, ticks) => ticks.map(moment(plot)), space: 70, size: 28 },
      { ...axis, size: 64, values: (_, ticks) => ticks.map(format) },
    ],
    series: [{}, { label: title, stroke: colour("--accent"), width: 1.5, fill: colour("--accent-faint"), spanGaps: true, points: { size: 4 } }],
  };
}

// As much of a moment as tells the ticks apart.
function moment(plot) {
  const span = plot.scales.x.max - plot.scales.x.min;
  const [from, to] = span < 600 ? [11, 19] : span < 172800 ? [11, 16] : [5, 16];
  return (tick) => new Date(tick * 1000).toLocaleString("sv").slice(from, to);
}
