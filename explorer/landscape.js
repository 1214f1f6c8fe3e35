// Write an energy: a formula, its landscape, and states that go down it.
import { colour, digits, element, find, latest, plot, slider } from "./draw.js";

const RANGE = 2.5; // the plane is [-RANGE, RANGE] in both directions
const GRID = 96;

/** What there is to begin with. `about` says what to try. */
export const FORMULAS = [
  { name: "Four wells", text: "sum((g**2 - 1)**2) / 4", about: "Each coordinate falls to -1 or 1. Drag a point over a ridge and let it go." },
  { name: "A bowl", text: "sum(g**2) / 2", about: "One minimum. Raise alpha above 2: each step overshoots, and the energy rises." },
  { name: "Mexican hat", text: "(norm(g) - 1.2)**2 * 2", about: "A ring of minima: where a point ends depends on where it began." },
  { name: "Modern Hopfield network", text: "-logsumexp(beta * xi @ g) / beta + g @ g / 2", beta: 8, about: "Stored patterns (stars) are minima while beta is large. Lower beta: basins merge into one." },
  { name: "Distances to patterns", text: "-logsumexp(-beta * sum((xi - g)**2, 1) / 2) / beta", beta: 6, about: "The same in distances: a mixture of Gaussians. Drag the stars." },
  { name: "Dense memory, power 3", text: "-sum(relu(xi @ g)**3) / 3 + (g @ g)**2 / 2", alpha: 0.03, about: "Krotov and Hopfield 2016: a higher power makes each pattern pull more sharply." },
  { name: "Hopfield 1982", text: "-sum((xi @ g)**2) / 2 + sum(g**4) / 2", alpha: 0.03, about: "Every pattern is stored together with its opposite." },
  { name: "Epanechnikov memory", text: "-log(0.02 + sum(relu(1 - beta * sum((xi - g)**2, 1) / 2)))", beta: 3, about: "Patterns reach only so far: between them the landscape is flat, and points stay." },
  { name: "Two Kuramoto phases", text: "-cos(3 * (g[0] - g[1])) - 0.3 * cos(2 * g[0])", about: "g are two phases; they lock to each other along the diagonals." },
  { name: "Six-hump camel", text: "(4 - 2.1*g[0]**2 + g[0]**4/3) * g[0]**2 + g[0]*g[1] + (4*g[1]**2 - 4) * g[1]**2", alpha: 0.005, about: "A test of optimisers with six minima. Noise lets points cross ridges." },
  { name: "Tokens that attend to each other", text: "-sum(logsumexp(others(beta * g @ g.T))) / beta - sum(relu(g @ xi.T)**2) / 2 + sum(sum(g**2, 1)**2) / 2", beta: 4, alpha: 0.03, together: true, about: "Energy attention and memories of all points together: tokens gather, and each falls with the others." },
  { name: "The paper's block", text: "-sum(logsumexp(others(beta * layernorm(g) @ layernorm(g).T))) / beta - sum(relu(layernorm(g) @ xi.T)**2) / 2", beta: 2, together: true, about: "Attention plus Hopfield network over layer-normalised tokens (equations 1 to 5). In two dimensions a layer norm leaves one of two directions." },
];

export class Landscape {
  constructor(ask) {
    this.ask = ask;
    this.patterns = [1.2, 0.9, -1.3, 0.6, 0.2, -1.3];
    this.points = [];
    this.path = null;
    this.basins = null;
    this.held = null;
    this.chosen = 0;
    this.seed = 1;
    this.canvas = find("plane");
    this.build();
    this.choose(FORMULAS[0]);
  }

