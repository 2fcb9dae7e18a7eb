// Scenarios: settings in the address, computed in a worker while they change.
// @ts-check

/** Settings of an experiment by the name of the flag. @typedef {Record<string, string>} Settings */

/** Values of a new experiment; the address names only what differs. @type {Settings} */
const DEFAULTS = {
  page: "43008+12288+9216+7168+5120+4096+3072+2048", rate: "10Mbit", rtt: "40ms", loss: "0%", queue: "unlimited",
  protocol: "http10,http11,http11-parallel,http11-pipelined,http2", stack: "linux",
};

/** A slider whose steps are those of a logarithm, or a list. @typedef {{ key: string, label: string, max: number, text: (at: number) => string }} Slider */
const rounded = (/** @type {number} */ value) => +value.toPrecision(2);
/** @type {Slider[]} */
const SLIDERS = [
  { key: "rate", label: "Rate", max: 90, text: (at) => {
    const rate = rounded(10 ** (4.5 + at / 20));
    return rate >= 1e6 ? `${rounded(rate / 1e6)}Mbit` : `${rounded(rate / 1e3)}kbit`;
  } },
  { key: "rtt", label: "Round trip", max: 87, text: (at) => `${rounded(10 ** (at / 30))}ms` },
  { key: "loss", label: "Loss", max: 50, text: (at) => `${rounded(at / 10)}%` },
  { key: "queue", label: "Queue", max: 16, text: (at) => at === 16 ? "unlimited" : `${rounded(4 * 2 ** (at * 0.6))}p` },
];

/** Switches of both ends' TCP; the first value leaves the stack's. @type {[string, string, [string, string][]][]} */
const SWITCHES = [
  ["nagle", "Nagle", [["", "as the stack"], ["on", "on"], ["off", "off"]]],
  ["acks", "Receiver acknowledges", [["", "as the stack"], ["every-segment", "every segment"], ["delayed", "delayed"]]],
  ["initial-window", "Initial window", [["", "as the stack"], ["1", "1"], ["2", "2"], ["4", "4"], ["10", "10"], ["32", "32"], ["1000", "1000: no slow start"]]],
  ["idle", "Window after idle", [["", "as the stack"], ["kept", "kept"], ["restarted", "restarted"], ["decayed", "decayed"], ["paced", "paced"]]],
  ["parallel", "Connections", [["", "as the protocol"], ["1", "1"], ["2", "2"], ["4", "4"], ["6", "6"], ["12", "12"]]],
  ["requests", "Requests", [["", "as usual"], ["independent", "independent"], ["after-document", "after the document"], ["dependent", "one after another"]]],
  ["tls", "TLS", [["", "as usual"], ["none", "none"], ["1.2", "1.2"], ["1.3", "1.3"], ["1.3-resumed", "1.3 resumed"], ["1.3-0rtt", "1.3 with early data"]]],
];

/** The nearest step of a slider to a value in its own words. @param {Slider} slider @param {string} text */
const stepOf = (slider, text) => {
  const units = /** @type {Record<string, number>} */ ({ Mbit: 1e6, kbit: 1e3, Gbit: 1e9, ms: 1, s: 1e3, "%": 1, p: 1, unlimited: 1 });
  const size = (/** @type {string} */ one) => one === "unlimited" ? Infinity : parseFloat(one) * (units[one.replace(/^[\d.]+/, "")] ?? 1);
  let best = 0, distance = Infinity;
  for (let at = 0; at <= slider.max; at += 1) {
    const here = size(slider.text(at)), wanted = size(text);
    const apart = here === wanted ? 0 : Math.abs(Math.log((here + 1e-3) / (wanted + 1e-3)));
    if (apart < distance) [best, distance] = [at, apart];
  }
  return best;
};

/** @param {string} state `rtt=40ms&page=1+2` @returns {Settings} */
const parsed = (state) => Object.fromEntries(state.split("&").filter(Boolean).map((part) => {
  const [key, ...value] = part.split("=");
  return [decodeURIComponent(key ?? ""), decodeURIComponent(value.join("="))];
}));

