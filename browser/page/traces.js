// The classic traces of P-HTTP, packet by packet. The simulator runs them; its account of stalls explains them.
// @ts-check

/** @typedef {{ id: string, title: string, text: string, settings: Settings, run: string, cure: [string, Settings], keys: string[] }} Trace */

/** SunOS 4.1.3 on an Ethernet, with the clock of delayed acknowledgements about where it was in the printed traces. */
const SUNOS = { network: "ethernet", stack: "sunos-4.1.3", protocol: "http10-keepalive", "server-buffer": "4096", seed: "9" };
/** A page that is fetched again after ten seconds, on the same connection. */
const AGAIN = { network: "fast-internet", stack: "period", protocol: "http11", page: "25000", "client-pages": "2", "client-pause": "10s" };

/** @type {Trace[]} */
const TRACES = [
  {
    id: "short-initial-segment",
    title: "A short initial segment",
    text: "A server flushes its headers apart. A window of two segments is used up by the headers and one full segment.",
    settings: { ...SUNOS, page: "6651", "server-head": "apart" },
    run: "http10-keepalive",
    cure: ["with the headers in one write with the body", { ...SUNOS, page: "6651" }],
    keys: ["p-http/figure-1", "p-http/figure-2"],
  },
  {
    id: "short-final-segment",
    title: "A short final segment, and Nagle's algorithm",
    text: "A response of 4,109 bytes is written as 4,096 and 13. Three segments carry the first part; the 13 bytes wait.",
    settings: { ...SUNOS, page: "6585+4019" },
    run: "http10-keepalive",
    cure: ["without Nagle's algorithm", { ...SUNOS, page: "6585+4019", nagle: "off" }],
    keys: ["p-http/figure-3", "p-http/figure-4"],
  },
  {
    id: "slow-start-restart",
    title: "Slow-start restart",
    text: "A second page on a connection that was idle for ten seconds: the sender has forgotten its window.",
    settings: { ...AGAIN, idle: "restarted" },
    run: "http11",
    cure: ["with the window kept", { ...AGAIN, idle: "kept" }],
    keys: ["p-http/claims", "roundtrip/slow-start-restart"],
  },
];

/** The traces of the view of papers, of which one is open. */
class TracesView {
  constructor() {
    this.client = new WorkerClient("compare");
    /** @type {Trace | null} */
    this.open = null;
    /** @type {Walk | null} */
    this.walk = null;
    this.buttons = TRACES.map((trace) => element("button", { type: "button", ariaPressed: "false",
      onclick: () => { history.replaceState(null, "", `#papers?trace=${trace.id}`); this.show(trace.id, 0); } }, trace.title));
    this.place = element("div");
    this.element = element("section", { class: "paper traces" }, element("h2", {}, "P-HTTP and TCP, packet by packet"),
      element("p", { class: "note" }, "Three problems of 1997 that persistent connections met. Each is simulated here."),
      element("div", { class: "tools" }, ...this.buttons), this.place);
  }

  /** @param {string} id @param {number} at the packet */
  async show(id, at) {
    const trace = TRACES.find((one) => one.id === id);
    if (!trace) return;
    if (this.open === trace && this.walk) {
      if (this.walk.at !== at) this.walk.go(at);
      return;
    }
    this.walk?.pause();
    [this.open, this.walk] = [trace, null];
    this.buttons.forEach((button, index) => { button.ariaPressed = String(TRACES[index] === trace); });
    this.place.replaceChildren(element("p", { class: "note" }, "Simulating ..."));
    try {
      const request = (/** @type {Settings} */ settings) => ({ op: "run", settings: entries({ ...settings, runs: "1" }), is_recorded: false });
      const [run, cured] = await Promise.all([trace.settings, trace.cure[1]].map(async (settings) => JSON.parse(await this.client.call(request(settings)))));
      if (this.open === trace) this.present(trace, run, cured, at);
    } catch (/** @type {any} */ error) {
      this.place.replaceChildren(element("p", { class: "refused", role: "alert" }, error.message));
    }
  }

  /** @param {Trace} trace @param {any} run @param {any} cured @param {number} at */
  present(trace, run, cured, at) {
    const { walk, plots } = walkThrough(run, at, (packet) => {
      if (location.hash.startsWith("#papers")) history.replaceState(null, "", `#papers?trace=${trace.id}${packet > 0 ? `&step=${packet + 1}` : ""}`);
    });
    this.walk = walk;
    const link = (/** @type {string} */ text, /** @type {Settings} */ settings) => element("a", { href: `#compare?${written({ ...settings, run: trace.run })}` }, text);
    const keys = trace.keys.flatMap((key) => [" ", element("a", { href: `#papers?key=${key}` }, key)]);
    this.place.replaceChildren(
      element("p", {}, trace.text, ` It takes ${duration(run.elapsed_ms)}; `, link(trace.cure[0], trace.cure[1]), `, ${duration(cured.elapsed_ms)}.`),
      walk?.element ?? "", plots,
      element("p", { class: "note" }, link("The same run in Compare", trace.settings), ". Published beside ours:", ...keys));
  }
}
