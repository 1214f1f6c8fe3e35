// Learn from labels: labelled points are stored patterns, a query falls to them and takes their label. Nothing is trained.
import { colour, digits, element, find, latest, numbers, player, plot, slider, still, written } from "./draw.js";
import { dot } from "./landscape.js";

const PLACES = 2.5, FIELD = 72, MOVES = 60, MOST_LABELLED = 120; // half the plane; states along a side of the map; steps
const LABELS = [{ name: "blue", value: -1, rgb: [47, 111, 208] }, { name: "orange", value: 1, rgb: [224, 115, 26] }];

/** The energy of (place, label): a stored pattern is a point with its label, -1 or 1; a query begins with 0. */
const CONTEXT = "-logsumexp(-beta * sum((xi - g)**2, 1) / 2) / beta";

/** What is stored to begin with: x, y, label. `disc` spreads the i-th point evenly, so that all visitors see the same ones. */
const disc = (i, x, y, label) => { const r = 0.85 * Math.sqrt((0.755 * i + 0.4) % 1), a = 2 * Math.PI * ((0.57 * i) % 1); return [x + r * Math.cos(a), y + r * Math.sin(a), label]; };
const SETS = [
  { name: "Two groups and a stray", beta: 6, points: [...Array(20).keys()].flatMap((i) => (i % 2 ? disc(i, 0.95, 0.85, 1) : disc(i, -0.95, -0.75, -1))).concat([-1.1, -0.45, 1]) },
  { name: "Two moons", beta: 14, points: [...Array(12).keys()].flatMap((i) => { const a = (Math.PI * i) / 11; return [1.3 * Math.cos(a) - 0.6, 1.3 * Math.sin(a) - 0.3, -1, 0.6 - 1.3 * Math.cos(a), 0.3 - 1.3 * Math.sin(a), 1]; }) },
  { name: "A ring around a group", beta: 10, points: [...Array(14).keys()].flatMap((i) => [1.7 * Math.cos(0.449 * i), 1.7 * Math.sin(0.449 * i), 1]).concat([0, 0, -1, 0.4, 0.2, -1, -0.3, 0.3, -1, -0.2, -0.4, -1, 0.3, -0.3, -1]) },
  { name: "A chessboard", beta: 20, points: [...Array(16).keys()].flatMap((i) => [(i % 4) - 1.5, Math.floor(i / 4) - 1.5, (i + Math.floor(i / 4)) % 2 ? 1 : -1]) },
];

export class Labels {
  constructor(ask) {
    this.ask = ask;
    this.canvas = find("labelled");
    if (devicePixelRatio > 1.2) this.canvas.width = this.canvas.height = 1040;
    this.adds = "query";
    this.build();
    this.restore({});
    this.plain = this.state();
  }

  state() {
    return { points: written(this.stored), queries: written(this.queries), beta: digits(this.beta.read()) };
  }

  restore({ points, queries, beta }) {
    const read = numbers(points ?? ""), whole = read.length && read.length % 3 === 0;
    this.stored = whole ? read.slice(0, 3 * MOST_LABELLED).map((v, i) => (i % 3 < 2 ? v : Math.sign(v) || 1)) : [...SETS[0].points];
    const at = numbers(queries ?? "");
    this.queries = at.length ? at.slice(0, 2 * Math.floor(Math.min(at.length, 100) / 2)) : [0.1, -0.2];
    this.beta.write(Number.parseFloat(beta) > 0 ? Number.parseFloat(beta) : SETS[0].beta);
    find("label-sets").value = "0";
    this.animate = true;
    this.changed();
  }

  arrive() {
    if (!still()) this.stop.play(0);
  }

  build() {
    const sets = find("label-sets");
    SETS.forEach((one, i) => sets.append(element("option", { value: i }, one.name)));
    sets.addEventListener("change", () => {
      this.stored = [...SETS[sets.value].points];
      this.beta.write(SETS[sets.value].beta);
      this.animate = true;
      this.changed();
    });
    this.beta = slider("beta", { min: 0.3, max: 60, value: 6, log: true, note: "how near counts", onchange: () => this.changed() });
    this.shown = slider("shown step", { min: 0, max: MOVES, value: MOVES, step: 1, onchange: () => { this.stop(); this.draw(); } });
    find("label-sliders").append(this.shown.label, this.beta.label);
    this.stop = player(find("label-play"), { last: () => MOVES, at: () => this.shown.read(), show: (step) => { this.shown.write(Math.floor(step)); this.draw(); }, label: "Let it fall" });
    for (const kind of ["query", "blue", "orange", "nothing"]) find(`adds-${kind}`).addEventListener("change", () => (this.adds = kind));
    find("label-drop").addEventListener("click", () => {
      this.queries = Array.from({ length: 60 }, () => (2 * Math.random() - 1) * 0.95 * PLACES);
      this.animate = true;
      this.fall();
    });
    find("label-clear").addEventListener("click", () => {
      this.queries = this.queries.slice(0, 2);
      this.stored = [-1, 0, -1, 1, 0, 1];
      this.changed();
    });
    this.map = latest(() => this.computeMap());
    this.fall = latest(() => this.computeFall());
    this.pointer();
  }

