// A plot over time: uPlot, coloured by the page's own custom properties.

import { html, useEffect, useRef } from "../vendor/preact.js";
import uPlot from "../vendor/uplot.js";
import { theme } from "./theme.js";

const HEIGHT = 170;

// `group`: plots of one group have the same axis, and one pointer goes over all of them.
export function Plot({ title, times, values, format, group }) {
  const place = useRef(null);
  const shown = theme.value; // drawn again when it changes: a canvas knows no CSS
  useEffect(() => {
    const box = place.current;
    const plot = new uPlot(options(box, title, format, group), gapped(times, values), box);
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

const LONG = 4; // times the usual distance: in between nothing was written, which is no line

// The same points with a hole wherever nothing is known, or nothing happened for long.
export function gapped(times, values) {
  const steps = times.slice(1).map((time, place) => time - times[place]);
  const usual = steps.toSorted((one, other) => one - other)[Math.floor(steps.length / 2)] || 0;
  const found = [[], []];
  times.forEach((time, place) => {
    if (place && steps[place - 1] > Math.max(usual * LONG, 60)) {
      found[0].push((times[place - 1] + time) / 2);
      found[1].push(null);
    }
    found[0].push(time);
    found[1].push(values[place] ?? null);
  });
  return found;
}

function options(box, title, format, group) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
  return {
    width: box.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, sync: { key: group } },
    scales: { y: { range: (_, low, high) => [0, Math.max(high, 1e-9) * 1.1] } },
    axes: [
      { ...axis, values: (plot, ticks) => ticks.map(moment(plot)), space: 70, size: 28 },
      { ...axis, size: 64, values: (_, ticks) => ticks.map(format) },
    ],
    series: [{}, { label: title, stroke: colour("--accent"), width: 1.5, fill: colour("--accent-faint"), spanGaps: false, points: { size: 4 } }],
  };
}

// As much of a moment as tells the ticks apart.
function moment(plot) {
  const span = plot.scales.x.max - plot.scales.x.min;
  const [from, to] = span < 600 ? [11, 19] : span < 172800 ? [11, 16] : [5, 16];
  return (tick) => new Date(tick * 1000).toLocaleString("sv").slice(from, to);
}
