// Write an energy: a formula, its landscape, and states that go down it.
import { colour, digits, element, find, latest, numbers, player, plot, risesOf, slider, still, thinned, written } from "./draw.js";

const RANGE = 2.5; // the plane is [-range, range] in both directions; at first this one
const GRID = 96, PLANE = 520; // states along a side; the canvas, in units of which a screen may have several pixels
const GREY = [128, 128, 128]; // where the energy is no number

/** What there is to begin with. `about` says what to try. */
export const FORMULAS = [
  { name: "Four wells", text: "sum((g**2 - 1)**2) / 4", about: "Each coordinate goes to -1 or 1: four minima. Drag a point (black) over a ridge and see its end (green) move." },
  { name: "A bowl", text: "sum(g**2) / 2", about: "One minimum. Tick \"own alpha\" and raise it above 2: each step overshoots, and the energy rises." },
  { name: "Mexican hat", text: "(norm(g) - 1.2)**2 * 2", about: "A ring of minima: where a point ends depends on where it began." },
  { name: "Modern Hopfield network", text: "-logsumexp(beta * xi @ g) / beta + g @ g / 2", beta: 8, about: "Stored patterns (stars) are minima while beta is large. To merge basins, switch on \"colour basins\" and lower beta, or drag two stars together." },
  { name: "Distances to patterns", text: "-logsumexp(-beta * sum((xi - g)**2, 1) / 2) / beta", beta: 6, about: "The same in distances: a mixture of Gaussians. Drag the stars." },
  { name: "Dense memory, power 3", text: "-sum(relu(xi @ g)**3) / 3 + (g @ g)**2 / 2", about: "Krotov and Hopfield 2016: a higher power makes each pattern pull more sharply." },
  { name: "Hopfield 1982", text: "-sum((xi @ g)**2) / 2 + sum(g**4) / 2", about: "Every pattern is stored together with its opposite." },
  { name: "Epanechnikov memory", text: "-log(0.02 + sum(relu(1 - beta * sum((xi - g)**2, 1) / 2)))", beta: 3, about: "Patterns reach only so far: between them the landscape is flat, and points stay." },
  { name: "Two Kuramoto phases", text: "-cos(3 * (g[0] - g[1])) - 0.3 * cos(2 * g[0])", about: "g are two phases; they lock to each other along the diagonals." },
  { name: "Six-hump camel", text: "(4 - 2.1*g[0]**2 + g[0]**4/3) * g[0]**2 + g[0]*g[1] + (4*g[1]**2 - 4) * g[1]**2", about: "A test of optimisers with six minima. Noise lets points cross ridges." },
  { name: "Tokens that attend to each other", text: "-sum(logsumexp(others(beta * g @ g.T))) / beta - sum(relu(g @ xi.T)**2) / 2 + sum(sum(g**2, 1)**2) / 2", beta: 4, together: true, about: "Energy attention and memories of all points together: tokens gather, and each falls with the others." },
  { name: "The paper's block", text: "-sum(logsumexp(others(beta * layernorm(g) @ layernorm(g).T))) / beta - sum(relu(layernorm(g) @ xi.T)**2) / 2", beta: 2, together: true, about: "Attention plus Hopfield network over layer-normalised tokens (equations 1 to 5). In two dimensions a layer norm leaves one of two directions." },
];

/** What a formula may call or name, for advice on mistakes. */
const NAMES = "logsumexp softmax layernorm lncosh sum mean max min norm exp log sqrt abs sign tanh sin cos relu sigmoid softplus erf square step maximum minimum where dot others beta xi pi".split(" ");

