// Papers: every published table and figure beside ours, as `roundtrip reproduce --report` writes them.
// @ts-check

const VERDICTS = ["exact", "within-tolerance", "holds", "fitted", "explained", "not-testable-here", "differs"];
/** Widths of a figure, in parts of the page's. */
const WIDTHS = [1, 1.5, 2.25, 3.5];

/** A figure with buttons that change its width. @param {Element} figure @returns {HTMLElement} */
const zoomable = (figure) => {
  let step = 0;
  const image = /** @type {HTMLImageElement | null} */ (figure.querySelector("img"));
  const zoom = (/** @type {number} */ by) => {
    step = Math.min(WIDTHS.length - 1, Math.max(0, step + by));
    if (image) image.style.width = `${100 * (WIDTHS[step] ?? 1)}%`;
  };
  return element("div", { class: "tools" },
    element("button", { type: "button", ariaLabel: "Larger", onclick: () => zoom(1) }, "+"),
    element("button", { type: "button", ariaLabel: "Smaller", onclick: () => zoom(-1) }, "\u2212"));
};

/** An element of the report, which has no scripts. @param {string} html */
const parsedPart = (html) => {
  const template = element("template");
  show(template, html);
  return /** @type {DocumentFragment} */ (template.content);
};

/** One table or figure, folded; its contents are parsed when it is opened first. */
class PaperItem {
  /** @param {string} html its section of the report */
  constructor(html) {
    const [head = "", contents = ""] = html.split(/(?<=<p class="facts">[^<]*<\/p>)/);
    const section = /** @type {HTMLElement} */ (parsedPart(head).firstElementChild);
    this.key = section.id;
    this.verdicts = (section.dataset.verdicts ?? "").split(" ");
    this.title = section.querySelector("h3")?.textContent ?? this.key;
    const facts = section.querySelector(".facts")?.textContent ?? "";
    this.element = element("details", { class: "item", ontoggle: () => this.open(contents) },
      element("summary", {}, element("b", {}, this.title), " ", element("span", { class: "note" }, facts)));
  }

  /** @param {string} html */
  open(html) {
    if (!this.element.open) return;
    if (location.hash.startsWith("#papers")) history.replaceState(null, "", `#papers?key=${this.key}`);
    if (this.element.children.length > 1) return;
    const contents = parsedPart(html);
    makeScrollable(contents, this.title);
    for (const scroll of contents.querySelectorAll(".scroll:has(img)")) scroll.before(zoomable(scroll));
    this.element.append(contents);
  }
}

/** The view; created when it is first shown. */
class PapersView {
  /** @param {HTMLElement} place */
  constructor(place) {
    /** @type {Map<string, PaperItem>} */
    this.items = new Map();
    const choice = element("select", { onchange: () => this.filter(choice.value) },
      ...["any", ...VERDICTS].map((name) => element("option", { value: name === "any" ? "" : name }, name)));
    this.lead = element("div", { class: "lead", role: "status" });
    this.list = element("div");
    this.traces = new TracesView();
    place.replaceChildren(element("h1", {}, "Published, and ours"), this.lead, this.traces.element,
      element("div", { class: "tools" }, element("label", {}, "With the verdict", choice)), this.list);
    this.loaded = textOf("papers.html").then((text) => this.fill(text));
    this.loaded.catch((error) => this.lead.replaceChildren(element("p", { class: "refused", role: "alert" }, error.message)));
  }

  /** @param {string} report */
  fill(report) {
    const [head = "", ...papers] = (report.split("</main>")[0] ?? "").split(/(?=^<h2>)/m);
    this.lead.replaceChildren(...parsedPart(head.slice(head.indexOf("<body>"))).querySelectorAll(".lead p"));
    for (const paper of papers) {
      const [heading = "", ...sections] = paper.split(/(?=^<section )/m);
      const items = sections.map((html) => new PaperItem(html));
      for (const item of items) this.items.set(item.key, item);
      this.list.append(element("section", { class: "paper" }, parsedPart(heading), ...items.map((item) => item.element)));
    }
  }

  /** Shows the items that have a cell with this verdict. @param {string} verdict */
  filter(verdict) {
    for (const { element: fold, verdicts } of this.items.values()) fold.hidden = verdict !== "" && !verdicts.includes(verdict);
    for (const paper of this.list.children) /** @type {HTMLElement} */ (paper).hidden = !paper.querySelector(".item:not([hidden])");
  }

  /** @param {string} key `p-http/figure-3` */
  async show(key) {
    await this.loaded;
    const fold = this.items.get(key)?.element;
    if (!fold) return;
    fold.open = true;
    fold.scrollIntoView({ block: "start" });
    fold.querySelector("summary")?.focus({ preventScroll: true });
  }
}

/** @type {PapersView | null} */
let papersView = null;

/** @param {string} state `key=p-http/figure-3` or `trace=slow-start-restart&step=7` */
const openPapers = (state) => {
  papersView ??= new PapersView(/** @type {HTMLElement} */ (document.getElementById("papers")));
  const { key, trace, step } = parsed(state);
  if (key) papersView.show(key).catch(() => {});
  if (trace) papersView.traces.show(trace, packetOf(step));
};
