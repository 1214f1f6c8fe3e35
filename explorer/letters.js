// Store patterns: the same formulas with 64 numbers, pictures of 8 x 8 pixels that are -1 or 1.
import { colour, digits, element, find, fromHex, latest, player, plot, risesOf, slider, still, toHex } from "./draw.js";

const SIDE = 8, PIXELS = SIDE * SIDE, FALL = 60, MOST = 24; // FALL: steps; MOST: stored patterns

/** How letters are remembered. In 64 dimensions a pattern's product with itself is 64. */
export const MEMORIES = [
  { name: "Modern Hopfield network", text: "-logsumexp(beta * xi @ g) / beta + g @ g / 2", beta: 0.3, about: "The update is one head of attention whose keys and values are the letters. Large beta: one letter. Small beta: a mixture of all." },
  { name: "Dense memory, power 4", text: "-64 * sum(relu(xi @ g / 64)**4) / 4 + sum(g**6) / 6", about: "Products with the letters to the power 4 (Krotov and Hopfield 2016): similar letters disturb each other less than with the power 2." },
  { name: "Hopfield 1982", text: "-sum((xi @ g)**2) / 128 + sum(g**4) / 4", about: "Products to the power 2. Letters that look alike mix: store two, then all, and compare what is recalled." },
];

const SHAPES = {
  A: "...##... ..#..#.. .#....#. .#....#. .######. .#....#. .#....#. .#....#.",
  C: "..####.. .#....#. .#...... .#...... .#...... .#...... .#....#. ..####..",
  E: ".######. .#...... .#...... .#####.. .#...... .#...... .#...... .######.",
  H: ".#....#. .#....#. .#....#. .######. .#....#. .#....#. .#....#. .#....#.",
  K: ".#...#.. .#..#... .#.#.... .##..... .##..... .#.#.... .#..#... .#...#..",
  T: ".######. ...##... ...##... ...##... ...##... ...##... ...##... ...##...",
  X: "#......# .#....#. ..#..#.. ...##... ...##... ..#..#.. .#....#. #......#",
};
const ALPHABET = Object.values(SHAPES).map((text) => Array.from(text.replaceAll(" ", ""), (pixel) => (pixel === "#" ? 1 : -1)));

export class Letters {
  constructor(ask) {
    this.ask = ask;
    this.stored = ALPHABET.map((letter) => [...letter]);
    this.cursor = 0;
    this.seed = 5;
    this.canvas = find("letter");
    this.build();
    this.restore({});
  }

  /** What an address says of this panel, and the panel as it says. */
  state() {
    const drawn = (letter) => toHex(letter.map((v) => v > 0)), stored = this.stored.map(drawn).join(".");
    return { f: this.formula.value, beta: digits(this.beta.read()), query: drawn(this.query), stored };
  }

  restore({ f = MEMORIES[0].text, beta, query, stored }) {
    const read = (text) => fromHex(text, PIXELS).map((bit) => (bit ? 1 : -1)), known = MEMORIES.find((one) => one.text === f);
    this.stored = stored ? stored.split(".").slice(0, MOST).map(read) : ALPHABET.map((letter) => [...letter]);
    this.write(known || { text: f, about: "" });
    if (Number.parseFloat(beta) > 0) this.beta.write(Number.parseFloat(beta));
    this.query = query ? read(query) : ALPHABET[0].map((v, i) => ((i * 37) % 64 < 14 ? -v : v)); // 14 pixels are wrong
    this.animate = true;
    this.run();
  }

  arrive() {
    if (!still()) this.stop.play(0);
  }

