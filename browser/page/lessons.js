// Lessons: a question, a prediction, the runs that answer it, and the paper's table or figure.
// @ts-check

/** @typedef {{ name: string, settings: Settings }} Variant */
/** @typedef {{ name: string, ms: number, rows: any[], stalls: { cause: string, at_ms: number, lost_ms: number }[] }} Measured */
/** @typedef {{ id: string, title: string, question: string, choices: string[], answer: (of: Measured[]) => number,
 *   variants: Variant[], reason: string, source: string, keys: string[] }} Lesson */

/** Choices by how many times longer the first variant takes than the last. */
const TIMES = ["about as long", "up to twice as long", "two to four times as long", "more than four times as long"];
/** @param {Measured[]} of */
const timesLonger = (of) => {
  const factor = (of[0]?.ms ?? 0) / (of.at(-1)?.ms ?? 1);
  return factor < 1.15 ? 0 : factor < 2 ? 1 : factor < 4 ? 2 : 3;
};

/** A page of twenty objects. */
const TWENTY = Array(20).fill("30000").join("+");

/** @type {Lesson[]} */
const LESSONS = [
  {
    id: "slow-start",
    title: "Slow start",
    question: "A file of 100 kB over 50 Mbit/s and a round trip of 100 ms. The link could carry it in 16 ms. A connection starts with a window of ten segments, and doubles it each round trip. Compared with a window that is open from the start, it takes:",
    choices: TIMES,
    answer: timesLonger,
    variants: [["initial window 10", "10"], ["initial window 32", "32"], ["no slow start", "1000"]].map(([name = "", window = ""]) => ({ name,
      settings: { page: "102400", rate: "50Mbit", rtt: "100ms", protocol: "http11", stack: "linux", "initial-window": window } })),
    reason: "The window, not the link, decides: each round trip carries only what the acknowledgements before it allow. A larger first window saves whole round trips, until the receiver's window is the limit.",
    source: "Heidemann, Obraczka and Touch, Modeling the performance of HTTP over several transport protocols, 1997, section IV.C",
    keys: ["heidemann-model/figure-3", "heidemann-model/table-5"],
  },
  {
    id: "nagle",
    title: "Nagle's algorithm against delayed acknowledgements",
    question: "A server on the next desk (1 ms) writes headers and body with two calls, and has Nagle's algorithm on. A client fetches five files of 600 bytes. Compared with Nagle's algorithm off, it takes:",
    choices: ["about as long", "twice as long", "ten times as long", "more than twenty times as long"],
    answer: ([on, off]) => { const factor = (on?.ms ?? 0) / (off?.ms ?? 1); return factor < 1.5 ? 0 : factor < 5 ? 1 : factor < 20 ? 2 : 3; },
    variants: ["on", "off"].map((nagle) => ({ name: `Nagle ${nagle}`,
      settings: { page: "600+600+600+600+600", rate: "100Mbit", rtt: "1ms", protocol: "http11", stack: "linux", "server-head": "apart", nagle } })),
    reason: "The second write is short, so Nagle's algorithm holds it until the first is acknowledged. The client has nothing to send, so it delays that acknowledgement by 40 ms. Each waits for the other, once for each file. One write instead of two cures it, too.",
    source: "Heidemann, Performance interactions between P-HTTP and TCP implementations, 1997, section 2.2",
    keys: ["p-http/figure-1", "p-http/figure-2"],
  },
  {
    id: "odd-segment",
    title: "The odd last segment",
    question: "1997: responses of 4,109 bytes leave a server as writes of 4,096 and 13 bytes. The receiver's clock acknowledges every 200 ms, or every second segment. How many of the three responses wait for that clock?",
    choices: ["none", "one", "two", "all three"],
    answer: ([buffered]) => Math.min(3, (buffered?.stalls ?? []).filter((stall) => stall.cause === "nagle-delayed-ack").length),
    variants: [["writes of 4,096 bytes", { "server-buffer": "4096" }], ["the same, Nagle off", { "server-buffer": "4096", nagle: "off" }], ["one write", {}]].map(([name, more]) => ({
      name: /** @type {string} */ (name), settings: { network: "ethernet", page: "4019+4019+4019", protocol: "http10-keepalive", stack: "sunos-4.1.3", seed: "3", .../** @type {Settings} */ (more) } })),
    reason: "4,096 bytes are three segments: the third has no partner, so its acknowledgement waits for the clock, and the 13 bytes wait for the acknowledgement. A response escapes where the clock happens to tick in time.",
    source: "the same paper, section 2.3",
    keys: ["p-http/figure-3", "p-http/figure-4"],
  },
  {
    id: "idle-restart",
    title: "Restart after idle",
    question: "A page of 200 kB over 20 Mbit/s and 100 ms is fetched twice on one connection, five seconds apart. The window is large at the end of the first. If the sender forgets it while idle, the second page takes, compared with a sender that keeps it:",
    choices: TIMES,
    answer: timesLonger,
    variants: ["restarted", "decayed", "paced", "kept"].map((idle) => ({ name: `window ${idle}`,
      settings: { page: "200000", rate: "20Mbit", rtt: "100ms", protocol: "http11", stack: "linux", "client-pages": "2", "client-pause": "5s", idle } })),
    reason: "A persistent connection saves the handshake, but a sender that restarts slow start after idle gives much of that back. Linux halves the window for each timeout (decayed). Pacing the first window, as the paper proposes, loses little and sends no burst.",
    source: "the same paper, section 2.4",
    keys: ["p-http/claims", "roundtrip/slow-start-restart"],
  },
  {
    id: "close",
    title: "Pipelining, and a server that closes",
    question: "Ten objects are requested without waiting, over 10 Mbit/s and 50 ms. The server closes each connection after five responses. Compared with one that stays open, the page takes:",
    choices: TIMES,
    answer: timesLonger,
    variants: [["closes after 5, both directions", { "server-requests": "5", "server-close": "naive" }], ["closes after 5, half first", { "server-requests": "5", "server-close": "careful" }], ["stays open", {}]].map(([name, more]) => ({
      name: /** @type {string} */ (name), settings: { page: "8000+4000+4000+4000+4000+4000+4000+4000+4000+4000", rate: "10Mbit", rtt: "50ms", protocol: "http11-pipelined", stack: "linux", .../** @type {Settings} */ (more) } })),
    reason: "Requests behind the fifth are answered by no one: the client has to open another connection and send them again. A server that closes both directions also resets the connection under responses that are in flight: compare the packets.",
    source: "Nielsen et al., Network performance effects of HTTP/1.1, CSS1, and PNG, 1997, connection management",
    keys: ["w3c/claims"],
  },
  {
    id: "head-of-line",
    title: "Head-of-line blocking",
    question: "A page of twenty objects of 30 kB over 10 Mbit/s and 80 ms, with TLS 1.3. Without loss, HTTP/2 on one connection is a little faster than HTTP/1.1 on six. At 2% loss, HTTP/2 takes, compared with HTTP/1.1:",
    choices: ["less time", "about as long", "up to half as long again", "longer than that"],
    answer: ([, , two, six]) => { const factor = (two?.ms ?? 0) / (six?.ms ?? 1); return factor < 0.95 ? 0 : factor < 1.05 ? 1 : factor < 1.5 ? 2 : 3; },
    variants: ["0%", "2%"].flatMap((loss) => ["http2", "http11-parallel"].map((protocol) => ({ name: `${protocol}, ${loss} loss`,
      settings: { page: TWENTY, rate: "10Mbit", rtt: "80ms", loss, tls: "1.3", stack: "linux", protocol, runs: "20" } }))),
    reason: "TCP delivers in order: a lost segment holds back every response behind it on its connection. With one connection, that is the whole page, and its window halves for all of it; with six, it is a sixth. HTTP/3 over QUIC orders each stream by itself.",
    source: "RFC 9113, section 5.2; RFC 9114, section 2",
    keys: ["today/claims", "roundtrip/loss"],
  },
  {
    id: "datagram",
    title: "One datagram against a connection",
    question: "A response of 500 bytes over 100 ms. HTTP opens a connection first. DHTTP sends request and response as one datagram each. HTTP takes, compared with DHTTP:",
    choices: ["about as long", "about twice as long", "three times as long or more"],
    answer: ([http, dhttp]) => { const factor = (http?.ms ?? 0) / (dhttp?.ms ?? 1); return factor < 1.5 ? 0 : factor < 2.5 ? 1 : 2; },
    variants: ["http10", "dhttp"].map((protocol) => ({ name: protocol, settings: { page: "500", rate: "1Mbit", rtt: "100ms", protocol, stack: "linux" } })),
    reason: "Two packets instead of eleven, and one round trip instead of two. Most responses of 1999's logs were that small.",
    source: "Rabinovich and Wang, DHTTP: an efficient and cache-friendly transfer protocol for the Web, 2004, section III",
    keys: ["dhttp/figure-1", "roundtrip/crossover"],
  },
];

