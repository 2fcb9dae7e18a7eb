// Captures: read in a worker each, then shown as the command line's report shows them.
// @ts-check

/** @param {string} tag @param {Record<string, any>} [properties] @param {(Node | string)[]} children */
const element = (tag, properties = {}, ...children) => {
  const created = /** @type {any} */ (document.createElement(tag));
  for (const [name, value] of Object.entries(properties)) {
    if (name in created) created[name] = value;
    else created.setAttribute(name, value);
  }
  created.append(...children);
  return created;
};

/** Shows HTML of the module, which has escaped every text of a capture. @param {HTMLElement} place @param {string} html */
const show = (place, html) => {
  place.innerHTML = html;
};

/** Makes what scrolls sideways reachable by the keyboard, under a name. @param {ParentNode} place @param {string} name */
const makeScrollable = (place, name) => {
  for (const scroll of place.querySelectorAll(".scroll")) Object.assign(scroll, { tabIndex: 0, role: "region", ariaLabel: name });
};

/** Milliseconds as the reports print durations. @param {number} ms */
const duration = (ms) => {
  if (ms === 0) return "0 ms";
  if (ms < 1) return `${+(ms * 1e3).toPrecision(3)} us`;
  if (ms < 1e4) return `${+ms.toPrecision(3)} ms`;
  return `${+(ms / 1e3).toPrecision(3)} s`;
};

/** @param {string} name @param {string} type @param {string} text */
const download = (name, type, text) => {
  const address = URL.createObjectURL(new Blob([text], { type }));
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
};

const MAX_READERS = 2;
/** Rows of a list that are shown before more are asked for. */
const ROWS = 200;

/** @typedef {{ flow: number, client: string, server: string, protocol: string, packets: number, bytes: number,
 *   requests: number, at_ms: number, elapsed_ms: number, lost_ms: number, cause: string | null, causes: string[],
 *   findings: number }} ConnectionRow */

let active = 0;
/** @type {(() => void)[]} */
const waiting = [];
/** Runs a few readings concurrently; the others wait. @template T @param {() => Promise<T>} run */
const limited = async (run) => {
  if (active >= MAX_READERS) await new Promise((resolve) => waiting.push(() => resolve(null)));
  active += 1;
  try {
    return await run();
  } finally {
    active -= 1;
    waiting.shift()?.();
  }
};

