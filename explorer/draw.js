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

/** Blue over white to red for -1 .. 1. */
export function signed(value) {
  const v = Math.max(-1, Math.min(1, value));
  const pale = Math.round(245 - 190 * Math.abs(v));
  return v < 0 ? `rgb(${pale},${Math.round(245 - 110 * -v)},245)` : `rgb(245,${pale},${pale})`;
}

/** Four digits; what is smaller than a billionth is 0. */
export const digits = (value) => (Number.isFinite(value) ? Number((Math.abs(value) < 1e-9 ? 0 : value).toPrecision(4)).toString() : String(value));

/** Lines by step as an SVG; series: [{name, values, colour, dashed}]. A marker stands at `step`. */
export function plot(series, { step = null, label = "", width = 320, height = 150 } = {}) {
  const all = series.flatMap((one) => Array.from(one.values)).filter(Number.isFinite);
  const low = Math.min(...all), high = Math.max(...all), span = high - low || 1;
  const most = Math.max(...series.map((one) => one.values.length)) - 1 || 1;
  const x = (i) => 46 + ((width - 56) * i) / most;
  const y = (v) => 10 + (height - 36) * (1 - (v - low) / span);
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, class: "plot", role: "img", "aria-label": label });
  svg.append(
    element("text", { x: 42, y: 16, "text-anchor": "end" }, digits(high)),
    element("text", { x: 42, y: height - 26, "text-anchor": "end" }, digits(low)),
    element("text", { x: 46, y: height - 8 }, "step 0"),
    element("text", { x: width - 10, y: height - 8, "text-anchor": "end" }, String(most)),
    element("line", { x1: 46, x2: width - 10, y1: height - 26, y2: height - 26, class: "axis" }),
  );
  for (const one of series) {
    const points = Array.from(one.values, (v, i) => (Number.isFinite(v) ? `${x(i)},${y(v)}` : "")).join(" ");
    const line = element("polyline", { points, fill: "none", stroke: one.colour, "stroke-width": one.thin ? 1 : 2, "stroke-opacity": one.thin ? 0.5 : 1, "stroke-dasharray": one.dashed ? "4 3" : null });
    line.append(element("title", {}, one.name));
    svg.append(line);
  }
  if (series.length > 1 && series.length < 6)
    series.forEach((one, i) => svg.append(element("text", { x: width - 14, y: 20 + 14 * i, "text-anchor": "end", fill: one.colour, class: "name" }, one.name)));
  if (step !== null) svg.append(element("line", { x1: x(step), x2: x(step), y1: 10, y2: height - 26, class: "marker" }));
  return svg;
}

/** A slider with its name and value; `scale` log: by powers of ten. */
export function slider(name, { min, max, value, step = 0.01, log = false, note = "", onchange }) {
  const show = element("output", {}, "");
  const input = element("input", {
    type: "range",
    min: log ? Math.log10(min) : min,
    max: log ? Math.log10(max) : max,
    step: log ? 0.01 : step,
    "aria-label": name,
    title: note,
  });
  const read = () => (log ? 10 ** Number(input.value) : Number(input.value));
  const write = (v) => {
    input.value = log ? Math.log10(v) : v;
    show.textContent = digits(read());
  };
  input.addEventListener("input", () => {
    show.textContent = digits(read());
    onchange(read());
  });
  write(value);
  const label = element("label", { class: "slider" }, element("span", {}, name), input, show);
  return { label, read, write };
}

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

/** Bytes from base64 text that is compressed by gzip. */
export async function unpack(id) {
  const packed = Uint8Array.from(atob(find(id).textContent.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}