/** One lesson on the page. */
class LessonView {
  /** @param {Lesson} lesson @param {number} number */
  constructor(lesson, number) {
    this.lesson = lesson;
    const name = `lesson-${lesson.id}`;
    this.result = element("div", { role: "status" });
    const boxes = lesson.choices.map((choice, index) => element("label", {}, element("input", { type: "radio", name, value: String(index) }), choice));
    const run = element("button", { type: "submit" }, "Run it");
    this.form = element("form", { class: "prediction", onsubmit: (/** @type {Event} */ event) => {
      event.preventDefault();
      const chosen = /** @type {HTMLInputElement | null} */ (this.form.querySelector(":checked"));
      this.run(chosen ? +chosen.value : null);
    } }, element("fieldset", {}, element("legend", {}, "Your prediction"), ...boxes), run);
    const links = lesson.keys.flatMap((key) => [" ", element("a", { href: `#papers?key=${key}` }, key)]);
    this.element = element("section", { id: name }, element("h2", {}, `${number}. ${lesson.title}`), element("p", {}, lesson.question), this.form, this.result,
      element("p", { class: "note" }, `Source: ${lesson.source}. Published beside ours:`, ...links));
  }

  /** @param {number | null} prediction */
  async run(prediction) {
    const { lesson, result } = this;
    if (prediction === null) {
      result.replaceChildren(element("p", { class: "note" }, "Choose a prediction first."));
      return;
    }
    result.replaceChildren(element("p", { class: "note" }, "Simulating ..."));
    try {
      const measured = [];
      for (const { name, settings } of lesson.variants) {
        const reply = JSON.parse(await lessonClient.call({ op: "compare", settings: entries({ runs: "1", ...settings, engine: "simulate" }), is_recorded: false }));
        const rows = JSON.parse(reply.rows);
        measured.push({ name, rows, ms: rows[0].elapsed_ms, stalls: rows[0].stalls });
      }
      this.present(measured, prediction);
    } catch (/** @type {any} */ error) {
      result.replaceChildren(element("p", { class: "refused", role: "alert" }, error.message));
    }
  }