/** @param {Settings} settings */
const written = (settings) => Object.entries(settings)
  .filter(([key, value]) => value !== (DEFAULTS[key] ?? ""))
  .map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(value).replaceAll("%2B", "+").replaceAll("%2C", ",")}`).join("&");

/** Settings that are the page's own, not flags. */
const OWN = ["run", "har", "step"];

/** Index of the packet that an address names by its number. @param {string | undefined} step */
const packetOf = (step) => Math.max(0, (parseInt(step ?? "", 10) || 1) - 1);

/** Settings as keys and values, in the order of flags; lists are repeated. @param {Settings} settings @returns {[string, string][]} */
const entries = (settings) => Object.entries(settings)
  .filter(([key, value]) => value !== "" && !OWN.includes(key) && !(key === "loss" && value === "0%") && !(key === "queue" && value === "unlimited"))
  .filter(([key]) => !(settings.network && SLIDERS.some((slider) => slider.key === key) && settings[key] === DEFAULTS[key]))
  .flatMap(([key, value]) => ["protocol", "tls", "stack", "network"].includes(key)
    ? value.split(",").map((one) => /** @type {[string, string]} */ ([key, one])) : [[key, value]]);

/** Replies of the laboratory's worker for the last settings only: others are left out, and a long one is ended. */
class Latest {
  constructor() {
    this.client = new WorkerClient("compare");
    /** @type {File | null} */
    this.recording = null;
    this.isLoaded = false;
    this.isBusy = false;
    this.began = 0;
    /** @type {(() => Promise<void>) | null} */
    this.next = null;
  }

  /** @param {() => Promise<void>} run */
  async request(run) {
    this.next = run;
    if (this.isBusy) {
      if (performance.now() - this.began > PATIENCE_MS) {
        this.isLoaded = false;
        this.client.stop("replaced by other settings", "cancelled");
      }
      return;
    }
    this.isBusy = true;
    while (this.next) {
      const now = this.next;
      this.next = null;
      this.began = performance.now();
      await now();
    }
    this.isBusy = false;
  }

  /** @param {object} request */
  async call(request) {
    if (this.recording && !this.isLoaded) {
      await this.client.call({ op: "recording", name: this.recording.name, file: 1 }, this.recording);
      this.isLoaded = true;
    }
    return JSON.parse(await this.client.call(request));
  }
}

/** Time after which a computation is ended when settings change. */
const PATIENCE_MS = 400;

/** The view; created when it is first shown. */
class CompareView {
  /** @param {HTMLElement} place */
  constructor(place) {
    this.latest = new Latest();
    /** @type {Settings} */
    this.settings = { ...DEFAULTS };
    /** @type {Walk | null} */
    this.walk = null;
    /** Groups that were folded or opened. @type {Map<string, boolean>} */
    this.folds = new Map();
    this.form = element("form", { class: "settings", onsubmit: (/** @type {Event} */ event) => event.preventDefault() });
    this.lead = element("div", { class: "lead", role: "status" });
    this.result = element("div");
    this.runs = element("div", { class: "tools" });
    this.run = element("div");
    this.command = element("code");
    this.recorded = element("div");
    place.replaceChildren(element("h1", {}, "What would change?"),
      element("div", { class: "bench" }, this.form, element("div", { class: "results" }, this.lead, this.result, this.recorded,
        element("section", {}, element("h2", {}, "One run, packet by packet"), this.runs, this.run),
        element("p", { class: "note" }, "The same on the command line: ", this.command))));
    this.names = this.latest.client.call({ op: "list" }).then((text) => JSON.parse(text));
    this.names.catch((error) => { this.lead.textContent = error.message; });
  }

  /** @param {string} state */
  open(state) {
    this.settings = { ...DEFAULTS, ...parsed(state) };
    if (this.latest.recording?.name !== this.settings.har) this.latest.recording = null;
    this.names.then((names) => { this.controls(names); this.update(); });
  }

  /** @param {string} key @param {string} value */
  set(key, value) {
    if (value === "") delete this.settings[key];
    else this.settings[key] = value;
    // Packets of other settings are others.
    delete this.settings.step;
    this.address();
    this.update();
  }

  /** Writes the settings into the address. */
  address() {
    const state = written(this.settings);
    history.replaceState(null, "", state ? `#compare?${state}` : "#compare");
  }

  /** @param {any} names */
  controls(names) {
    const { settings } = this;
    const sliders = SLIDERS.map((slider) => {
      const isNetworks = Boolean(settings.network) && settings[slider.key] === DEFAULTS[slider.key];
      const output = element("output", {}, isNetworks ? `as ${settings.network}` : settings[slider.key] ?? "");
      const range = element("input", { type: "range", min: "0", max: String(slider.max), value: String(stepOf(slider, settings[slider.key] ?? "")),
        ariaLabel: slider.label, ariaValueText: settings[slider.key] ?? "", oninput: () => {
          const text = slider.text(+range.value);
          output.textContent = text;
          range.ariaValueText = text;
          this.set(slider.key, text);
        } });
      return element("label", { class: "slider" }, element("span", {}, slider.label, " ", output), range);
    });
    const pages = element("datalist", { id: "pages" }, ...names.pages.map((/** @type {any} */ one) => element("option", { value: one.name }, one.description)));
    const page = element("input", { type: "text", value: settings.page ?? "", spellcheck: false,
      onchange: () => { this.latest.recording = null; delete this.settings.har; this.set("page", page.value.trim()); } });
    page.setAttribute("list", "pages");
    const network = this.choice("network", [["", "these sliders"], ...names.networks.map((/** @type {any} */ one) => [one.name, one.name])]);
    const stacks = this.choice("stack", names.stacks.map((/** @type {any} */ one) => [one.name, one.name]));
    const chosen = (settings.protocol ?? "").split(",");
    const protocols = names.protocols.map((/** @type {any} */ one) => {
      const box = element("input", { type: "checkbox", checked: chosen.includes(one.name), onchange: () => {
        const list = names.protocols.map((/** @type {any} */ each) => each.name).filter((/** @type {string} */ name) =>
          name === one.name ? box.checked : (this.settings.protocol ?? "").split(",").includes(name));
        this.set("protocol", list.join(","));
      } });
      return element("label", { title: one.description }, box, one.name);
    });
    const switches = SWITCHES.map(([key, label, values]) => element("label", { class: "switch" }, element("span", {}, label), this.choice(key, values)));
    this.form.replaceChildren(
      element("fieldset", {}, element("legend", {}, "Network"), element("label", { class: "switch" }, element("span", {}, "Like"), network), ...sliders),
      element("fieldset", {}, element("legend", {}, "Page"),
        element("label", { class: "switch" }, element("span", {}, "Sizes in bytes, or a name"), page), pages,
        element("p", { class: "note" }, settings.har ? `Recorded: ${settings.har}` : "Or drop a HAR or a Chromium trace anywhere on the page.")),
      this.folded("Protocols", "boxes", protocols),
      this.folded("TCP and TLS", "", [element("label", { class: "switch" }, element("span", {}, "Stack"), stacks), ...switches]));
  }

  /** A group that is folded where the results would be far below. @param {string} name @param {string} kind @param {Node[]} children */
  folded(name, kind, children) {
    const isOpen = this.folds.get(name) ?? matchMedia("(min-width: 52rem)").matches;
    const fold = element("details", { open: isOpen, class: "group", ontoggle: () => this.folds.set(name, fold.open) },
      element("summary", {}, name), element("div", { class: kind, role: "group", ariaLabel: name }, ...children));
    return fold;
  }

  /** @param {string} key @param {[string, string][]} values */
  choice(key, values) {
    const select = element("select", { onchange: () => {
      this.set(key, select.value);
      if (key === "network") this.names.then((names) => this.controls(names));
    } }, ...values.map(([value, name]) => element("option", { value }, name)));
    select.value = this.settings[key] ?? "";
    return select;
  }

  /** The request for these settings. @param {string} op @param {Settings} settings */
  request(op, settings) {
    const values = { ...settings };
    if (op === "compare") values.runs ??= values.loss && values.loss !== "0%" ? "10" : "1";
    if (this.latest.recording) delete values.page;
    return { op, settings: entries(values), is_recorded: Boolean(settings.har) };
  }

  /** @param {Settings} settings */
  commandLine(settings) {
    /** @type {Map<string, string[]>} */
    const flags = new Map();
    for (const [key, value] of this.request("compare", settings).settings) flags.set(key, [...flags.get(key) ?? [], value]);
    if (settings.har) flags.set("page", [settings.har]);
    const quoted = (/** @type {string} */ text) => /^[\w.,+%:/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
    return `roundtrip compare ${[...flags].map(([key, values]) => `--${key} ${quoted(values.join(","))}`).join(" ")}`;
  }

  update() {
    this.latest.request(async () => {
      const { settings } = this;
      const began = performance.now();
      try {
        const view = await this.latest.call(this.request("compare", settings));
        this.lead.replaceChildren(...view.sentences.map((/** @type {string} */ sentence) => element("p", {}, sentence)));
        show(this.result, view.html);
        makeScrollable(this.result, "Results");
        this.result.dataset.rows = view.rows;
        this.result.dataset.took = (performance.now() - began).toFixed(1);
        this.command.textContent = this.commandLine(settings);
        this.choose();
        // The run waits until the sliders rest.
        if (this.latest.next === null) await this.show();
      } catch (/** @type {any} */ error) {
        if (error.kind === "cancelled") return;
        this.lead.replaceChildren(element("p", { class: "refused", role: "alert" }, error.message));
      }
    });
  }

  /** Buttons for the runs that can be shown. */
  choose() {
    const protocols = (this.settings.protocol ?? "").split(",").filter((name) => name !== "" && name !== "minimum");
    if (!protocols.includes(this.settings.run ?? "")) this.settings.run = protocols[0] ?? "";
    this.runs.replaceChildren(...protocols.map((name) => element("button", { type: "button", ariaPressed: String(name === this.settings.run),
      onclick: () => this.set("run", name) }, name)));
  }

  async show() {
    if (!this.settings.run) return;
    let run;
    try {
      run = await this.latest.call(this.request("run", { ...this.settings, protocol: this.settings.run }));
    } catch (/** @type {any} */ error) {
      if (error.kind !== "refused") throw error;
      this.run.replaceChildren(element("p", { class: "note" }, error.message));
      return;
    }
    const costs = new Map();
    for (const { cause, lost_ms } of run.stalls) {
      const { times, lost } = costs.get(cause) ?? { times: 0, lost: 0 };
      costs.set(cause, { times: times + 1, lost: lost + lost_ms });
    }
    const items = [...costs].sort((one, other) => other[1].lost - one[1].lost)
      .map(([cause, { times, lost }]) => element("li", {}, element("b", {}, cause), `: ${duration(lost)}${times > 1 ? `, ${times} times` : ""}`));
    const list = items.length > 0 ? element("ul", { class: "stalls" }, ...items) : element("p", {}, "No stalls.");
    this.walk?.pause();
    const { walk, plots } = walkThrough(run, packetOf(this.settings.step), (at) => {
      if (at > 0) this.settings.step = String(at + 1);
      else delete this.settings.step;
      if (location.hash.startsWith("#compare")) this.address();
    });
    this.walk = walk;
    this.run.replaceChildren(element("p", { class: "facts" }, `${run.title}: ${duration(run.elapsed_ms)}`),
      element("p", {}, run.critical_path ?? ""), list, walk?.element ?? "", plots);
  }
}

/** @type {CompareView | null} */
let compareView = null;
const compareOf = () => compareView ??= new CompareView(/** @type {HTMLElement} */ (document.getElementById("compare")));

/** @param {string} state */
const openCompare = (state) => compareOf().open(state);

/** A recording becomes the page of the experiment. @param {File} file */
const openRecording = async (file) => {
  const view = compareOf();
  view.latest.recording = file;
  view.latest.isLoaded = false;
  const protocol = "http11-parallel,http2";
  history.replaceState(null, "", `#compare?har=${encodeURIComponent(file.name)}&protocol=${protocol}`);
  route();
};
