// Zoom by the wheel, pan by dragging, all of it by a double click. Without this script the plots still show.
for (const svg of document.querySelectorAll("svg.sequence")) {
  const data = svg.querySelector("svg.data");
  const left = +svg.dataset.left, width = +svg.dataset.width, span = +svg.dataset.span;
  const [, , inner, height] = data.getAttribute("viewBox").split(" ").map(Number);
  const tick = svg.querySelector(".tick[data-t]");
  let low = 0, high = 1;
  const show = () => {
    data.setAttribute("viewBox", `${low * inner} 0 ${(high - low) * inner} ${height}`);
    const place = (t) => (t - low) / (high - low);
    let reached = -1;
    for (const name of svg.querySelectorAll(".name")) {
      const t = place(+name.dataset.t), x = left + t * width, half = 3.1 * name.textContent.length;
      const fits = t >= 0 && t <= 1 && x - half > reached;
      name.setAttribute("display", fits ? "inline" : "none");
      name.setAttribute("x", x);
      if (fits) reached = x + half;
    }
    for (const old of svg.querySelectorAll(".tick[data-t]")) old.remove();
    const rough = (high - low) * span / 8, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((n) => n * power).find((s) => s >= rough);
    const digits = Math.max(0, -Math.floor(Math.log10(step)));
    for (let ms = Math.ceil(low * span / step) * step; ms <= high * span; ms += step) {
      const label = tick.cloneNode();
      label.setAttribute("x", left + place(ms / span) * width);
      label.textContent = step >= 1000 ? `${(ms / 1000).toFixed(0)} s` : `${ms.toFixed(digits)} ms`;
      svg.append(label);
    }
  };
  const at = (event) => {
    const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * 960;
    return low + (high - low) * (x - left) / width;
  };
  svg.addEventListener("wheel", (event) => {
    event.preventDefault();
    const t = at(event), factor = event.deltaY > 0 ? 1.25 : 0.8;
    low = Math.max(0, t - (t - low) * factor);
    high = Math.min(1, Math.max(low + 1e-6, t + (high - t) * factor));
    show();
  }, { passive: false });
  let held = null;
  svg.addEventListener("pointerdown", (event) => { held = at(event); svg.setPointerCapture(event.pointerId); });
  svg.addEventListener("pointerup", () => { held = null; });
  svg.addEventListener("pointermove", (event) => {
    if (held === null) return;
    const shift = Math.max(-low, Math.min(1 - high, held - at(event)));
    low += shift; high += shift;
    show();
  });
  svg.addEventListener("dblclick", () => { low = 0; high = 1; show(); });
}