  /** @param {Measured[]} measured @param {number} prediction */
  present(measured, prediction) {
    const { lesson, result } = this;
    const right = lesson.answer(measured);
    const longest = Math.max(...measured.map((one) => one.ms));
    const rows = measured.map(({ name, ms, stalls, rows: [row] }, index) => {
      const bar = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      bar.setAttribute("aria-hidden", "true");
      const shape = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      shape.setAttribute("width", `${100 * ms / longest}%`);
      bar.append(shape);
      const lost = new Map();
      for (const stall of stalls) lost.set(stall.cause, (lost.get(stall.cause) ?? 0) + stall.lost_ms);
      const causes = [...lost].sort((one, other) => other[1] - one[1]).slice(0, 3).map(([cause, time]) => `${cause} ${duration(time)}`).join(", ");
      const state = written({ ...lesson.variants[index]?.settings });
      return element("tr", {}, element("td", {}, element("a", { href: `#compare?${state}` }, name)), element("td", { class: "number" }, duration(ms)),
        element("td", { class: "number" }, String(Math.round(row.packets_up + row.packets_down))), element("td", { class: "bar" }, bar), element("td", {}, causes));
    });
    const heading = ["run", "took", "packets", "", "lost to"].map((text, index) => element("th", { class: index === 1 || index === 2 ? "number" : "" }, text));
    result.replaceChildren(
      element("p", { class: "verdict" }, right === prediction ? `As you predicted: ${lesson.choices[right]}.` : `It is: ${lesson.choices[right]}.`),
      element("div", { class: "scroll" }, element("table", {}, element("thead", {}, element("tr", {}, ...heading)), element("tbody", {}, ...rows))),
      element("p", {}, lesson.reason),
      element("p", { class: "note" }, "Each run opens in Compare, with its packets."));
    makeScrollable(result, lesson.title);
  }
}

const lessonClient = new WorkerClient("compare");
let areLessonsShown = false;

const openLessons = () => {
  const place = document.getElementById("lessons");
  if (!place || areLessonsShown) return;
  areLessonsShown = true;
  place.replaceChildren(element("h1", {}, "Seven experiments"),
    element("p", { class: "note" }, "Predict first. Every run is simulated here, by the same TCP that the project holds against a kernel."),
    ...LESSONS.map((lesson, index) => new LessonView(lesson, index + 1).element));
};
