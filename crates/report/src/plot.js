// Zoom, pan, and the packets under the pointer. Without this script the plots still show.
const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
document.body.append(tip);

// A plot, and the element with the buttons of its findings and exchanges, which have their times as data.
function attachPlot(svg, scope) {
  const data = svg.querySelector("svg.data");
  const left = +svg.dataset.left, width = +svg.dataset.width, span = +svg.dataset.span;
  const [begin, top, inner, height] = data.getAttribute("viewBox").split(" ").map(Number);
  const ticks = [...svg.querySelectorAll(".tick")], behindTicks = ticks.at(-1).nextSibling;
  const leaders = [...svg.querySelectorAll(".leader")], letters = [...svg.querySelectorAll(".letter")];
  const names = [...svg.querySelectorAll(".name")]
    .map((group, n) => ({ group, leader: leaders[n], t: +group.dataset.t, text: group.firstElementChild }))
    .sort((one, other) => one.t - other.t);
  const rows = [...new Set(names.map((name) => +name.text.getAttribute("y")))].sort((one, other) => other - one);
  let low = 0, high = 1;

  const show = () => {
    data.setAttribute("viewBox", `${begin + low * inner} ${top} ${(high - low) * inner} ${height}`);
    const place = (t) => left + (t - low) / (high - low) * width;
    const shift = (group, t) => group.setAttribute("transform", `translate(${place(t) - left - group.dataset.t * width})`);
    const reached = rows.map(() => 0);
    for (const { group, leader, t, text } of names) {
      const half = 3 * text.textContent.length, x = Math.min(left + width - half, Math.max(left + half, place(t)));
      const row = low <= t && t <= high ? reached.findIndex((end) => x - half > end) : -1;
      group.classList.toggle("hidden", row < 0);
      leader.classList.toggle("hidden", row < 0);
      if (row < 0) continue;
      reached[row] = x + half + 5;
      text.setAttribute("x", x);
      text.setAttribute("y", rows[row]);
      leader.firstElementChild.setAttribute("d", `M${place(t)} ${top}V${rows[row] + 3}`);
    }
    for (const letter of letters) {
      letter.classList.toggle("hidden", letter.dataset.t < low || letter.dataset.t > high);
      shift(letter, +letter.dataset.t);
    }
    for (const old of svg.querySelectorAll(".tick")) old.remove();
    const rough = (high - low) * span / 8, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((n) => n * power).find((s) => s >= rough);
    const digits = Math.max(0, -Math.floor(Math.log10(step)));
    for (let ms = Math.ceil(low * span / step) * step; ms <= high * span; ms += step) {
      const tick = ticks[0].cloneNode(true);
      shift(tick, ms / span);
      tick.lastElementChild.textContent = (+ms.toFixed(digits)).toLocaleString("en-US", { maximumFractionDigits: digits });
      svg.insertBefore(tick, behindTicks);
    }
  };
  const look = (from, to) => {
    const wide = Math.min(1, Math.max(1e-6, to - from));
    low = Math.min(1 - wide, Math.max(0, from));
    high = low + wide;
    show();
  };
  const zoom = (t, factor) => look(t - (t - low) * factor, t + (high - t) * factor);
  const at = (event) => {
    const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
    return low + (high - low) * (x - left) / width;
  };

  // What is drawn, by time: read once, at the first pointer.
  let marks = null;
  const read = () => [...data.querySelectorAll("title")].map((title) => {
    const drawn = title.parentNode, text = title.textContent, area = drawn.querySelector("rect");
    title.remove();
    const at = (x) => (x - begin) / inner;
    if (area) {
      const x = +area.getAttribute("x");
      return { stall: true, from: at(x), to: at(x + +area.getAttribute("width")), text, drawn };
    }
    const x = at(parseFloat(drawn.getAttribute("d").slice(1)));
    return { stall: false, from: x, to: x, text, drawn };
  });
  const point = (event) => {
    marks ??= read();
    const t = at(event), near = (high - low) * 5 / width;
    const stalls = marks.filter((mark) => mark.stall && mark.from <= t && t <= mark.to);
    const packets = marks.filter((mark) => !mark.stall && Math.abs(mark.from - t) <= near);
    const lines = packets.slice(0, 14).map((mark) => mark.text);
    if (packets.length > lines.length) lines.push(`and ${packets.length - lines.length} more packets`);
    lines.push(...stalls.slice(0, 2).map((mark) => mark.text));
    tip.hidden = lines.length === 0;
    tip.textContent = lines.join("\n");
    const x = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
    tip.style.left = `${Math.max(4, x)}px`;
    const below = event.clientY + 18, fits = below + tip.offsetHeight < innerHeight;
    tip.style.top = `${fits ? below : Math.max(4, event.clientY - tip.offsetHeight - 10)}px`;
  };

  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(at(event), event.deltaY > 0 ? 1.25 : 0.8);
  }, { passive: false });
  let held = null, isDragged = false;
  svg.addEventListener("pointerdown", (event) => {
    held = at(event);
    isDragged = false;
    svg.setPointerCapture(event.pointerId);
    svg.focus({ preventScroll: true });
  });
  svg.addEventListener("pointerup", () => { held = null; });
  svg.addEventListener("pointermove", (event) => {
    if (held === null) return point(event);
    tip.hidden = true;
    const shift = held - at(event);
    isDragged = isDragged || Math.abs(shift) > (high - low) * 3 / width;
    look(low + shift, high + shift);
  });
  // A click selects the finding or exchange of that time: the shortest one there.
  svg.addEventListener("click", (event) => {
    if (isDragged) return;
    const ms = at(event) * span;
    const spans = buttons.filter((button) => button.dataset.from <= ms && ms <= button.dataset.to);
    spans.sort((one, other) => (one.dataset.to - one.dataset.from) - (other.dataset.to - other.dataset.from));
    if (spans.length > 0) select(spans[0]);
    else plot.pick?.(ms);
  });
  svg.addEventListener("pointerleave", () => { tip.hidden = true; });
  svg.addEventListener("dblclick", () => look(0, 1));
  svg.tabIndex = 0;
  svg.addEventListener("keydown", (event) => {
    const middle = (low + high) / 2, wide = high - low;
    const moves = {
      "+": () => zoom(middle, 0.7), "=": () => zoom(middle, 0.7), "-": () => zoom(middle, 1.4), "0": () => look(0, 1),
      ArrowLeft: () => look(low - wide / 5, high - wide / 5), ArrowRight: () => look(low + wide / 5, high + wide / 5),
    };
    if (!moves[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    moves[event.key]();
  });
  const buttons = [...scope.querySelectorAll("button[data-from]")];
  const select = (chosen) => {
    for (const button of buttons) button.closest(".finding, tr")?.classList.toggle("shown", button === chosen);
    for (let fold = chosen.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    chosen.scrollIntoView({ block: "nearest" });
  };
  for (const button of buttons) {
    button.addEventListener("click", () => {
      const from = button.dataset.from / span, to = button.dataset.to / span, margin = Math.max(to - from, 1e-3) / 3;
      look(from - margin, to + margin);
      select(button);
      svg.scrollIntoView({ block: "nearest" });
    });
  }
  // For a page that walks through the packets: `pick` gets the time of a click that selects nothing.
  const plot = {
    data, span, pick: null, x: (ms) => begin + ms / span * inner, edges: [top, top + height], marks: () => marks ??= read(),
    reveal: (ms) => { if (ms / span < low || ms / span > high) look(ms / span - (high - low) / 2, ms / span + (high - low) / 2); },
  };
  return plot;
}