  changed() {
    this.usual = Math.max(...this.stored.filter((v, i) => i % 3 === 0).map((v, i) => this.near(this.stored.slice(3 * i, 3 * i + 2), i).energy));
    this.map();
    this.fall();
  }

  energy(extra) {
    return { text: CONTEXT, dim: 3, together: false, patterns: this.stored, beta: this.beta.read(), ...extra };
  }

  /** What a state with an unknown label is near to: its energy without stored point `except`, and each one's share. */
  near([x, y, label = 0], except = -1) {
    const beta = this.beta.read(), half = [];
    for (let i = 0; i < this.stored.length; i += 3) half.push(i === 3 * except ? Infinity : ((this.stored[i] - x) ** 2 + (this.stored[i + 1] - y) ** 2 + (this.stored[i + 2] - label) ** 2) / 2);
    const least = Math.min(...half), terms = half.map((d) => Math.exp(-beta * (d - least))), sum = terms.reduce((a, b) => a + b, 0);
    return { energy: least - Math.log(sum) / beta, share: terms.map((t) => t / sum) };
  }

  /** The label that one step of size 1 gives at every place, and the energy there: a force is the mean of what is stored, weighted by nearness, minus the state. */
  async computeMap() {
    const x = new Float32Array(3 * FIELD * FIELD);
    for (let i = 0; i < FIELD * FIELD; i++) {
      x[3 * i] = (((i % FIELD) + 0.5) / FIELD) * 2 * PLACES - PLACES;
      x[3 * i + 1] = PLACES - ((Math.floor(i / FIELD) + 0.5) / FIELD) * 2 * PLACES;
    }
    const { energy, force } = await this.ask("energies", this.energy({ x, forces: true })), image = new ImageData(FIELD, FIELD);
    const dark = colour("scheme") === "dark", paper = dark ? [24, 29, 40] : [255, 255, 255], grey = dark ? [58, 62, 72] : [200, 203, 209];
    for (let i = 0; i < FIELD * FIELD; i++) {
      const label = force[3 * i + 2], { rgb } = LABELS[label > 0 ? 1 : 0], strength = 0.55 * Math.min(1, Math.abs(label));
      const unlike = energy[i] > this.usual ? 0.8 : 0;
      for (let k = 0; k < 3; k++) image.data[4 * i + k] = (paper[k] + strength * (rgb[k] - paper[k])) * (1 - unlike) + grey[k] * unlike;
      image.data[4 * i + 3] = 255;
    }
    this.ground = element("canvas", { width: FIELD, height: FIELD });
    this.ground.getContext("2d").putImageData(image, 0, 0);
    this.draw();
  }

  async computeFall() {
    const x = Float32Array.from({ length: (this.queries.length / 2) * 3 }, (_, i) => (i % 3 < 2 ? this.queries[2 * Math.floor(i / 3) + (i % 3)] : 0));
    this.path = { ...(await this.ask("descend", this.energy({ x, steps: MOVES, alpha: 0, reach: 0.06, noise: 0, seed: 1 }))), count: x.length };
    this.stop();
    this.shown.write(MOVES);
    const animate = this.animate && !still() && !find("labels").hidden;
    this.animate = false;
    if (animate) this.stop.play(0);
    else this.draw();
  }

  at(x, y) {
    return [((x + PLACES) / (2 * PLACES)) * 520, ((PLACES - y) / (2 * PLACES)) * 520];
  }

  draw() {
    const c = this.canvas.getContext("2d"), scale = this.canvas.width / 520, step = this.shown.read();
    c.setTransform(scale, 0, 0, scale, 0, 0);
    if (this.ground) c.drawImage(this.ground, 0, 0, 520, 520);
    if (this.path) this.drawPaths(c, step);
    for (let i = 0; i < this.stored.length; i += 3) labelled(c, ...this.at(this.stored[i], this.stored[i + 1]), this.stored[i + 2], 7);
    if (!this.path) return;
    const { x, count, energy } = this.path, queries = count / 3, now = x.subarray(step * count, (step + 1) * count);
    for (let i = 0; i < count; i += 3) labelled(c, ...this.at(now[i], now[i + 1]), now[i + 2], 10, true);
    const lines = Array.from({ length: queries }, (_, i) => ({ name: `query ${i + 1}`, values: Float64Array.from({ length: MOVES + 1 }, (_, t) => energy[t * queries + i]), colour: colour("accent"), thin: queries > 1 }));
    plot(find("label-plot"), lines, { step, legend: false });
    this.tell(now, queries);
  }