  build() {
    const choice = find("formulas");
    FORMULAS.forEach((one, i) => choice.append(element("option", { value: i }, one.name)));
    choice.addEventListener("change", () => this.choose(FORMULAS[choice.value]));
    this.formula = find("formula");
    this.formula.addEventListener("input", () => this.changed());
    const change = () => this.changed();
    this.alpha = slider("alpha", { min: 0.001, max: 3, value: 0.1, log: true, note: "size of a step", onchange: () => this.fall() });
    this.beta = slider("beta", { min: 0.1, max: 50, value: 6, log: true, note: "inverse temperature", onchange: change });
    this.noise = slider("noise", { min: 0, max: 1, value: 0, note: "of each step (Langevin)", onchange: () => this.fall() });
    this.steps = slider("steps", { min: 1, max: 400, value: 120, step: 1, onchange: () => this.fall() });
    find("sliders").append(this.alpha.label, this.beta.label, this.noise.label, this.steps.label);
    find("drop").addEventListener("click", () => this.dropMany());
    find("clear").addEventListener("click", () => {
      this.points = [];
      this.fall();
    });
    find("basins").addEventListener("click", () => this.colourBasins());
    this.map = latest(() => this.computeMap());
    this.fall = latest(() => this.computeFall());
    this.pointer();
  }

  choose(one) {
    this.formula.value = one.text;
    this.together = Boolean(one.together);
    if (one.beta) this.beta.write(one.beta);
    this.alpha.write(one.alpha || 0.1);
    find("about").textContent = one.about;
    if (!this.points.length) this.points = [-1.9, 0.4, 0.3, 2.1, 1.9, -0.5, -0.4, -0.2];
    this.changed();
  }

  changed() {
    this.basins = null;
    this.map();
    this.fall();
  }

  problem(error) {
    const line = find("problem");
    line.replaceChildren();
    this.formula.setAttribute("aria-invalid", error ? "true" : "false");
    if (!error) return;
    const text = this.formula.value, at = error.place;
    if (at >= 0) line.append(element("code", {}, text.slice(0, at), element("mark", {}, text.slice(at, at + 1) || " "), text.slice(at + 1)), " ");
    line.append(error.message);
  }

  energy(extra) {
    return { text: this.formula.value, dim: 2, together: this.together, patterns: this.patterns, beta: this.beta.read(), ...extra };
  }

  async computeMap() {
    if (this.together) {
      this.level = null;
      this.draw();
      return;
    }
    const x = new Float32Array(2 * GRID * GRID);
    for (let i = 0; i < GRID * GRID; i++) {
      x[2 * i] = ((i % GRID) / (GRID - 1)) * 2 * RANGE - RANGE;
      x[2 * i + 1] = RANGE - (Math.floor(i / GRID) / (GRID - 1)) * 2 * RANGE;
    }
    try {
      this.level = (await this.ask("energies", this.energy({ x }))).energy;
    } catch {
      this.level = null; // the descent says why
    }
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
    const how = { x: this.points, steps, alpha: this.alpha.read(), noise: this.noise.read(), seed: this.seed };
    try {
      this.path = { ...(await this.ask("descend", this.energy(how))), steps };
      this.problem(null);
    } catch (error) {
      this.path = null;
      this.problem(error);
    }
    this.draw();
    this.show();
  }

  /** Where every point of a grid ends: places that are near each other are one basin. */
  async colourBasins() {
    if (this.together) return;
    const side = 48, x = new Float32Array(2 * side * side);
    for (let i = 0; i < side * side; i++) {
      x[2 * i] = (((i % side) + 0.5) / side) * 2 * RANGE - RANGE;
      x[2 * i + 1] = RANGE - ((Math.floor(i / side) + 0.5) / side) * 2 * RANGE;
    }
    const steps = 300;
    try {
      const path = await this.ask("descend", this.energy({ x, steps, alpha: this.alpha.read(), noise: 0, seed: 1 }));
      const end = path.x.subarray(2 * side * side * steps), centres = [], which = [];
      for (let i = 0; i < side * side; i++) {
        let k = centres.findIndex(([a, b]) => Math.hypot(a - end[2 * i], b - end[2 * i + 1]) < 0.15);
        if (k < 0) k = centres.push([end[2 * i], end[2 * i + 1]]) - 1;
        which.push(k);
      }
      this.basins = { side, which, count: centres.length };
      find("count").textContent = centres.length > 40 ? "more than 40 end points: no separate basins" : `${centres.length} basin${centres.length === 1 ? "" : "s"}`;
    } catch (error) {
      this.problem(error);
    }
    this.draw();
  }

