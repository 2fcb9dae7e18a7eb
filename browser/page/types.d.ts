/** Zoom, pan and selection of a plot: crates/report/src/plot.js. */
declare function attachPlot(svg: Element, scope: Element | null): void;