let captureCount = 0;
/** Views of captures, which are read again with a key log that comes later. @type {Set<CaptureView>} */
const captureViews = new Set();
/** Lines of all key logs that were given. */
let keyLog = "";
/** Begins a key log: comments, then a label, the random value of a Client Hello, and a secret. */
const KEY_LOG = /^(?:\s*#[^\n]*\n)*\s*[A-Z0-9_]+ [0-9a-f]{64} (?:[0-9a-f]{64}|[0-9a-f]{96})\s/i;
/** Bytes that a key log may have, as on the command line. */
const MAX_KEY_LOG = 1 << 26;

/** One file: its progress, then its diagnosis or the reason against it. */
class CaptureView {
  /** @param {File} file */
  constructor(file) {
    this.file = file;
    this.number = ++captureCount;
    this.client = new WorkerClient("diagnose");
    this.article = element("article", { class: "capture", ariaLabel: file.name });
    /** @type {Record<string, any>} */
    this.filter = {};
    this.isRemoved = false;
    /** Counts readings: a later one replaces those before. */
    this.reading = 0;
    captureViews.add(this);
  }

  async read() {
    const bar = element("progress", { max: 1, value: 0, ariaLabel: `Reading ${this.file.name}` });
    const cancel = element("button", { type: "button", onclick: () => this.cancel() }, "Cancel");
    const line = element("section", { class: "reading" }, element("span", {}, `Reading ${this.file.name}`), bar, cancel);
    this.article.replaceChildren(line);
    const request = { op: "diagnose", name: this.file.name, file: this.number, keys: keyLog || null, ...this.filter };
    const began = performance.now();
    const reading = ++this.reading;
    try {
      const reply = await limited(async () => {
        if (this.isRemoved || reading !== this.reading) throw new Refusal("reading was cancelled", "cancelled");
        return this.client.call(request, this.file, (part) => { bar.value = part; });
      });
      if (reading !== this.reading) return;
      this.present(JSON.parse(reply));
      this.article.dataset.tookMs = (performance.now() - began).toFixed(1);
      this.article.dataset.memory = String(this.client.memory);
    } catch (error) {
      if (reading === this.reading) this.refuse(error);
    }
  }

  cancel() {
    this.isRemoved = true;
    this.client.stop("reading was cancelled", "cancelled");
    this.refuse(new Refusal("reading was cancelled", "cancelled"));
  }

  /** @param {any} error */
  refuse(error) {
    const sentence = error.kind === "refused" ? error.message : `${this.file.name}: ${error.message}`;
    const again = element("button", { type: "button", onclick: () => { this.isRemoved = false; this.filter = {}; this.read(); } }, "Read it again");
    this.article.replaceChildren(element("section", { class: "refused", role: "alert" }, element("p", {}, sentence), again, " ", this.remover()));
  }

  remover() {
    return element("button", { type: "button", onclick: () => {
      this.isRemoved = true;
      captureViews.delete(this);
      this.client.stop("removed", "cancelled");
      this.article.remove();
    } }, "Remove");
  }

  /** @param {{ html: string, connections: ConnectionRow[] }} view */
  present(view) {
    const overview = element("section");
    show(overview, view.html);
    overview.append(this.exports(), this.filters());
    this.place = element("div");
    const list = new ConnectionList(view.connections, (row) => this.open(row));
    for (const name of overview.querySelectorAll("ol.causes b")) {
      const cause = name.textContent ?? "";
      const button = element("button", { type: "button", class: "plain", title: "Show its connections",
        onclick: () => { list.search(cause); list.element.scrollIntoView({ block: "nearest" }); } }, cause);
      name.replaceChildren(button);
    }
    this.article.replaceChildren(overview);
    if (view.connections.length > 1) this.article.append(list.element);
    this.article.append(this.place);
    const first = list.shown[0];
    if (first) list.select(first);
  }

  exports() {
    const stem = this.file.name.replace(/\.(pcapng|pcap|cap)?(\.(gz|zst|bz2|xz))?$/, "");
    /** @type {[string, string, string][]} */
    const formats = [["Report", "html", "text/html"], ["JSON", "json", "application/json"], ["CSV", "csv", "text/csv"], ["HAR", "har", "application/json"], ["Text", "table", "text/plain"]];
    const buttons = formats.map(([name, format, type]) => element("button", { type: "button", onclick: async () => {
      const extension = format === "table" ? "txt" : format;
      download(`${stem}.${extension}`, type, await this.client.call({ op: "export", format }));
    } }, name));
    return element("div", { class: "tools" }, element("span", { class: "note" }, "Save as"), ...buttons, this.remover());
  }

  /** The filters of `roundtrip diagnose`: they read the file again. */
  filters() {
    const { flows = [], causes = [], since = "" } = this.filter;
    const flow = element("input", { type: "text", value: flows.join(","), placeholder: "10.0.0.1:443" });
    const cause = element("input", { type: "text", value: causes.join(","), placeholder: "nagle-delayed-ack" });
    const from = element("input", { type: "text", value: since, placeholder: "1.5s", size: 8 });
    const form = element("form", { class: "tools", onsubmit: (/** @type {Event} */ event) => {
      event.preventDefault();
      const list = (/** @type {HTMLInputElement} */ input) => input.value.split(",").map((part) => part.trim()).filter(Boolean);
      this.filter = { flows: list(flow), causes: list(cause), since: from.value.trim() || null };
      this.read();
    } }, element("label", {}, "connection", flow), element("label", {}, "cause", cause), element("label", {}, "from", from),
    element("button", { type: "submit" }, "Apply"));
    const isSet = flows.length > 0 || causes.length > 0 || since;
    return element("details", { open: Boolean(isSet) }, element("summary", {}, "Filter"), form);
  }

  /** @param {ConnectionRow} row */
  async open(row) {
    const html = await this.client.call({ op: "connection", flow: row.flow, capture: this.number });
    show(this.place, html);
    const svg = this.place.querySelector("svg.sequence");
    if (!svg) return;
    const scroll = element("div", { class: "plot-scroll" });
    svg.replaceWith(scroll);
    scroll.append(svg);
    attachPlot(svg, this.place.firstElementChild);
    const save = element("button", { type: "button", onclick: async () => {
      const text = await this.client.call({ op: "plot", flow: row.flow });
      download(`${row.client}-${row.server}.svg`.replace(/[[\]:%]/g, "_"), "image/svg+xml", text);
    } }, "Save the plot as SVG");
    scroll.after(element("div", { class: "tools" }, element("span", { class: "note" },
      "Drag to pan, Ctrl and scroll or + and - to zoom, 0 for all of it. A click selects a finding."), save));
  }
}

/** Connections with search and sort. */
class ConnectionList {
  /** @param {ConnectionRow[]} rows @param {(row: ConnectionRow) => void} choose */
  constructor(rows, choose) {
    this.rows = rows;
    this.choose = choose;
    this.limit = ROWS;
    this.selected = -1;
    /** Rows that the search selects, in order. */
    this.shown = rows;
    /** @type {{ name: string, key: keyof ConnectionRow, isNumber: boolean, text: (row: ConnectionRow) => string }[]} */
    this.columns = [
      { name: "connection", key: "client", isNumber: false, text: (row) => `${row.client} to ${row.server}` },
      { name: "began at", key: "at_ms", isNumber: true, text: (row) => `${Math.round(row.at_ms)} ms` },
      { name: "took", key: "elapsed_ms", isNumber: true, text: (row) => duration(row.elapsed_ms) },
      { name: "lost", key: "lost_ms", isNumber: true, text: (row) => duration(row.lost_ms) },
      { name: "packets", key: "packets", isNumber: true, text: (row) => String(row.packets) },
      { name: "requests", key: "requests", isNumber: true, text: (row) => String(row.requests) },
      { name: "mostly by", key: "cause", isNumber: false, text: (row) => row.cause ?? "" },
    ];
    /** @type {{ key: keyof ConnectionRow, isDown: boolean }} */
    this.order = { key: "lost_ms", isDown: true };
    this.box = element("input", { type: "search", placeholder: "address, port or cause", oninput: () => { this.limit = ROWS; this.draw(); } });
    this.count = element("span", { class: "note", role: "status" });
    this.head = element("tr");
    this.body = element("tbody");
    this.more = element("button", { type: "button", onclick: () => { this.limit += ROWS; this.draw(); } }, "Show more");
    this.element = element("section", {}, element("h2", {}, "Connections"),
      element("div", { class: "tools" }, element("label", {}, "Search", this.box), this.count),
      element("div", { class: "long", tabIndex: 0, role: "region", ariaLabel: "Connections" },
        element("table", { class: "rows" }, element("thead", {}, this.head), this.body), this.more));
    this.draw();
  }

  /** @param {string} text */
  search(text) {
    this.box.value = text;
    this.draw();
  }

  draw() {
    /** @type {string[]} */
    const words = this.box.value.toLowerCase().split(/\s+/).filter(Boolean);
    const of = (/** @type {ConnectionRow} */ row) => `${row.client} ${row.server} ${row.protocol} ${row.causes.join(" ")}`.toLowerCase();
    this.shown = this.rows.filter((row) => { const text = of(row); return words.every((word) => text.includes(word)); });
    const { key, isDown } = this.order, sign = isDown ? -1 : 1;
    this.shown.sort((one, other) => {
      const [a, b] = [one[key] ?? "", other[key] ?? ""];
      return sign * (a < b ? -1 : a > b ? 1 : 0) || one.flow - other.flow;
    });
    this.count.textContent = words.length > 0 ? `${this.shown.length} of ${this.rows.length}` : `${this.rows.length}`;
    this.more.hidden = this.shown.length <= this.limit;
    this.head.replaceChildren(...this.columns.map((column) => {
      const sort = column.key !== key ? "none" : isDown ? "descending" : "ascending";
      const button = element("button", { type: "button", class: "plain", onclick: () => {
        this.order = { key: column.key, isDown: column.key === key ? !isDown : column.isNumber };
        this.draw();
      } }, column.name);
      return element("th", { class: column.isNumber ? "number" : "", scope: "col", ariaSort: sort }, button);
    }));
    this.body.replaceChildren(...this.shown.slice(0, this.limit).map((row) => {
      const cells = this.columns.map((column, index) => {
        const text = column.text(row);
        const inner = index === 0 ? element("button", { type: "button", class: "plain" }, text) : text;
        return element("td", { class: column.isNumber ? "number" : "" }, inner);
      });
      return element("tr", { ariaSelected: String(row.flow === this.selected), onclick: () => this.select(row) }, ...cells);
    }));
  }

  /** @param {ConnectionRow} row */
  select(row) {
    this.selected = row.flow;
    [...this.body.children].forEach((line, index) => { line.ariaSelected = String(this.shown[index] === row); });
    this.choose(row);
  }
}

/** Names of recordings, which open in Compare: HARs, and traces of Chromium. */
const RECORDING = /\.(har|json)(\.(gz|zst|bz2|xz))?$/i;

/** Uses the key logs among files: captures that are shown are read again. Returns the other files. @param {File[]} files */
const takeKeyLogs = async (files) => {
  const texts = await Promise.all(files.map((file) => file.slice(0, 1 << 14).text().catch(() => "")));
  const logs = files.filter((file, index) => file.size <= MAX_KEY_LOG && KEY_LOG.test(texts[index] ?? ""));
  if (logs.length === 0) return files;
  for (const log of logs) keyLog += `${await log.text()}\n`;
  const note = document.getElementById("keys");
  if (note) note.textContent = `Key log: ${logs.map((log) => log.name).join(", ")}. Captures are read with it; it stays on this page.`;
  for (const view of captureViews) {
    view.client.stop("read again with a key log", "cancelled");
    view.read();
  }
  return files.filter((file) => !logs.includes(file));
};

/** Reads files that were dropped or chosen. @param {Iterable<File>} files */
const readFiles = async (files) => {
  const place = document.getElementById("captures");
  const given = await takeKeyLogs([...files]);
  const recordings = given.filter((file) => RECORDING.test(file.name));
  for (const file of given.filter((file) => !recordings.includes(file))) {
    const view = new CaptureView(file);
    place?.append(view.article);
    view.read();
    document.getElementById("drop")?.classList.add("small");
  }
  if (recordings[0]) openRecording(recordings[0]);
};