  dropMany() {
    this.seed++;
    this.points = Array.from({ length: 80 }, () => (Math.random() * 2 - 1) * RANGE * 0.95);
    this.fall();
  }

  // ---- the canvas ----

  at(x, y) {
    const n = this.canvas.width;
    return [((x + RANGE) / (2 * RANGE)) * n, ((RANGE - y) / (2 * RANGE)) * n];
  }

  draw() {
    const c = this.canvas.getContext("2d"), n = this.canvas.width;
    c.fillStyle = colour("paper");
    c.fillRect(0, 0, n, n);
    if (this.level) this.drawLevels(c, n);
    if (this.basins) this.drawBasins(c, n);
    if (this.path) this.drawPaths(c);
    for (let i = 0; i < this.patterns.length; i += 2) star(c, ...this.at(this.patterns[i], this.patterns[i + 1]), colour("accent"));
    for (let i = 0; i < this.points.length; i += 2) {
      const [x, y] = this.at(this.points[i], this.points[i + 1]);
      dot(c, x, y, 5, colour("ink"), i / 2 === this.chosen && document.activeElement === this.canvas);
    }
  }

  drawLevels(c, n) {
    const finite = Array.from(this.level).filter(Number.isFinite).sort((a, b) => a - b);
    const low = finite[0], high = finite[Math.floor(finite.length * 0.9)];
    const image = c.createImageData(n, n), dark = colour("scheme") === "dark", band = new Int16Array(n * n);
    for (let i = 0; i < n * n; i++) {
      const v = this.sample(((i % n) / (n - 1)) * (GRID - 1), (Math.floor(i / n) / (n - 1)) * (GRID - 1));
      const t = Math.max(0, Math.min(1, (v - low) / (high - low || 1)));
      band[i] = Math.floor(14 * t);
      const line = band[i] !== band[i - 1] || band[i] !== band[i - n] ? 0.8 : 1; // a contour between two bands
      image.data.set([...shade(t, dark).map((k) => k * (i % n && i >= n ? line : 1)), 255], 4 * i);
    }
    c.putImageData(image, 0, 0);
  }

  /** Between grid points. */
  sample(x, y) {
    const i = Math.min(GRID - 2, Math.floor(x)), j = Math.min(GRID - 2, Math.floor(y)), u = x - i, v = y - j;
    const l = this.level, k = j * GRID + i;
    return (l[k] * (1 - u) + l[k + 1] * u) * (1 - v) + (l[k + GRID] * (1 - u) + l[k + GRID + 1] * u) * v;
  }

  drawBasins(c, n) {
    const { side, which } = this.basins;
    for (let i = 0; i < side * side; i++) {
      c.fillStyle = `hsla(${(which[i] * 137) % 360},70%,50%,0.3)`;
      c.fillRect(((i % side) * n) / side, (Math.floor(i / side) * n) / side, n / side + 1, n / side + 1);
    }
  }

  drawPaths(c) {
    const { x, steps } = this.path, count = this.points.length;
    c.strokeStyle = colour("ink");
    c.globalAlpha = 0.55;
    for (let i = 0; i < count; i += 2) {
      c.beginPath();
      for (let t = 0; t <= steps; t++) c.lineTo(...this.at(x[t * count + i], x[t * count + i + 1]));
      c.stroke();
    }
    c.globalAlpha = 1;
    for (let i = 0; i < count; i += 2) {
      const end = this.at(x[steps * count + i], x[steps * count + i + 1]);
      dot(c, ...end, 4, colour("good"), false);
    }
  }