  /** Where queries came along, and of one query how much each stored point draws it. */
  drawPaths(c, step) {
    const { x, count } = this.path;
    c.lineCap = "round";
    if (count === 3) {
      const state = x.subarray(3 * step, 3 * step + 3), { share } = this.near(state);
      share.forEach((part, i) => {
        if (part < 0.01) return;
        c.beginPath();
        c.lineWidth = 1 + 8 * part;
        c.strokeStyle = `rgba(${LABELS[this.stored[3 * i + 2] > 0 ? 1 : 0].rgb},0.55)`;
        c.moveTo(...this.at(state[0], state[1]));
        c.lineTo(...this.at(this.stored[3 * i], this.stored[3 * i + 1]));
        c.stroke();
      });
    }
    c.lineWidth = 1.6;
    c.strokeStyle = colour("ink");
    for (let i = 0; i < count; i += 3) {
      c.beginPath();
      for (let t = 0; t <= step; t++) c.lineTo(...this.at(x[t * count + i], x[t * count + i + 1]));
      c.stroke();
      dot(c, ...this.at(x[i], x[i + 1]), 4, "#111", false);
    }
  }

  tell(now, queries) {
    const line = find("label-verdict"), named = (value) => (Math.abs(value) < 0.05 ? "undecided" : LABELS[value > 0 ? 1 : 0].name);
    const start = Array.from({ length: queries }, (_, i) => this.near(this.queries.slice(2 * i, 2 * i + 2))), unlike = start.filter(({ energy }) => energy > this.usual).length;
    line.className = unlike ? "bad" : "good";
    if (queries > 1) {
      const ends = Array.from({ length: queries }, (_, i) => named(now[3 * i + 2])), count = (name) => ends.filter((end) => end === name).length;
      line.textContent = `At this step ${count("blue")} queries are blue, ${count("orange")} orange, ${count("undecided")} undecided. ${unlike} began where nothing stored is near (grey).`;
      return;
    }
    const drawn = start[0].share, blue = drawn.reduce((sum, part, i) => sum + (this.stored[3 * i + 2] < 0 ? part : 0), 0), most = drawn.indexOf(Math.max(...drawn));
    const { share } = this.near(now), now_at = share.indexOf(Math.max(...share));
    const odd = unlike ? `unlike anything stored: energy ${digits(start[0].energy)}, where stored points have at most ${digits(this.usual)}` : `energy ${digits(start[0].energy)}, usual among stored points (at most ${digits(this.usual)})`;
    line.textContent = `Start: ${Math.round(100 * Math.max(blue, 1 - blue))} % ${blue > 0.5 ? "blue" : "orange"}, most by point ${most + 1}; ${odd}. Shown step: ${named(now[2])}, ${Math.round(100 * share[now_at])} % of the pull from point ${now_at + 1}.`;
  }

  // ---- dragging ----

  pointer() {
    const place = (event) => {
      const box = this.canvas.getBoundingClientRect();
      return [((event.clientX - box.left) / box.width) * 2 * PLACES - PLACES, PLACES - ((event.clientY - box.top) / box.height) * 2 * PLACES];
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      const at = place(event), hit = this.hit(...at);
      if (this.adds === "nothing") return this.remove(hit);
      this.held = hit || this.add(...at);
      if (!this.held) return;
      this.canvas.setPointerCapture(event.pointerId);
      this.move(...at);
    });
    this.canvas.addEventListener("pointermove", (event) => this.held && this.move(...place(event)));
    this.canvas.addEventListener("pointerup", () => (this.held = null));
    this.canvas.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[event.key];
      if (by) {
        this.queries = [this.queries[0] + by[0], this.queries[1] + by[1]];
        this.fall();
      } else if (event.key === "b" || event.key === "o") this.add(this.queries[0], this.queries[1], event.key === "b" ? "blue" : "orange");
      else return;
      event.preventDefault();
    });
  }

  /** What is at a place: {list, i}; a query before a stored point. */
  hit(x, y) {
    for (const [list, size] of [[this.queries, 2], [this.stored, 3]]) for (let i = 0; i < list.length; i += size) if (Math.hypot(list[i] - x, list[i + 1] - y) < 0.14) return { list, i };
    return null;
  }

  /** A stored point, or a query in the place of those that are there. */
  add(x, y, kind = this.adds) {
    if (kind === "query") return { list: (this.queries = [x, y]), i: 0 };
    if (this.stored.length >= 3 * MOST_LABELLED) return null;
    const i = this.stored.push(x, y, kind === "blue" ? -1 : 1) - 3;
    this.changed();
    return { list: this.stored, i };
  }

  remove(hit) {
    if (!hit || hit.list !== this.stored || this.stored.length <= 6) return;
    this.stored.splice(hit.i, 3);
    this.changed();
  }

  move(x, y) {
    const { list, i } = this.held, inside = (v) => Math.max(-PLACES, Math.min(PLACES, v));
    list[i] = inside(x);
    list[i + 1] = inside(y);
    if (list === this.stored) this.changed();
    else this.fall();
  }
}

/** A point in the colour of its label, from blue over grey (unknown) to orange. */
function labelled(c, x, y, label, size, query = false) {
  const { rgb } = LABELS[label > 0 ? 1 : 0], strength = Math.min(1, Math.abs(label)), fill = rgb.map((v) => Math.round(150 + (v - 150) * strength));
  dot(c, x, y, size, `rgb(${fill})`, false);
  if (!query) return;
  c.beginPath();
  c.arc(x, y, size + 1, 0, 7);
  c.strokeStyle = "#111";
  c.lineWidth = 2.5;
  c.stroke();
}
