// A run packet by packet: buttons and keys step through it, or it plays; each packet has a sentence, and its mark in the plot.
// @ts-check

/** A packet, as the module describes it. @typedef {{ sent_ms: number, ended_ms: number | null, seen_ms: number, is_lost: boolean,
 *   is_from_client: boolean, connection: number, kind: string, name: string, plotted: string | null, text: string, lost_ms: number,
 *   causes: string[] }} Step */

/** Milliseconds of a run in a second of the reader's. */
const SPEEDS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
/** Time in which a run should play. */
const PLAY_MS = 15_000;
/** Time for each packet where nothing may move. */
const STILL_MS = 1_200;
/** Waits that are worth a jump. */
const MIN_WAIT_MS = 1;
/** Connections that have a lane of their own, and heights in pixels. */
const LANES = 12, LANE = 34, TRACK = 14;

/** @param {string} tag @param {Record<string, string | number>} attributes */
const drawn = (tag, attributes) => {
  const created = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) created.setAttribute(name, String(value));
  return created;
};

/** Milliseconds with two decimals, as the sentences have them. @param {number} ms */
const instant = (ms) => `${ms.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 })} ms`;

/** Packets in flight between client and server, a lane for each connection. */
class Lanes {
  /** @param {Step[]} steps */
  constructor(steps) {
    this.steps = steps;
    /** Latest end of the packets up to each one: those before the first later one have all arrived. @type {number[]} */
    this.ended = [];
    let latest = 0;
    for (const step of steps) this.ended.push(latest = Math.max(latest, this.end(step)));
    const rows = Math.min(LANES, Math.max(...steps.map((step) => step.connection)));
    this.svg = drawn("svg", { class: "lanes", height: rows * LANE, "aria-hidden": "true" });
    for (let row = 0; row < rows; row += 1) {
      for (const track of [0, 1]) {
        const y = row * LANE + LANE / 2 - TRACK / 2 + track * TRACK;
        this.svg.append(drawn("line", { x1: "0%", x2: "100%", y1: y, y2: y }));
      }
    }
    this.packets = drawn("g", {});
    this.svg.append(this.packets);
    this.element = element("div", { class: "hosts" }, element("b", {}, "client"), this.svg, element("b", {}, "server"));
  }

  /** @param {Step} step */
  end(step) {
    return step.ended_ms ?? step.sent_ms;
  }

  /** @param {Step} step */
  y(step) {
    return (step.connection - 1) % LANES * LANE + LANE / 2 + (step.is_from_client ? TRACK : -TRACK) / 2;
  }

  /** Draws the packets that are in flight at a time. @param {number} ms @param {number} current */
  draw(ms, current) {
    const shapes = [];
    let index = this.ended.findIndex((end) => end >= ms);
    if (index < 0) index = this.steps.length;
    for (; index < this.steps.length; index += 1) {
      const step = /** @type {Step} */ (this.steps[index]);
      if (step.sent_ms > ms) break;
      if (this.end(step) < ms) continue;
      const part = this.end(step) > step.sent_ms ? (ms - step.sent_ms) / (this.end(step) - step.sent_ms) : 1;
      shapes.push(...this.packet(step, part, index === current));
    }
    this.packets.replaceChildren(...shapes);
  }

  /** @param {Step} step @param {number} part of its way @param {boolean} isCurrent */
  packet(step, part, isCurrent) {
    // A packet is lost somewhere on its way: it goes half of it.
    const way = step.is_lost ? part / 2 : part, y = this.y(step);
    const x = 100 * (step.is_from_client ? way : 1 - way);
    const kind = step.is_lost ? "lost" : step.kind;
    const size = step.kind === "data" || step.kind === "datagram" ? 16 : 7;
    const shape = drawn("rect", { x: `${x}%`, y: y - 5, width: size, height: 10, rx: 2, class: `${kind}${isCurrent ? " now" : ""}`, transform: `translate(${-size / 2})` });
    if (!isCurrent) return [shape];
    const anchor = x < 15 ? "start" : x > 85 ? "end" : "middle";
    const label = drawn("text", { x: `${x}%`, y: step.is_from_client ? y + 17 : y - 8, "text-anchor": anchor });
    label.textContent = step.name;
    return [shape, label];
  }