  show() {
    const box = find("fall");
    box.replaceChildren();
    if (!this.path) return;
    const { energy, samples, steps } = this.path;
    const series = [];
    for (let i = 0; i < Math.min(samples, 40); i++) {
      const values = Array.from({ length: steps + 1 }, (_, t) => energy[t * samples + i]);
      series.push({ name: samples === 1 ? "energy" : `point ${i + 1}`, values, colour: colour("accent"), thin: samples > 1 });
    }
    let rises = 0;
    for (let i = 0; i < samples; i++) {
      const of = (t) => energy[t * samples + i];
      const rounding = 1e-6 * (Math.abs(of(0)) + Math.abs(of(steps))); // of single precision
      for (let t = 0; t < steps; t++) rises += of(t + 1) > of(t) + rounding;
    }
    box.append(plot(series, { label: "energy by step" }));
    const last = energy.subarray(steps * samples), mean = last.reduce((a, b) => a + b, 0) / samples;
    const noisy = this.noise.read() > 0;
    const lost = !Number.isFinite(mean);
    find("verdict").textContent = lost ? "The energy is no longer a number: alpha is too large." : `Energy at the end ${digits(mean)}${samples > 1 ? " (mean)" : ""}. ` + (rises === 0 ? "It never rose." : `It rose ${rises} times${noisy ? ", as noise makes it" : ": alpha is too large for this landscape"}.`);
    find("verdict").className = lost || (rises && !noisy) ? "bad" : "good";
  }

  // ---- dragging, and the keyboard ----

  pointer() {
    const place = (event) => {
      const box = this.canvas.getBoundingClientRect();
      return [((event.clientX - box.left) / box.width) * 2 * RANGE - RANGE, RANGE - ((event.clientY - box.top) / box.height) * 2 * RANGE];
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      const [x, y] = place(event);
      this.held = this.near(x, y);
      if (!this.held) {
        this.points.push(x, y);
        this.held = { list: this.points, i: this.points.length - 2 };
      }
      if (this.held.list === this.points) this.chosen = this.held.i / 2;
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
      for (let i = 0; i < list.length; i += 2) if (Math.hypot(list[i] - x, list[i + 1] - y) < 0.14) return { list, i };
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
    if (by && this.points.length) {
      const i = 2 * this.chosen;
      this.held = { list: this.points, i };
      this.move(this.points[i] + by[0], this.points[i + 1] + by[1]);
      this.held = null;
    } else if (event.key === "n") this.chosen = (this.chosen + 1) % (this.points.length / 2 || 1);
    else if (event.key === "a") this.chosen = this.points.push(0, 0) / 2 - 1;
    else return;
    event.preventDefault();
    this.fall();
  }
}

function dot(c, x, y, r, fill, ring) {
  c.beginPath();
  c.arc(x, y, r, 0, 7);
  c.fillStyle = fill;
  c.fill();
  c.strokeStyle = ring ? colour("accent") : colour("paper");
  c.lineWidth = ring ? 4 : 1.5;
  c.stroke();
  c.lineWidth = 1;
}

function star(c, x, y, fill) {
  c.beginPath();
  for (let i = 0; i < 10; i++) {
    const r = i % 2 ? 4 : 10, a = (i * Math.PI) / 5 - Math.PI / 2;
    c.lineTo(x + r * Math.cos(a), y + r * Math.sin(a));
  }
  c.closePath();
  c.fillStyle = fill;
  c.fill();
  c.strokeStyle = colour("paper");
  c.stroke();
}

/** Deep to high: dark blue, green, pale yellow; the other way round on dark pages is too bright. */
function shade(t, dark) {
  const stops = dark ? [[16, 24, 60], [28, 80, 110], [60, 120, 100], [120, 130, 90]] : [[40, 60, 130], [70, 140, 170], [170, 210, 160], [250, 245, 215]];
  const at = t * 3, i = Math.min(2, Math.floor(at)), u = at - i;
  return stops[i].map((v, k) => v * (1 - u) + stops[i + 1][k] * u);
}