  build() {
    const choice = find("letter-formulas"), run = () => this.run();
    MEMORIES.forEach((one, i) => choice.append(element("option", { value: i }, one.name)));
    choice.addEventListener("change", () => this.choose(MEMORIES[choice.value]));
    this.formula = find("letter-formula");
    this.formula.addEventListener("input", run);
    this.beta = slider("beta", { min: 0.005, max: 2, value: 0.3, log: true, note: "sharpness", onchange: run });
    this.shown = slider("shown step", { min: 0, max: FALL, value: FALL, step: 1, onchange: () => { this.stop(); this.draw(); } });
    find("letter-sliders").append(this.shown.label, this.beta.label);
    this.stop = player(find("letter-play"), { last: () => FALL, at: () => this.shown.read(), show: (step) => { this.shown.write(Math.floor(step)); this.draw(); }, milliseconds: 2600 });
    find("letter-damage").addEventListener("click", () => this.damage(14));
    find("letter-blank").addEventListener("click", () => this.begin(new Array(PIXELS).fill(-1)));
    find("letter-half").addEventListener("click", () => this.begin(this.query.map((v, i) => (i < PIXELS / 2 ? v : -1))));
    find("letter-store").addEventListener("click", () => this.store());
    find("letter-all").addEventListener("click", () => {
      this.stored = ALPHABET.map((letter) => [...letter]);
      this.run();
    });
    this.run = latest(() => this.compute());
    this.pointer();
  }

  write(one) {
    this.formula.value = one.text;
    find("letter-formulas").value = MEMORIES.indexOf(one);
    if (one.beta) this.beta.write(one.beta);
    find("letter-about").textContent = one.about;
  }

  choose(one) {
    this.write(one);
    this.animate = true;
    this.run();
  }

  begin(query) {
    this.query = query;
    this.animate = true;
    this.run();
  }

  /** Turns `count` pixels round, others every time. */
  damage(count) {
    const order = [...Array(PIXELS).keys()], state = [...this.query];
    for (let i = 0; i < count; i++) {
      this.seed = (this.seed * 16807) % 2147483647;
      const k = i + (this.seed % (PIXELS - i));
      [order[i], order[k]] = [order[k], order[i]];
      state[order[i]] *= -1;
    }
    this.begin(state);
  }

  store() {
    if (this.stored.some((letter) => letter.every((v, i) => v === this.query[i]))) {
      find("letter-problem").textContent = "This pattern is stored already: click pixels of the start to draw another one.";
      return;
    }
    if (this.stored.length >= MOST) {
      find("letter-problem").textContent = `${MOST} patterns are stored: remove one first.`;
      return;
    }
    this.stored.push([...this.query]);
    this.run();
  }

  async compute() {
    const problem = find("letter-problem"), steps = FALL;
    this.beta.input.disabled = !/\bbeta\b/.test(this.formula.value);
    try {
      const how = { text: this.formula.value, dim: PIXELS, patterns: this.stored.flat(), beta: this.beta.read(), x: this.query, steps, alpha: 0, reach: 0.5, noise: 0, seed: 1 };
      this.path = { ...(await this.ask("descend", how)), steps };
      problem.textContent = "";
    } catch (error) {
      this.path = null;
      problem.textContent = error.message;
    }
    this.stop();
    this.shown.write(steps);
    const animate = this.animate && !still() && !find("letters").hidden;
    this.animate = false;
    if (animate && this.path) this.stop.play(0);
    else this.draw();
  }

  now() {
    const t = this.shown.read();
    return this.path ? this.path.x.subarray(PIXELS * t, PIXELS * (t + 1)) : null;
  }

  draw() {
    paint(this.canvas, this.query, document.activeElement === this.canvas ? this.cursor : -1);
    const now = this.now();
    paint(find("letter-end"), now || new Array(PIXELS).fill(0), -1);
    this.drawStored(now);
    if (!now) return;
    const energy = Array.from(this.path.energy), rises = risesOf(energy);
    plot(find("letter-plot"), [{ name: "energy", values: energy, colour: colour("accent") }], { step: this.shown.read(), legend: false, rises: true });
    this.tell(now, rises);
  }

  /** Which stored pattern a state is: the cosine with each. */
  nearest(now) {
    const size = Math.hypot(...now) || 1;
    const cosine = this.stored.map((letter) => letter.reduce((sum, v, i) => sum + v * now[i], 0) / (size * SIDE));
    const first = cosine.indexOf(Math.max(...cosine));
    return { cosine, first };
  }

