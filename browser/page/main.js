// Views, and files that are dropped anywhere on the page.
// @ts-check

const views = ["diagnose", "compare", "papers", "lessons"];

/** Shows the view that the address names: `#compare?rtt=40ms`. */
const route = () => {
  const [name = "", state = ""] = location.hash.slice(1).split("?");
  const view = views.includes(name) ? name : "diagnose";
  for (const other of views) {
    const place = document.getElementById(other);
    if (place) place.hidden = other !== view;
  }
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("data-view") === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (view === "compare") openCompare(state);
  if (view === "papers") openPapers(state);
  if (view === "lessons") openLessons();
};

const input = /** @type {HTMLInputElement} */ (document.getElementById("files"));
input.addEventListener("change", () => {
  readFiles(input.files ?? []);
  input.value = "";
});
const drop = document.getElementById("drop");
addEventListener("dragover", (event) => {
  event.preventDefault();
  drop?.classList.add("over");
});
addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) drop?.classList.remove("over");
});
addEventListener("drop", (event) => {
  event.preventDefault();
  drop?.classList.remove("over");
  const files = [...event.dataTransfer?.files ?? []];
  if (files.some((file) => !RECORDING.test(file.name)) && !location.hash.startsWith("#diagnose")) location.hash = "#diagnose";
  readFiles(files);
});
addEventListener("hashchange", route);
route();
// Module and worker are fetched and compiled while the reader looks at the page.
Promise.all([compiled("diagnose"), scriptAddress()]).catch(() => {});
document.documentElement.dataset.ready = "true";
performance.mark("usable");
