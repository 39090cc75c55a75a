// A word-sized plot: the last points of one series, no axes; its figure stands beside it.

import { html, useEffect, useState } from "../vendor/preact.js";
import { queued } from "./load.js";

const WIDTH = 84;
const HEIGHT = 20;

export function Sparkline({ values, label }) {
  const points = (values || []).filter((value) => value != null);
  if (points.length < 2) return html`<span class="spark-none" aria-hidden="true"></span>`;
  const top = Math.max(...points, 1e-9);
  const step = WIDTH / (points.length - 1);
  const at = (value, index) => `${(index * step).toFixed(1)} ${(HEIGHT - 2 - (value / top) * (HEIGHT - 4)).toFixed(1)}`;
  const line = points.map(at).join("L");
  return html`<svg class="spark" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} width=${WIDTH} height=${HEIGHT} role="img" aria-label=${label}>
    <path class="spark-area" d=${`M0 ${HEIGHT}L${line}L${WIDTH} ${HEIGHT}Z`} /><path class="spark-line" d=${`M${line}`} />
  </svg>`;
}

// Each row asks for its own series, a few at a time, again when its table moved on.
export function useSeries(path, version) {
  const [series, setSeries] = useState(null);
  useEffect(() => {
    let wanted = true;
    queued(path).then(
      (answer) => wanted && setSeries(answer),
      () => wanted && setSeries(null), // the figures beside it say what is wrong
    );
    return () => {
      wanted = false;
    };
  }, [path, version]);
  return series;
}