  tell(now, rises) {
    const { cosine, first } = this.nearest(now), wrong = this.stored[first].filter((v, i) => v * now[i] <= 0).length;
    const start = this.stored[first].filter((v, i) => v !== this.query[i]).length;
    const line = find("letter-verdict");
    const found = !wrong && cosine[first] > 0.95;
    const end = found ? `Pattern ${first + 1} is recalled: all 64 pixels have its sign, and ${start} of the start were wrong.` : `The state is a mixture: the most similar pattern is ${first + 1} (cosine ${digits(cosine[first])}), and ${wrong} pixels differ in sign.`;
    line.textContent = rises.length ? `The energy rises in step ${rises[0]}.` : end;
    line.className = found && !rises.length ? "good" : "bad";
  }

  drawStored(now) {
    const box = find("letter-stored"), found = now ? this.nearest(now) : null;
    while (box.children.length > this.stored.length) box.lastChild.remove();
    while (box.children.length < this.stored.length) {
      const i = box.children.length;
      const tile = element("canvas", { width: 64, height: 64, "aria-hidden": "true" });
      const take = element("button", { class: "tile", onclick: () => this.begin([...this.stored[i]]) }, tile, element("span", {}));
      const remove = element("button", { class: "small", "aria-label": `remove pattern ${i + 1}`, onclick: () => this.forget(i) }, "Remove");
      box.append(element("div", {}, take, remove));
    }
    this.stored.forEach((letter, i) => {
      const [take] = box.children[i].children, most = found && found.first === i;
      paint(take.firstChild, letter, -1);
      take.lastChild.textContent = `${i + 1}: ${found ? digits(Number(found.cosine[i].toFixed(2))) : ""}`;
      take.classList.toggle("recalled", Boolean(most));
      take.setAttribute("aria-label", `pattern ${i + 1}: start there`);
    });
  }

  forget(i) {
    if (this.stored.length <= 1) {
      find("letter-problem").textContent = "The last pattern stays: xi needs a row.";
      return;
    }
    this.stored.splice(i, 1);
    this.run();
  }

  pointer() {
    let value = 0;
    const act = (event) => {
      const box = this.canvas.getBoundingClientRect(), of = (v, size) => Math.max(0, Math.min(SIDE - 1, Math.floor((v / size) * SIDE)));
      this.cursor = of(event.clientY - box.top, box.height) * SIDE + of(event.clientX - box.left, box.width);
      value ||= -this.query[this.cursor];
      if (this.query[this.cursor] === value) return;
      this.query[this.cursor] = value;
      this.run();
      this.draw();
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      value = 0;
      act(event);
    });
    this.canvas.addEventListener("pointermove", (event) => value && act(event));
    this.canvas.addEventListener("pointerup", () => (value = 0));
    this.canvas.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -SIDE, ArrowDown: SIDE }[event.key];
      if (by) this.cursor = (this.cursor + by + PIXELS) % PIXELS;
      else if (event.key === " " || event.key === "Enter") {
        this.query[this.cursor] *= -1;
        this.run();
      } else return;
      event.preventDefault();
      this.draw();
    });
    for (const name of ["focus", "blur"]) this.canvas.addEventListener(name, () => this.draw());
  }
}

/** A state as pixels: -1 light, 1 dark. */
function paint(canvas, state, cursor) {
  const c = canvas.getContext("2d"), size = canvas.width / SIDE, gap = size > 12 ? 1 : 0;
  c.fillStyle = "#9aa3b2";
  c.fillRect(0, 0, canvas.width, canvas.height);
  for (let i = 0; i < PIXELS; i++) {
    const grey = Math.round(138 - 118 * Math.max(-1, Math.min(1, state[i])));
    c.fillStyle = `rgb(${grey},${grey},${grey})`;
    c.fillRect((i % SIDE) * size, Math.floor(i / SIDE) * size, size - gap, size - gap);
  }
  if (cursor < 0) return;
  c.strokeStyle = "#ffb000";
  c.lineWidth = 4;
  c.strokeRect((cursor % SIDE) * size + 2, Math.floor(cursor / SIDE) * size + 2, size - 5, size - 5);
}