/** What people write out of habit: a pattern of it, what to write here, and the formula with that. */
const HABITS = [
  [/\^/, "a power is written **", (text) => text.replace(/\^/g, "**")],
  [/[²³]/, "a power is written **", (text) => text.replace(/²/g, "**2").replace(/³/g, "**3")],
  [/[·×−π]/, "operators are + - * / **, and pi is a name", (text) => text.replace(/[·×]/g, "*").replace(/−/g, "-").replace(/π/g, "pi")],
  [/\b(np|numpy|jnp|torch|math)\s*\./, "functions stand by themselves, as in sum(..)", (text) => text.replace(/\b(np|numpy|jnp|torch|math)\s*\.\s*(linalg\s*\.\s*)?/g, "")],
  [/\bln\s*\(/, "the natural logarithm is log", (text) => text.replace(/\bln\s*\(/g, "log(")],
  [/\.(sum|mean|max|min|norm)\s*\(/, "a method is written as a function: sum(g)", (text) => text.replace(/\b(\w+(?:\[\d+\])?)\s*\.(sum|mean|max|min|norm)\s*\(\s*\)/g, "$2($1)").replace(/(\((?:[^()]|\([^()]*\))*\))\s*\.(sum|mean|max|min|norm)\s*\(\s*\)/g, "$2$1")],
  [/\b[xy]\b/, "the state is g; its two numbers are g[0] and g[1]", (text) => (/\by\b/.test(text) ? text.replace(/\bx\b/g, "g[0]").replace(/\by\b/g, "g[1]") : text.replace(/\bx\b/g, "g")), /no such name/],
  [/[<>]=|==/, "comparisons are a > b and a < b, inside where(a > b, yes, no)", (text) => text.replace(/([<>])=/g, "$1")],
];

/** The formula as this page writes it, and why: {text, why}; null where no habit is seen. */
export function advice(text, message) {
  const seen = HABITS.filter(([pattern, , , only]) => pattern.test(text) && (!only || only.test(message))), mended = seen.reduce((sofar, [, , mend]) => mend(sofar), text);
  return seen.length ? { why: seen.map(([, why]) => why).join("; "), text: mended === text ? null : mended } : null;
}

const POINTS = [-1.9, 0.4, 0.3, 2.1, 1.9, -0.5, -0.4, -0.2], STARS = [1.2, 0.9, -1.3, 0.6, 0.2, -1.3];

export class Landscape {
  constructor(ask, state = {}) {
    this.ask = ask;
    this.range = RANGE;
    this.patterns = [...STARS];
    this.points = [];
    this.path = null;
    this.basins = null;
    this.version = 0; // of the energy and alpha
    this.held = null;
    this.chosen = 0; // a place in `list`
    this.adds = "points"; // what a click adds: points, or patterns
    this.last = "points"; // what was touched last
    this.seed = 1;
    this.canvas = find("plane");
    if (devicePixelRatio > 1.2) this.canvas.width = this.canvas.height = 2 * PLANE;
    this.build();
    this.first = new Promise((resolve) => (this.answered = resolve)); // the first descent is shown
    this.restore({});
    this.plain = this.state();
    if (Object.keys(state).length) this.restore(state);
  }

  /** What an address says of this panel; `restore` shows it again, and what it does not name as it was at first. */
  state() {
    return { f: this.formula.value, beta: digits(this.beta.read()), alpha: find("own-alpha").checked ? digits(this.alpha.read()) : "", noise: digits(this.noise.read()), steps: String(this.steps.read()), range: String(this.range), points: written(this.points), stars: written(this.patterns), basins: find("basins").checked ? "1" : "" };
  }

  restore(state) {
    const text = state.f ?? FORMULAS[0].text, known = FORMULAS.find((one) => one.text === text), few = (list) => list.slice(0, 2 * Math.floor(Math.min(list.length, 400) / 2));
    const number = (name, otherwise) => (Number.isFinite(Number.parseFloat(state[name])) ? Number.parseFloat(state[name]) : otherwise);
    this.sweeping = null;
    this.points = state.points === undefined ? [...POINTS] : few(numbers(state.points));
    this.patterns = few(numbers(state.stars ?? "")).length ? few(numbers(state.stars)) : [...STARS];
    this.chosen = 0;
    this.range = number("range", RANGE);
    find("range").value = String(this.range);
    this.noise.write(Math.max(0, Math.min(1, number("noise", 0))));
    this.steps.write(Math.round(Math.max(1, Math.min(20000, number("steps", 120)))));
    find("own-alpha").checked = number("alpha", 0) > 0;
    if (number("alpha", 0) > 0) this.alpha.write(number("alpha"));
    find("basins").checked = state.basins === "1";
    this.beta.write(Math.max(0.1, Math.min(50, number("beta", known?.beta ?? 6))));
    this.write(text, known);
    this.animate = true;
    this.changed();
  }

  /** A formula, and what the page says of it. */
  write(text, known) {
    this.formula.value = text;
    find("formulas").value = known ? FORMULAS.indexOf(known) : "own";
    find("about").textContent = known ? known.about : "The landscape follows as you type. What a formula may contain is listed below.";
    this.together = /\bothers\s*\(|\bg\s*\.T\b/.test(text); // what only tokens together can mean
  }

  build() {
    const choice = find("formulas");
    FORMULAS.forEach((one, i) => choice.append(element("option", { value: i }, one.name)));
    choice.append(element("option", { value: "own", hidden: true }, "Your own formula"));
    choice.addEventListener("change", () => FORMULAS[choice.value] && this.choose(FORMULAS[choice.value]));
    this.formula = find("formula");
    this.formula.addEventListener("input", () => {
      this.sweeping = null;
      this.write(this.formula.value);
      this.changed();
    });
    find("own-alpha").addEventListener("change", () => this.changed(false));
    find("range").addEventListener("change", () => {
      this.range = Number(find("range").value);
      this.changed();
    });
    this.alpha = slider("alpha", { min: 0.001, max: 3, value: 0.1, log: true, note: "size of a step", onchange: () => { find("own-alpha").checked = true; this.changed(false); } });
    this.beta = slider("beta", { min: 0.1, max: 50, value: 6, log: true, note: "sharpness", onchange: () => { this.sweeping = null; this.changed(); } });
    this.noise = slider("noise", { min: 0, max: 1, value: 0, note: "added per step", onchange: () => this.fall() });
    this.steps = slider("steps", { min: 1, max: 20000, value: 120, step: 1, log: true, bend: 1.6, note: "in all", onchange: () => this.fall() });
    this.shown = slider("shown step", { min: 0, max: 120, value: 120, step: 1, onchange: (step) => { this.stop(); this.showStep(step); } });
    find("sliders").append(this.shown.label, this.beta.label, this.steps.label, this.noise.label, this.alpha.label);
    this.stop = player(find("play"), { last: () => (this.path ? this.path.steps : 1), at: () => this.shown.read(), show: (step) => this.showStep(step), milliseconds: 3200 });
    find("drop").addEventListener("click", () => this.dropMany());
    find("clear").addEventListener("click", () => {
      this.points = [];
      this.chosen = 0;
      this.fall();
    });
    find("basins").addEventListener("change", () => this.changed(false));
    for (const kind of ["points", "patterns"]) find(`add-${kind}`).addEventListener("change", () => (this.adds = kind));
    find("remove").addEventListener("click", () => this.removeChosen());
    this.colours = latest(() => this.colourBasins());
    this.map = latest(() => this.computeMap());
    this.fall = latest(() => this.computeFall());
    this.pointer();
  }

  choose(one, alpha = 0) {
    this.sweeping = null;
    this.write(one.text, one);
    if (one.beta) this.beta.write(one.beta);
    find("own-alpha").checked = alpha > 0;
    if (alpha) this.alpha.write(alpha);
    if (!this.points.length) this.points = [...POINTS];
    this.animate = true;
    this.changed();
  }

  /** A step, whole or between two: points are drawn between, the curve at the last whole one. */
  showStep(step) {
    this.between = step - Math.floor(step);
    this.shown.write(Math.floor(step));
    this.draw();
    this.showPlot();
  }

  /** The step that is chosen anew each time may be this long; 0 where alpha is the visitor's. */
  pace() {
    const own = find("own-alpha").checked;
    return { alpha: own ? this.alpha.read() : 0, reach: 0.02 * this.range, noise: (own ? 1 : 0.3) * this.noise.read() };
  }

  /** The energy is another one, or only its descent. */
  changed(energy = true) {
    this.basins = null;
    this.version++;
    find("count").textContent = "";
    const uses = (name) => new RegExp(`\\b${name}\\b`).test(this.formula.value);
    this.beta.input.disabled = !uses("beta");
    this.alpha.label.hidden = !find("own-alpha").checked;
    find("alpha-note").textContent = find("own-alpha").checked ? "one number for all steps" : "alpha is chosen by the page";
    this.stored = uses("xi");
    find("basins").disabled = this.together;
    find("unused").textContent = [this.stored ? "" : "This formula has no xi: stars have no effect.", uses("beta") ? "" : "It has no beta.", this.together ? "Points are tokens of one state: there is no landscape of one point to show." : ""].join(" ");
    if (energy) this.map();
    this.fall();
    if (find("basins").checked && !this.together) this.colours();
  }

  /** Moves beta step by step, with coloured basins, until something else is chosen. */
  async sweep(from, to, steps = 7) {
    const mine = (this.sweeping = {});
    find("basins").checked = true;
    for (let k = 0; k <= steps && mine === this.sweeping; k++) {
      this.beta.write(from * (to / from) ** (k / steps));
      this.changed();
      for (let wait = 0; wait < 40 && (wait < 6 || this.basins?.side !== 48) && mine === this.sweeping; wait++) await new Promise((resolve) => setTimeout(resolve, 60));
    }
  }

  problem(error) {
    const line = find("problem");
    line.replaceChildren();
    this.formula.setAttribute("aria-invalid", error ? "true" : "false");
    if (!error) return;
    const text = this.formula.value, at = error.place;
    const [word] = /^\w+|^.?/s.exec(text.slice(Math.max(at, 0)));
    if (at >= 0) line.append(element("code", {}, text.slice(0, at), element("mark", {}, word || " "), text.slice(at + word.length)), " ");
    const like = /no such/.test(error.message) && NAMES.find((name) => name !== word && (word.startsWith(name) || name.startsWith(word) || [...name].sort().join("") === [...word].sort().join("")));
    const better = advice(text, error.message);
    line.append(better ? `${better.why}. ` : error.message, !better && like ? `; did you mean ${like}?` : "");
    if (better?.text) line.append(element("button", { class: "small", onclick: () => { this.write(better.text); this.animate = true; this.changed(); } }, `Write ${better.text.length > 60 ? "it so" : better.text}`));
  }

  energy(extra) {
    return { text: this.formula.value, dim: 2, together: this.together, patterns: this.patterns, beta: this.beta.read(), ...extra };
  }

  async computeMap() {
    if (this.together) {
      this.level = this.relief = null;
      this.draw();
      return;
    }
    const x = new Float32Array(2 * GRID * GRID);
    for (let i = 0; i < GRID * GRID; i++) {
      x[2 * i] = ((i % GRID) / (GRID - 1)) * 2 * this.range - this.range;
      x[2 * i + 1] = this.range - (Math.floor(i / GRID) / (GRID - 1)) * 2 * this.range;
    }
    try {
      this.level = (await this.ask("energies", this.energy({ x }))).energy;
    } catch (error) {
      if (!error.stopped) this.level = null; // the descent says why
    }
    this.relief = null;
    this.draw();
  }

  async computeFall() {
    if (!this.points.length) {
      this.path = null;
      this.draw();
      this.show();
      return;
    }
    const steps = this.steps.read();
    const how = { x: [...this.points], steps, ...this.pace(), seed: this.seed };
    try {
      this.path = { ...(await this.ask("descend", this.energy(how))), steps, count: how.x.length, range: this.range };
      this.hold();
      this.readEnergies();
      this.problem(null);
      this.stop();
      this.between = 0;
      this.shown.input.max = steps;
      this.shown.write(steps);
      const animate = this.animate && !still() && !find("energy").hidden;
      this.animate = false;
      if (animate) this.stop.play(0);
      this.tellAlpha(how);
    } catch (error) {
      if (!error.stopped) this.path = null;
      this.problem(error);
    }
    this.draw();
    this.show();
    this.answered();
  }

  /** A point that leaves the plane stays where it did, so that the others' energies are seen. */
  hold() {
    const { x, energy, count, samples, steps } = this.path, far = 1.25 * this.range;
    this.path.left = 0;
    for (let i = 0; i < count && !this.together; i += 2)
      for (let t = 1; t <= steps; t++) {
        if (Math.abs(x[(t - 1) * count + i]) <= far && Math.abs(x[(t - 1) * count + i + 1]) <= far) continue;
        for (; t <= steps; t++) {
          x[t * count + i] = x[(t - 1) * count + i];
          x[t * count + i + 1] = x[(t - 1) * count + i + 1];
          energy[t * samples + i / 2] = energy[(t - 1) * samples + i / 2];
        }
        this.path.left++;
      }
  }

  /** Which sizes of steps the page chose: lengths of steps by lengths of forces, of at most 60 steps. */
  async tellAlpha(how) {
    if (how.alpha || how.noise) return;
    const { path } = this, { x, count, steps } = path, times = thinned(steps, 60), at = new Float32Array(times.length * count), sizes = [];
    times.forEach((t, k) => at.set(x.subarray(t * count, (t + 1) * count), k * count));
    try {
      if (this.together) return;
      const { force } = await this.ask("energies", this.energy({ x: at, forces: true }));
      if (path !== this.path) return;
      for (let k = 0; k < times.length; k++)
        for (let i = 0; i < count; i += 2) {
          const from = times[k] * count + i, size = Math.hypot(x[from + count] - x[from], x[from + count + 1] - x[from + 1]), slope = Math.hypot(force[k * count + i], force[k * count + i + 1]);
          if (size > 1e-5 && slope > 1e-5) sizes.push(size / slope);
        }
    } catch {
      return;
    }
    sizes.sort((a, b) => a - b);
    const place = (u) => Number(sizes[Math.floor(u * (sizes.length - 1))].toPrecision(2));
    if (sizes.length) find("alpha-note").textContent = `alpha is chosen by the page at each step, by backtracking: ${place(0.02)} to ${place(0.98)} here`;
  }

  /** Energies of each point by step, and where they rise. */
  readEnergies() {
    const { energy, samples, steps } = this.path;
    this.path.series = [];
    this.path.rising = [];
    for (let i = 0; i < samples; i++) {
      const values = Float64Array.from({ length: steps + 1 }, (_, t) => energy[t * samples + i]), rises = risesOf(values);
      if (rises.length) this.path.rising.push({ i, rises });
      this.path.series.push(values);
    }
  }

  /** All again, in the colours of the page. */
  redraw() {
    this.relief = null;
    this.draw();
    this.show();
  }

  /** Where every point of a grid ends: places that are near each other are one basin. A coarse grid first, then a
   * fine one in parts, so that other work comes between; what belongs to an earlier energy is dropped. */
  async colourBasins() {
    if (this.together) return;
    const version = this.version;
    find("count").textContent = "computing";
    try {
      for (const side of [20, 48]) {
        const ends = await this.endsOf(side, version);
        if (version !== this.version) return;
        this.basins = { side, ...grouped(ends, 0.06 * this.range) };
        const { count } = this.basins;
        find("count").textContent = count > 40 ? "more than 40 end points: no separate basins" : `${count} basin${count === 1 ? "" : "s"}`;
        this.draw();
      }
    } catch (error) {
      find("count").textContent = "";
      this.problem(error);
    }
  }

  /** The ends of descents from a grid of side x side starts. */
  async endsOf(side, version) {
    const pace = this.pace(), steps = pace.alpha ? 300 : 110, ends = new Float32Array(2 * side * side), part = 12 * side; // states of one call
    pace.reach *= 3; // only the ends are shown
    for (let first = 0; first < side * side && version === this.version; first += part) {
      const x = new Float32Array(2 * Math.min(part, side * side - first));
      for (let k = 0; k < x.length / 2; k++) {
        const i = first + k;
        x[2 * k] = (((i % side) + 0.5) / side) * 2 * this.range - this.range;
        x[2 * k + 1] = this.range - ((Math.floor(i / side) + 0.5) / side) * 2 * this.range;
      }
      const path = await this.ask("descend", this.energy({ x, steps, ...pace, noise: 0, seed: 1 }));
      ends.set(path.x.subarray(x.length * steps), 2 * first);
    }
    return ends;
  }

  dropMany() {
    this.seed++;
    this.points = Array.from({ length: 80 }, () => (Math.random() * 2 - 1) * this.range * 0.95);
    this.animate = true;
    this.fall();
  }

  // ---- the canvas ----

  at(x, y) {
    const n = PLANE;
    return [((x + this.range) / (2 * this.range)) * n, ((this.range - y) / (2 * this.range)) * n];
  }

  draw() {
    const c = this.canvas.getContext("2d"), n = PLANE, scale = this.canvas.width / n;
    c.setTransform(scale, 0, 0, scale, 0, 0);
    c.fillStyle = colour("paper");
    c.fillRect(0, 0, n, n);
    if (this.level) this.drawLevels(c, n);
    if (this.basins) this.drawBasins(c, n);
    if (this.path) this.drawPaths(c);
    const ring = (list, i) => list === this[this.last] && i / 2 === this.chosen;
    c.globalAlpha = this.stored ? 1 : 0.25;
    for (let i = 0; i < this.patterns.length; i += 2) star(c, ...this.at(this.patterns[i], this.patterns[i + 1]), ring(this.patterns, i));
    c.globalAlpha = 1;
    for (let i = 0; i < this.points.length; i += 2) dot(c, ...this.at(this.points[i], this.points[i + 1]), 6, "#111", ring(this.points, i));
    if (this.path && this.path.count === this.points.length) this.drawEnds(c);
    this.drawScale(c, n);
  }

  /** Numbers along the edges. */
  drawScale(c, n) {
    c.font = "13px system-ui, sans-serif";
    for (let k = -2; k <= 2; k++) {
      const v = k * Math.floor(this.range / 2), [x, y] = this.at(v, v);
      label(c, String(v), x - 4, n - 6);
      label(c, String(v), 5, y + 4);
    }
    label(c, "g[0]", n - 34, n - 6);
    label(c, "g[1]", 5, 16);
  }

  /** Colours and contours, which are made once for an energy. */
  drawLevels(c, n) {
    if (!this.relief) {
      this.relief = element("canvas", { width: n, height: n });
      this.relief.getContext("2d").putImageData(this.levels(n), 0, 0);
    }
    c.drawImage(this.relief, 0, 0);
  }

  /** The plane of n x n pixels: colours by energy, between the grid's points interpolated, and a darker line between two bands. */
  levels(n) {
    const finite = this.level.filter(Number.isFinite).sort(), low = finite[0], high = finite[Math.floor(finite.length * 0.92)]; // more colours for low energies, where minima are
    const image = new ImageData(n, n), pixels = new Uint32Array(image.data.buffer), dark = colour("scheme") === "dark";
    const packed = (rgb, factor) => rgb.reduce((sum, v, k) => sum | ((v * factor) << (8 * k)), 0xff << 24);
    const tables = [1, 0.8].map((factor) => Uint32Array.from({ length: 258 }, (_, k) => packed(k === 257 ? GREY : shade(k / 256, dark), factor)));
    const row = new Float32Array(GRID), above = new Int16Array(n), scale = (GRID - 1) / (n - 1), range = 1 / (high - low || 1);
    for (let y = 0; y < n; y++) {
      const j = Math.min(GRID - 2, Math.floor(y * scale)), v = y * scale - j;
      for (let k = 0; k < GRID; k++) row[k] = this.level[j * GRID + k] * (1 - v) + this.level[(j + 1) * GRID + k] * v;
      for (let x = 0, left = 0; x < n; x++) {
        const i = Math.min(GRID - 2, Math.floor(x * scale)), u = x * scale - i, t = 256 * Math.sqrt(Math.max(0, (row[i] * (1 - u) + row[i + 1] * u - low) * range));
        const shaded = t >= 256 ? 256 : t >= 0 ? Math.floor(t) : 257, band = Math.floor((14 * shaded) / 257);
        pixels[y * n + x] = tables[(x && band !== left) || (y && band !== above[x]) ? 1 : 0][shaded];
        left = above[x] = band;
      }
    }
    return image;
  }

  drawBasins(c, n) {
    const { side, which } = this.basins;
    for (let i = 0; i < side * side; i++) {
      c.fillStyle = `hsla(${(which[i] * 137) % 360},70%,50%,0.3)`;
      const x = i % side, y = Math.floor(i / side), at = (k) => Math.round((k * n) / side); // whole pixels: no seams
      c.fillRect(at(x), at(y), at(x + 1) - at(x), at(y + 1) - at(y));
    }
  }

  drawPaths(c) {
    const { x, count } = this.path, now = this.now(), times = thinned(Math.min(this.shown.read(), this.path.steps) + 1);
    for (const [width, stroke] of [[3.5, "rgba(255,255,255,0.55)"], [1.5, "#111"]]) {
      c.lineWidth = width;
      c.strokeStyle = stroke;
      for (let i = 0; i < count; i += 2) {
        c.beginPath();
        for (const t of times) c.lineTo(...this.at(x[t * count + i], x[t * count + i + 1]));
        c.lineTo(...this.at(now[i], now[i + 1]));
        c.stroke();
      }
    }
    c.lineWidth = 1;
  }

  /** Where points are at the shown step, or between it and the next. */
  now() {
    const { x, count, steps } = this.path, t = Math.min(this.shown.read(), steps), next = Math.min(t + 1, steps), u = this.between || 0;
    return Array.from({ length: count }, (_, i) => x[t * count + i] * (1 - u) + x[next * count + i] * u);
  }

  drawEnds(c) {
    const now = this.now();
    for (let i = 0; i < now.length; i += 2) dot(c, ...this.at(now[i], now[i + 1]), 6, "#27c277", false);
  }

  showPlot() {
    if (!this.path) return find("fall").replaceChildren();
    const { samples, series, rising } = this.path;
    const lines = series.slice(0, 40).map((values, i) => ({ name: this.together ? "energy of all points" : `point ${i + 1}`, values, colour: colour("accent"), thin: samples > 1 }));
    // The line whose rises are marked stands first.
    if (rising.length && rising[0].i < 40) lines.unshift(...lines.splice(rising[0].i, 1));
    plot(find("fall"), lines, { legend: false, rises: rising.length > 0, step: Math.min(this.shown.read(), this.path.steps) });
  }

  show() {
    this.showPlot();
    find("verdict").textContent = "";
    if (!this.path) return;
    const { energy, samples, steps, series, rising, left } = this.path;
    const last = energy.subarray(steps * samples), mean = last.reduce((a, b) => a + b, 0) / samples;
    const noisy = this.noise.read() > 0, lost = !Number.isFinite(mean), one = samples === 1;
    const times = rising.reduce((sum, { rises }) => sum + rises.length, 0);
    const large = find("own-alpha").checked ? "alpha is too large for this landscape: a step goes past the minimum, to a higher place on the other side. Lower alpha." : "the energy has no slope that can be followed here.";
    const blank = series.filter((values) => !Number.isFinite(values[0])).length;
    const said = blank ? `The energy is not a number at the start of ${one ? "this state" : `${blank} of ${samples} points`}: a logarithm or root of a negative number, a division by 0, or a number that is too large.`
      : lost ? `The energy is no longer a number: ${large}`
      : times === 0 ? `${one ? "Its energy" : "Energies"} never rose.`
      : `${one ? "It" : `${rising.length} of ${samples} points`} rose ${times} times (red dots)${noisy ? ": noise moves points uphill as well." : `: ${large}`}`;
    const away = left ? ` ${left === 1 ? "A point" : `${left} points`} left the plane: the energy goes on falling outside of it${this.range < 10 ? "; choose a wider one" : ""}.` : "";
    find("verdict").textContent = lost || blank ? said : `Energy at the end ${digits(mean)}${one ? "" : ` (mean of ${samples} points)`}. ${said}${away}`;
    find("verdict").className = lost || blank || (times && !noisy) ? "bad" : "good";
  }

  // ---- dragging, and the keyboard ----

  pointer() {
    const place = (event) => {
      const box = this.canvas.getBoundingClientRect();
      return [((event.clientX - box.left) / box.width) * 2 * this.range - this.range, this.range - ((event.clientY - box.top) / box.height) * 2 * this.range];
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      const [x, y] = place(event);
      this.held = this.near(x, y);
      if (!this.held) {
        const list = this[this.adds];
        this.held = { list, i: list.push(x, y) - 2 };
      }
      this.last = this.held.list === this.points ? "points" : "patterns";
      this.chosen = this.held.i / 2;
      this.canvas.setPointerCapture(event.pointerId);
      this.move(x, y);
    });
    this.canvas.addEventListener("pointermove", (event) => this.held && this.move(...place(event)));
    this.canvas.addEventListener("pointerup", () => (this.held = null));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    for (const name of ["focus", "blur"]) this.canvas.addEventListener(name, () => this.draw());
  }

  near(x, y) {
    for (const list of [this.points, this.patterns])
      for (let i = 0; i < list.length; i += 2) if (Math.hypot(list[i] - x, list[i + 1] - y) < 0.056 * this.range) return { list, i };
    return null;
  }

  move(x, y) {
    const { list, i } = this.held;
    list[i] = x;
    list[i + 1] = y;
    if (list === this.patterns) this.changed();
    else this.fall();
    this.draw();
  }

  key(event) {
    const by = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[event.key];
    const list = this[this.last], i = 2 * this.chosen;
    if (by && i < list.length) {
      this.held = { list, i };
      this.move(list[i] + by[0], list[i + 1] + by[1]);
      this.held = null;
    } else if (event.key === "n") this.next();
    else if (event.key === "a" || event.key === "s") {
      this.last = event.key === "a" ? "points" : "patterns";
      this.chosen = this[this.last].push(0, 0) / 2 - 1;
    } else if (event.key === "Delete" || event.key === "Backspace") this.removeChosen();
    else return;
    event.preventDefault();
    this.changed();
  }

  /** The next point or star. */
  next() {
    this.chosen++;
    if (2 * this.chosen < this[this.last].length) return;
    this.chosen = 0;
    const other = this.last === "points" ? "patterns" : "points";
    if (this[other].length) this.last = other;
  }

  removeChosen() {
    const list = this[this.last];
    if (list === this.patterns && list.length <= 2) {
      find("unused").textContent = "The last pattern stays: xi needs a row.";
      return;
    }
    list.splice(2 * this.chosen, 2);
    this.chosen = Math.max(0, Math.min(this.chosen, list.length / 2 - 1));
    this.path = null;
    this.changed();
  }
}

/** Which of the places that are apart each end is. */
function grouped(ends, near) {
  const centres = [], which = [];
  for (let i = 0; i < ends.length; i += 2) {
    let k = centres.findIndex(([a, b]) => Math.hypot(a - ends[i], b - ends[i + 1]) < near);
    if (k < 0) k = centres.push([ends[i], ends[i + 1]]) - 1;
    which.push(k);
  }
  return { which, count: centres.length };
}

function label(c, text, x, y) {
  c.lineWidth = 3;
  c.strokeStyle = "rgba(255,255,255,0.75)";
  c.strokeText(text, x, y);
  c.fillStyle = "#111";
  c.fillText(text, x, y);
  c.lineWidth = 1;
}

export function dot(c, x, y, r, fill, ring) {
  c.beginPath();
  c.arc(x, y, r, 0, 7);
  c.fillStyle = fill;
  c.fill();
  c.strokeStyle = ring ? "#ffb000" : "#fff";
  c.lineWidth = ring ? 4 : 1.5;
  c.stroke();
  c.lineWidth = 1;
}

function star(c, x, y, ring) {
  c.beginPath();
  for (let i = 0; i < 10; i++) {
    const r = i % 2 ? 5 : 12, a = (i * Math.PI) / 5 - Math.PI / 2;
    c.lineTo(x + r * Math.cos(a), y + r * Math.sin(a));
  }
  c.closePath();
  c.fillStyle = "#d4541e";
  c.fill();
  c.strokeStyle = ring ? "#ffb000" : "#fff";
  c.lineWidth = ring ? 4 : 1.5;
  c.stroke();
  c.lineWidth = 1;
}

/** Low to high: dark blue, green, pale yellow; dimmer on dark pages. style.css has the same for the legend. */
function shade(t, dark) {
  const stops = dark ? [[20, 20, 62], [34, 70, 122], [54, 122, 128], [116, 154, 116], [186, 182, 140]] : [[31, 28, 84], [40, 92, 148], [72, 164, 160], [176, 212, 150], [250, 243, 208]];
  const at = t * 4, i = Math.min(3, Math.floor(at)), u = at - i;
  return stops[i].map((v, k) => v * (1 - u) + stops[i + 1][k] * u);
}
