// Elements, plots and colours that all panels use.

/** An element with attributes and children; texts are text, never HTML. */
export function element(name, attributes = {}, ...children) {
  const svg = ["svg", "g", "path", "line", "circle", "rect", "polyline", "text", "title"].includes(name);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== null) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

export const find = (id) => document.getElementById(id);

/** A colour of the page's style. */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Four digits; what is smaller than a billionth is 0. */
export const digits = (value) => (Number.isFinite(value) ? Number((Math.abs(value) < 1e-9 ? 0 : value).toPrecision(4)).toString() : String(value));

/** Replaces what is in a box by lines by step: an SVG with named axes, as wide as the box, and a legend of what has a
 * name. series: [{name, values, colour, dashed, thin}]. Lines are pale after `step`, where a marker stands; with
 * `rises`, red dots where the first line rises. */
export function plot(box, series, { step = null, axis = "energy", legend = true, rises = false, height = innerWidth < 600 ? 118 : 170 } = {}) {
  const width = Math.max(260, box.clientWidth || 340);
  let low = Infinity, high = -Infinity;
  for (const { values } of series)
    for (const v of values)
      if (Number.isFinite(v)) {
        low = Math.min(low, v);
        high = Math.max(high, v);
      }
  if (low > high) low = high = 0;
  const span = high - low || 1;
  const most = Math.max(...series.map((one) => one.values.length)) - 1 || 1;
  const left = 62, bottom = height - 34;
  const x = (i) => left + ((width - left - 12) * i) / most;
  const y = (v) => 10 + (bottom - 10) * (1 - (v - low) / span);
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, class: "plot", role: "img", "aria-label": `${axis} by step` });
  svg.append(
    element("text", { x: left - 5, y: 17, "text-anchor": "end" }, digits(high)),
    element("text", { x: left - 5, y: bottom, "text-anchor": "end" }, digits(low)),
    element("text", { x: 12, y: (bottom + 10) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${(bottom + 10) / 2})` }, axis),
    element("text", { x: left, y: height - 20, "text-anchor": "middle" }, "0"),
    element("text", { x: width - 12, y: height - 20, "text-anchor": "end" }, String(most)),
    element("text", { x: (left + width - 12) / 2, y: height - 8, "text-anchor": "middle" }, "step"),
    element("line", { x1: left, x2: width - 12, y1: bottom, y2: bottom, class: "axis" }),
    element("line", { x1: left, x2: left, y1: 10, y2: bottom, class: "axis" }),
  );
  const now = step ?? Infinity;
  for (const one of series) {
    const places = envelope(one.values).filter((i) => Number.isFinite(one.values[i])), strength = one.thin ? 0.6 : 1;
    for (const [part, opacity] of [[places.filter((i) => i >= now), 0.16], [places.filter((i) => i <= now), 1]]) {
      if (!part.length) continue;
      const line = element("polyline", { points: part.map((i) => `${x(i).toFixed(1)},${y(one.values[i]).toFixed(1)}`).join(" "), fill: "none", stroke: one.colour, "stroke-width": one.thin ? 1.3 : 2.2, "stroke-opacity": strength * opacity, "stroke-dasharray": one.dashed ? "4 3" : null });
      line.append(element("title", {}, one.name));
      svg.append(line);
    }
    if (now <= most && Number.isFinite(one.values[now])) svg.append(element("circle", { cx: x(now), cy: y(one.values[now]), r: one.thin ? 2.5 : 4, fill: one.colour }));
  }
  if (rises) for (const t of risesOf(series[0].values).filter((t) => Number.isFinite(series[0].values[t])).slice(0, 60)) svg.append(element("circle", { cx: x(t), cy: y(series[0].values[t]), r: 3, class: "rise" }));
  if (step !== null) svg.append(element("line", { x1: x(step), x2: x(step), y1: 10, y2: bottom, class: "marker" }));
  const names = element("p", { class: "legend" });
  if (legend)
    for (const one of series) {
      const sample = element("svg", { viewBox: "0 0 22 8", class: "sample", "aria-hidden": "true" });
      sample.append(element("line", { x1: 0, x2: 22, y1: 4, y2: 4, stroke: one.colour, "stroke-width": 3, "stroke-dasharray": one.dashed ? "5 3" : null }));
      names.append(element("span", {}, sample, ` ${one.name}`));
    }
  box.replaceChildren(svg, ...(legend ? [names] : []));
}

/** The places of all values, or of the least and the most in each of 250 parts: what swings from step to step stays seen. */
function envelope(values, parts = 250) {
  if (values.length <= 2 * parts) return [...values.keys()];
  const places = [0];
  for (let part = 0; part < parts; part++) {
    const from = Math.floor((part * values.length) / parts), to = Math.floor(((part + 1) * values.length) / parts);
    let low = from, high = from;
    for (let i = from; i < to; i++) {
      if (values[i] < values[low]) low = i;
      if (values[i] > values[high]) high = i;
    }
    places.push(Math.min(low, high), Math.max(low, high));
  }
  return [...places, values.length - 1];
}

/** The places 0 .. count - 1, or 500 of them with the first and the last. */
export function thinned(count, most = 500) {
  const every = Math.max(1, (count - 1) / most);
  return Array.from({ length: Math.floor((count - 1) / every) + 1 }, (_, k) => Math.round(k * every));
}

/** Steps whose energy is above the one before by more than single precision rounds where terms cancel. */
export function risesOf(energy, tolerance = 3e-6) {
  const size = Math.max(Math.abs(energy[0]), Math.abs(energy[energy.length - 1]));
  const found = [];
  for (let t = 1; t < energy.length; t++) if (!(energy[t] <= energy[t - 1] + tolerance * (size + Math.abs(energy[t - 1])))) found.push(t);
  return found;
}

/** Gives every file that a visitor chooses to `use`, also the same one again. */
export function chosenFile(input, use) {
  input.addEventListener("change", () => {
    const [file] = input.files;
    input.value = "";
    if (file) use(file);
  });
}

/** Whether the visitor asked for pages that do not move by themselves. */
export const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** A button that shows step after step: `last()` is the last one, `show(step)` draws it; the first steps, which change
 * most, take longer. The function that stops it has `.play(from)`. */
export function player(button, { last, at, show, milliseconds = 2600, label = "Play" }) {
  let frame = 0;
  const stop = () => {
    cancelAnimationFrame(frame);
    frame = 0;
    button.textContent = label;
  };
  stop.play = (from = at() >= last() ? 0 : at()) => {
    stop();
    const end = last(), begin = performance.now() - milliseconds * (from / end) ** (1 / 1.7);
    let shown = -1;
    button.textContent = "Pause";
    const tick = () => {
      const step = Math.min(end, end * Math.min(1, (performance.now() - begin) / milliseconds) ** 1.7);
      if (step >= end) stop();
      else frame = requestAnimationFrame(tick);
      if (step !== shown) show((shown = step));
    };
    tick();
  };
  stop.playing = () => frame !== 0;
  stop();
  button.addEventListener("click", () => (frame ? stop() : stop.play()));
  return stop;
}

/** Zeros and ones as hexadecimal digits, and back: for addresses. */
export const toHex = (bits) => Array.from({ length: Math.ceil(bits.length / 4) }, (_, k) => [0, 1, 2, 3].reduce((sum, j) => sum | ((bits[4 * k + j] ? 1 : 0) << j), 0).toString(16)).join("");
export const fromHex = (text, count) => Array.from({ length: count }, (_, i) => (Number.parseInt(text[i >> 2] || "0", 16) >> (i & 3)) & 1);

/** A slider with its name and value; log: by powers of ten; bend: with more space for small values; whole numbers with step 1. */
export function slider(name, { min, max, value, step = 0.01, log = false, bend = 1, note = "", onchange }) {
  const show = element("output", {}, "");
  const input = element("input", {
    type: "range",
    min: log ? 0 : min,
    max: log ? 1 : max,
    step: log ? 0.001 : step,
    "aria-label": name,
    title: note,
  });
  let now = value; // what was written stays as it is, though a slider has places between which it jumps
  const decades = log ? Math.log10(max / min) : 0;
  const show_it = () => {
    show.textContent = now >= 1e6 ? now.toExponential(0).replace("+", "") : Number(now.toPrecision(step === 1 ? 6 : 3)).toString();
    input.setAttribute("aria-valuetext", show.textContent);
  };
  const read = () => now;
  const write = (v) => {
    now = v;
    input.value = log ? Math.max(0, Math.log10(v / min) / decades) ** (1 / bend) : v;
    show_it();
  };
  input.addEventListener("input", () => {
    now = log ? min * 10 ** (decades * Number(input.value) ** bend) : Number(input.value);
    if (step === 1) now = Math.round(now);
    show_it();
    onchange(now);
  });
  write(value);
  const label = element("label", { class: "slider" }, element("span", {}, name, note ? element("small", {}, note) : null), input, show);
  return { label, read, write, input };
}

/** Numbers as an address has them, and back. */
export const written = (list) => list.map((v) => Number(v.toFixed(3))).join(" ");
export const numbers = (text) => text.split(/[ ,]+/).filter(Boolean).map(Number).filter(Number.isFinite);

/** Calls a function at once, and at most one more time while it runs: the last one wins. */
export function latest(work) {
  let running = false, again = null;
  return async function run(...args) {
    if (running) {
      again = args;
      return;
    }
    running = true;
    try {
      await work(...args);
    } catch (error) {
      if (!error.stopped) throw error;
    } finally {
      running = false;
      if (again) {
        const next = again;
        again = null;
        run(...next);
      }
    }
  };
}
