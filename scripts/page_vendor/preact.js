// One module for the page: preact, its hooks, signals and htm (templates without a compiler).
import { h } from "preact";
import htm from "htm";

export { Fragment, render } from "preact";
export { useEffect, useErrorBoundary, useId, useRef, useState } from "preact/hooks";
export { computed, effect, signal } from "@preact/signals";
export const html = htm.bind(h);
