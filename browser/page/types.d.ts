/** A plot that a script moves in: crates/report/src/plot.js. */
interface Plot {
  /** The part that is zoomed. */
  data: SVGSVGElement;
  /** Its time, in milliseconds. */
  span: number;
  /** Receives the time of a click, in milliseconds. */
  pick: ((ms: number) => void) | null;
  /** Position of a time within `data`. */
  x(ms: number): number;
  /** Top and bottom. */
  edges: [number, number];
  /** Everything that is drawn with a tooltip. */
  marks(): { stall: boolean, from: number, to: number, text: string, drawn: Element }[];
  /** Pans until a time is in sight. */
  reveal(ms: number): void;
}
/** Zoom, pan and selection of a plot. */
declare function attachPlot(svg: Element, scope: Element | null): Plot;