  /** Draws one packet as an arrow, where nothing may move. @param {Step} step */
  arrow(step) {
    const y = this.y(step), from = step.is_from_client ? "1%" : "99%", to = step.is_lost ? "50%" : step.is_from_client ? "99%" : "1%";
    const kind = step.is_lost ? "lost" : step.kind;
    this.packets.replaceChildren(drawn("line", { x1: from, x2: to, y1: y, y2: y, class: `${kind} arrow` }), ...this.packet(step, 1, true));
  }
}

/** The steps of one run. */
class Walk {
  /** @param {{ steps: Step[], packet_count: number }} run @param {Plot | null} plot @param {(at: number) => void} moved */
  constructor({ steps, packet_count: count }, plot, moved) {
    this.steps = steps;
    this.plot = plot;
    this.moved = moved;
    this.at = 0;
    /** Time shown, in milliseconds of the run. */
    this.now = 0;
    this.isPlaying = false;
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    this.lanes = new Lanes(steps);
    const last = this.lanes.ended.at(-1) ?? 0;
    const speeds = SPEEDS.map((speed) => /** @type {const} */ ([String(speed), speed === 1000 ? "real time" : `${1000 / speed} times slower`]));
    this.speed = element("select", {}, ...speeds.map(([value, name]) => element("option", { value }, name)));
    this.speed.value = String(SPEEDS.findLast((speed) => last / speed * 1e3 >= PLAY_MS) ?? 1);
    const button = (/** @type {string} */ name, /** @type {() => void} */ onclick) => element("button", { type: "button", onclick }, name);
    this.back = button("Back", () => this.step(-1));
    this.next = button("Next", () => this.step(1));
    this.wait = button("Next wait", () => this.toWait());
    this.play = button("Play", () => this.isPlaying ? this.pause() : this.start());
    this.range = element("input", { type: "range", min: "0", max: String(steps.length - 1), value: "0", ariaLabel: "Packet",
      oninput: () => { this.pause(); this.go(+this.range.value); } });
    this.facts = element("p", { class: "facts" });
    this.sentence = element("p", { class: "sentence" });
    this.live = element("div", { role: "status", class: "step" }, this.facts, this.sentence);
    this.list = element("details", { ontoggle: () => this.fillList() }, element("summary", {}, "All packets as text"));
    const rest = count > steps.length ? [element("p", { class: "note" }, `The first ${steps.length.toLocaleString("en-US")} of ${count.toLocaleString("en-US")} packets.`)] : [];
    this.element = element("div", { class: "walk", role: "group", ariaLabel: "Packet by packet", onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event) },
      element("div", { class: "tools" }, this.back, this.next, this.play, this.wait, element("label", {}, "Speed", this.speed)),
      this.range, this.lanes.element, this.live, ...rest, this.list);
    if (plot) {
      this.cursor = drawn("line", { class: "cursor", y1: plot.edges[0], y2: plot.edges[1] });
      plot.data.append(this.cursor);
      plot.pick = (ms) => { this.pause(); this.go(this.nearest(ms)); };
    }
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    // A slider and a list have these keys themselves.
    if (event.target === this.range || event.target === this.speed || event.ctrlKey || event.metaKey || event.altKey) return;
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    this.step(by);
  }

  /** The step that the server sees at about this time. @param {number} ms */
  nearest(ms) {
    let best = 0;
    this.steps.forEach((step, index) => {
      if (Math.abs(step.seen_ms - ms) < Math.abs((this.steps[best]?.seen_ms ?? 0) - ms)) best = index;
    });
    return best;
  }

  /** @param {number} by */
  step(by) {
    this.pause();
    this.go(this.at + by);
  }

  toWait() {
    this.pause();
    const isWait = (/** @type {Step} */ step) => step.lost_ms >= MIN_WAIT_MS;
    const later = this.steps.findIndex((step, index) => index > this.at && isWait(step));
    this.go(later < 0 ? Math.max(0, this.steps.findIndex(isWait)) : later);
  }

  /** Shows a packet that the reader chose. @param {number} at */
  go(at) {
    this.rest(at);
    this.moved(this.at);
  }

  /** Shows a packet, half way. @param {number} at */
  rest(at) {
    this.present(at);
    const step = this.steps[this.at];
    if (!step) return;
    this.now = (step.sent_ms + this.lanes.end(step)) / 2;
    if (this.still.matches) this.lanes.arrow(step);
    else this.lanes.draw(this.now, this.at);
  }

  /** Text, slider and plot for a packet. @param {number} at */
  present(at) {
    this.at = Math.min(this.steps.length - 1, Math.max(0, at));
    const step = this.steps[this.at];
    if (!step) return;
    const way = step.is_from_client ? "client to server" : "server to client";
    this.facts.textContent = `Packet ${this.at + 1} of ${this.steps.length}, ${instant(step.sent_ms)}, ${way}: ${step.name}`;
    this.sentence.textContent = step.text;
    this.live.classList.toggle("waited", step.lost_ms >= MIN_WAIT_MS);
    this.range.value = String(this.at);
    this.range.ariaValueText = `packet ${this.at + 1}, ${way}, ${step.name}`;
    this.back.disabled = this.at === 0;
    this.next.disabled = this.at === this.steps.length - 1;
    this.mark(step);
  }

  /** @param {Step} step */
  mark(step) {
    const { plot, cursor } = this;
    if (!plot || !cursor) return;
    const x = plot.x(step.seen_ms);
    cursor.setAttribute("x1", String(x));
    cursor.setAttribute("x2", String(x));
    // Positions have two decimals.
    const isOf = (/** @type {{ from: number, text: string }} */ { from, text }) =>
      step.plotted !== null && text.includes(`: ${step.plotted}`) && Math.abs(plot.x(from * plot.span) - x) < 0.02;
    for (const one of plot.marks()) one.drawn.classList.toggle("now", !one.stall && isOf(one));
    plot.reveal(step.seen_ms);
  }

  start() {
    if (this.at === this.steps.length - 1) this.go(0);
    this.isPlaying = true;
    this.play.textContent = "Pause";
    // A reader would be told each packet.
    this.live.setAttribute("aria-live", "off");
    if (this.still.matches) return this.playStill();
    let before = performance.now();
    const frame = (/** @type {number} */ time) => {
      if (!this.isPlaying) return;
      if (!this.element.isConnected) return this.pause();
      this.now += Math.max(0, time - before) * +this.speed.value / 1e3;
      before = time;
      let { at } = this;
      while ((this.steps[at + 1]?.sent_ms ?? Infinity) <= this.now) at += 1;
      if (at !== this.at) this.present(at);
      this.lanes.draw(this.now, this.at);
      if (this.now > (this.lanes.ended.at(-1) ?? 0)) return this.pause();
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  /** A packet after another, where nothing may move. */
  playStill() {
    this.timer = setTimeout(() => {
      if (!this.isPlaying || !this.element.isConnected || this.at === this.steps.length - 1) return this.pause();
      this.go(this.at + 1);
      this.playStill();
    }, STILL_MS);
  }

  pause() {
    if (!this.isPlaying) return;
    this.isPlaying = false;
    clearTimeout(this.timer);
    this.play.textContent = "Play";
    this.live.removeAttribute("aria-live");
    this.moved(this.at);
  }

  /** The text equivalent, made when it is first opened. */
  fillList() {
    if (!this.list.open || this.list.children.length > 1) return;
    const rows = this.steps.map((step, index) => element("tr", {},
      element("td", { class: "number" }, element("button", { type: "button", class: "plain", onclick: () => { this.pause(); this.go(index); } }, String(index + 1))),
      element("td", { class: "number" }, instant(step.sent_ms)), element("td", {}, step.is_from_client ? "client" : "server"),
      element("td", {}, String(step.connection)), element("td", {}, step.name), element("td", {}, step.text)));
    const heading = ["packet", "sent", "by", "connection", "name", "what and why"].map((text, index) => element("th", { scope: "col", class: index < 2 ? "number" : "" }, text));
    this.list.append(element("div", { class: "long scroll" },
      element("table", { class: "packets" }, element("thead", {}, element("tr", {}, ...heading)), element("tbody", {}, ...rows))));
    makeScrollable(this.list, "All packets as text");
  }
}

/** A run's plots with its walk. Nothing of it is in the page yet. @param {any} run @param {number} at @param {(at: number) => void} moved */
const walkThrough = (run, at, moved) => {
  const plots = element("div", { class: "plot-scroll" });
  show(plots, run.packets + (run.waterfall ?? ""));
  const [plot = null] = [...plots.querySelectorAll("svg.sequence")].map((svg) => attachPlot(svg, plots));
  const walk = run.steps.length > 0 ? new Walk(run, plot, moved) : null;
  // The address has this packet already.
  walk?.rest(at);
  return { walk, plots };
};
