// Fill from itself: a hole goes down the energy of an associative memory whose patterns are the picture's own patches.
import { chosenFile, colour, digits, element, find, latest, player, plot, slider } from "./draw.js";

const CELLS = 64, HALF = 3, WIDE = 2 * HALF + 1, AREA = WIDE * WIDE, PATTERNS = 1200; // PATTERNS: stored at most
/** What is done one after the other: on a grid of cells of `scale` x `scale`, with this beta. */
const STAGES = [{ scale: 2, beta: 300, steps: 8 }, { scale: 2, beta: 3000, steps: 6 }, { scale: 1, beta: 3000, steps: 8 }];
const HOLE = [26, 24, 15, 15]; // left, top, width, height

export class Patches {
  /** `hills`: the bytes of a JPEG file. */
  constructor(ask, hills) {
    this.ask = ask;
    this.hills = hills;
    this.canvas = find("self");
    this.which = 0;
    this.own = null;
    this.missing = new Uint8Array(CELLS * CELLS);
    this.cursor = 32 * CELLS + 32;
    this.compute = latest(() => this.run());
    this.build();
    this.ready = this.restore({});
  }

  build() {
    this.beta = slider("beta", { min: 30, max: 30000, value: 3000, log: true, note: "sharpness", onchange: () => this.changed(true) });
    this.shown = slider("shown step", { min: 0, max: 1, value: 0, step: 1, onchange: () => { this.stop(); this.revealed = true; this.draw(); } });
    find("self-sliders").append(this.shown.label, this.beta.label);
    const show = (step) => {
      if (!this.fall) this.animate = true; // as soon as it is there
      this.revealed = true;
      this.shown.write(Math.floor(step));
      this.draw();
    };
    this.stop = player(find("self-play"), { last: () => (this.fall ? this.fall.frames.length - 1 : 0.01), at: () => this.shown.read(), show, milliseconds: 2600, label: "Fill the hole" });
    find("self-another").addEventListener("click", () => this.show(this.which + 1));
    find("self-clear").addEventListener("click", () => {
      this.missing.fill(0);
      this.changed(true);
    });
    find("self-lines").addEventListener("change", () => this.draw());
    chosenFile(find("self-upload"), (file) => this.read(file));
    find("patches").addEventListener("drop", (event) => event.dataTransfer.files[0] && this.read(event.dataTransfer.files[0]));
    this.pointer();
  }

  /** What an address says of this panel, and the panel as it says; a picture from a file is not in it. */
  state() {
    return { picture: String(this.which), hole: runs(this.missing), beta: digits(this.beta.read()), filled: this.revealed ? "1" : "" };
  }

  async restore({ picture, hole, beta, filled }) {
    this.stop();
    this.animate = false;
    this.beta.write(Math.max(30, Math.min(30000, Number.parseFloat(beta) || 3000)));
    if (hole === undefined) this.dig();
    else readRuns(this.missing, hole);
    this.revealed = filled === "1";
    await this.take(Number.parseInt(picture) || 0);
    this.fall = null;
    this.draw();
    if (this.seen) await this.compute();
  }

  /** Nothing is computed before somebody looks. */
  arrive() {
    this.seen = true;
    this.compute();
  }

  dig() {
    const [left, top, width, height] = HOLE;
    this.missing.fill(0);
    for (let y = top; y < top + height; y++) this.missing.fill(1, y * CELLS + left, y * CELLS + left + width);
  }

  async show(which) {
    this.own = null;
    await this.take(which);
    this.dig();
    this.changed(false);
  }

  /** The picture with this number, or the visitor's, as colours [cells, 3] of 0 to 1. */
  async take(which) {
    this.which = which % 3;
    const image = this.own || (this.which === 1 ? await createImageBitmap(new Blob([this.hills])) : drawn(this.which));
    const small = element("canvas", { width: CELLS, height: CELLS }), c = small.getContext("2d"), side = Math.min(image.width, image.height), left = (image.width - side) / 2, top = (image.height - side) / 2;
    c.imageSmoothingQuality = "high";
    c.drawImage(image, left, top, side, side, 0, 0, CELLS, CELLS);
    const { data } = c.getImageData(0, 0, CELLS, CELLS);
    this.picture = Float32Array.from({ length: 3 * CELLS * CELLS }, (_, i) => data[4 * Math.floor(i / 3) + (i % 3)] / 255);
  }

  async read(file) {
    find("self-problem").textContent = "";
    try {
      this.own = await createImageBitmap(file);
    } catch {
      find("self-problem").textContent = `${file.name}: the browser cannot read it as a picture; it takes PNG, JPEG, WebP and the like`;
      return;
    }
    await this.take(this.which);
    if (!this.missing.includes(1)) this.dig();
    this.animate = true;
    this.changed(true);
  }

  changed(revealed) {
    this.revealed = revealed;
    this.fall = null;
    this.draw();
    this.compute();
  }

  /** All stages: frames [cells, 3] by step, energies, and where each missing cell was taken from. */
  async run() {
    const missing = Uint8Array.from(this.missing), { picture } = this, begin = performance.now(), count = missing.reduce((a, b) => a + b, 0);
    find("self-problem").textContent = "";
    if (!count || count > 0.4 * CELLS * CELLS) {
      find("self-problem").textContent = count ? "More than 40 % is missing: too few patches are left to remember." : "There is no hole: paint one.";
      this.fall = null;
      return this.draw();
    }
    const fall = { frames: [filled(picture, missing, membrane(picture, missing, CELLS), CELLS)], energy: [], beta: this.beta.read() };
    let from = null; // what the stage before retrieved
    try {
      for (const { scale, beta, steps } of STAGES) {
        const grid = scale === 1 ? { n: CELLS, picture, missing } : halved(picture, missing), how = prepared(grid, scale);
        if (!how) throw new Error("no known patch of 7 x 7 cells is left: make the hole smaller");
        const start = from ? (from.n === grid.n ? from.x : finer(from, grid)) : missingOf(membrane(grid.picture, grid.missing, grid.n), grid);
        const found = await this.ask("descendHole", { ...how, x: start, beta: (beta * fall.beta) / 3000, steps });
        if (picture !== this.picture) return;
        const total = how.trust.reduce((a, b) => a + b, 0);
        for (let t = 0; t <= steps; t++) {
          fall.energy.push(found.energy[t] / total);
          fall.frames.push(filled(picture, missing, spread(found.x.subarray(t * start.length, (t + 1) * start.length), grid), CELLS));
        }
        from = { n: grid.n, x: found.x.slice(steps * start.length), offset: offsets(grid, how, found.best) };
      }
    } catch (error) {
      if (!error.stopped) find("self-problem").textContent = error.message;
      return;
    }
    fall.offset = from.offset;
    fall.frames.push(filled(picture, missing, copied(picture, from.offset), CELLS));
    fall.seconds = (performance.now() - begin) / 1000;
    this.fall = fall;
    this.stop();
    this.shown.input.max = fall.frames.length - 1;
    this.shown.write(this.revealed ? fall.frames.length - 1 : 0);
    if (this.animate) this.stop.play(0);
    else this.draw();
    this.animate = false;
  }

  // ---- what is seen ----

  draw() {
    if (!this.picture) return;
    const c = this.canvas.getContext("2d"), step = this.fall ? Math.min(this.shown.read(), this.fall.frames.length - 1) : 0, image = new ImageData(CELLS, CELLS);
    const from = this.fall && step ? this.fall.frames[step] : this.picture;
    for (let i = 0; i < CELLS * CELLS; i++) {
      const blank = this.missing[i] && !(this.fall && step), grey = (i + Math.floor(i / CELLS)) % 2 ? 105 : 140;
      for (let k = 0; k < 3; k++) image.data[4 * i + k] = blank ? grey : Math.round(255 * from[3 * i + k]);
      image.data[4 * i + 3] = 255;
    }
    const small = element("canvas", { width: CELLS, height: CELLS });
    small.getContext("2d").putImageData(image, 0, 0);
    c.imageSmoothingEnabled = false;
    c.drawImage(small, 0, 0, this.canvas.width, this.canvas.height);
    if (document.activeElement === this.canvas && this.canvas.matches(":focus-visible")) this.frame(c, this.cursor % CELLS, Math.floor(this.cursor / CELLS), "#ffb000");
    if (this.fall && find("self-lines").checked && step > STAGES[0].steps + STAGES[1].steps + 2) this.drawLines(c);
    this.tell(step);
  }

  frame(c, x, y, stroke) {
    const size = this.canvas.width / CELLS;
    c.strokeStyle = stroke;
    c.lineWidth = 2;
    c.strokeRect((x - HALF) * size, (y - HALF) * size, WIDE * size, WIDE * size);
  }

  /** From every fifth missing cell in both directions to where it was taken from. */
  drawLines(c) {
    const size = this.canvas.width / CELLS;
    c.lineWidth = 1.5;
    for (let i = 0; i < CELLS * CELLS; i++) {
      const y = Math.floor(i / CELLS), x = i % CELLS, offset = this.fall.offset[i];
      if (!this.missing[i] || offset === null || x % 5 || y % 5) continue;
      const [dy, dx] = offset, hue = (37 * (x + 3 * y)) % 360;
      c.strokeStyle = `hsla(${hue},95%,60%,0.95)`;
      c.beginPath();
      c.moveTo((x + 0.5) * size, (y + 0.5) * size);
      c.lineTo((x + dx + 0.5) * size, (y + dy + 0.5) * size);
      c.stroke();
      this.frame(c, x + dx, y + dy, `hsla(${hue},95%,60%,0.95)`);
    }
  }

  tell(step) {
    const line = find("self-verdict");
    line.textContent = this.fall ? "" : "Computing.";
    if (!this.fall) return;
    const { energy, seconds } = this.fall, last = energy.length, lines = [];
    let from = 0;
    STAGES.forEach(({ scale, steps }, k) => {
      lines.push({ name: scale > 1 ? `cells of 2 x 2, beta ${k ? "" : "a tenth"}` : "all cells", values: Array.from({ length: last + 2 }, (_, t) => (t > from && t <= from + steps + 1 ? energy[t - 1] : NaN)), colour: colour(["soft", "accent", "good"][k]) });
      from += steps + 1;
    });
    plot(find("self-plot"), lines, { step, legend: false });
    let rises = 0;
    for (let k = 0, t = 0; k < STAGES.length; t += STAGES[k++].steps + 1) for (let s = 1; s <= STAGES[k].steps; s++) if (energy[t + s] > energy[t + s - 1] + 1e-6) rises++;
    const at = step === 0 ? "The hole is empty." : step > last ? "Each cell is taken from one patch; lines lead to where." : `Step ${step} of ${last}.`;
    line.textContent = `${at} The energy ${rises ? `rises in ${rises} steps` : "falls in every step of each of three stages"}: coarse, sharper, fine. Computed in ${seconds.toFixed(2)} s.`;
    line.className = rises ? "bad" : "good";
  }

  // ---- painting ----

  pointer() {
    let painting = null;
    const act = (event) => {
      const box = this.canvas.getBoundingClientRect();
      this.brush(Math.floor(((event.clientX - box.left) / box.width) * CELLS), Math.floor(((event.clientY - box.top) / box.height) * CELLS), painting);
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      const box = this.canvas.getBoundingClientRect(), x = Math.floor(((event.clientX - box.left) / box.width) * CELLS), y = Math.floor(((event.clientY - box.top) / box.height) * CELLS);
      painting = this.missing[y * CELLS + x] ? 0 : 1;
      this.canvas.setPointerCapture(event.pointerId);
      act(event);
    });
    this.canvas.addEventListener("pointermove", (event) => painting !== null && act(event));
    this.canvas.addEventListener("pointerup", () => {
      if (painting !== null) this.changed(true);
      painting = null;
    });
    this.canvas.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -CELLS, ArrowDown: CELLS }[event.key];
      if (by) this.cursor = (this.cursor + by + CELLS * CELLS) % (CELLS * CELLS);
      else if (event.key === " " || event.key === "Enter") {
        this.brush(this.cursor % CELLS, Math.floor(this.cursor / CELLS), this.missing[this.cursor] ? 0 : 1);
        this.changed(true);
      } else return;
      event.preventDefault();
      this.draw();
    });
  }

  brush(x, y, value) {
    for (let v = Math.max(0, y - 2); v <= Math.min(CELLS - 1, y + 2); v++) for (let u = Math.max(0, x - 2); u <= Math.min(CELLS - 1, x + 2); u++) this.missing[v * CELLS + u] = value;
    this.fall = null;
    this.draw();
  }
}

// ---- a hole as the engine takes it ----

/** The picture and its hole in cells of 2 x 2: the mean of what is known. */
function halved(picture, missing) {
  const n = CELLS / 2, small = new Float32Array(3 * n * n), gone = new Uint8Array(n * n);
  for (let i = 0; i < n * n; i++) {
    const four = [0, 1, CELLS, CELLS + 1].map((by) => 2 * Math.floor(i / n) * CELLS + 2 * (i % n) + by), known = four.filter((k) => !missing[k]);
    gone[i] = known.length < 4 ? 1 : 0;
    for (let k = 0; k < 3; k++) small[3 * i + k] = (known.length ? known : four).reduce((sum, j) => sum + picture[3 * j + k], 0) / (known.length || 4);
  }
  return { n, picture: small, missing: gone };
}

/** Patches with something missing, stored patterns, confidence: the arrays of explorer_hole_descend; null without patterns. */
function prepared({ n, picture, missing }, scale) {
  const number = new Int32Array(n * n).fill(-1), targets = [], sources = [];
  let count = 0;
  for (let i = 0; i < n * n; i++) if (missing[i]) number[i] = count++;
  const around = [];
  for (let y = -HALF; y <= HALF; y++) for (let x = -HALF; x <= HALF; x++) around.push(y * n + x);
  for (let y = HALF; y < n - HALF; y++) for (let x = HALF; x < n - HALF; x++) (around.some((by) => missing[y * n + x + by]) ? targets : sources).push(y * n + x);
  if (!sources.length || !targets.length) return null;
  const every = Math.ceil(sources.length / PATTERNS), kept = sources.filter((_, k) => k % every === 0), depth = depths(missing, n);
  const stored = new Float32Array(3 * AREA * kept.length), half = new Float32Array(kept.length), pixel = new Int32Array(AREA * targets.length), trust = new Float32Array(targets.length), covered = new Float32Array(count);
  kept.forEach((q, k) => {
    around.forEach((by, j) => { for (let c = 0; c < 3; c++) stored[3 * (AREA * k + j) + c] = picture[3 * (q + by) + c]; });
    for (let j = 0; j < 3 * AREA; j++) half[k] += stored[3 * AREA * k + j] ** 2 / 2;
  });
  targets.forEach((p, k) => {
    trust[k] = 0.02 + 0.98 * Math.exp((-scale * depth[p]) / 6);
    around.forEach((by, j) => {
      pixel[AREA * k + j] = missing[p + by] ? n * n + number[p + by] : p + by;
      if (missing[p + by]) covered[number[p + by]] += trust[k];
    });
  });
  return { known: picture, pixel, stored, half, trust, share: covered.map((c) => AREA / (2 * c)), targets, kept };
}

/** How far missing cells are from a known one. */
function depths(missing, n) {
  const depth = new Int32Array(n * n);
  let front = [];
  for (let i = 0; i < n * n; i++) if (missing[i]) depth[i] = n;
  for (let i = 0; i < n * n; i++) if (!missing[i]) front.push(i);
  for (let d = 1; front.length; d++) {
    const next = [];
    for (const i of front)
      for (const [dy, dx] of [[-1, 0], [1, 0], [0, -1], [0, 1]]) {
        const y = Math.floor(i / n) + dy, x = (i % n) + dx;
        if (y < 0 || x < 0 || y >= n || x >= n || depth[y * n + x] <= d) continue;
        depth[y * n + x] = d;
        next.push(y * n + x);
      }
    front = next;
  }
  return depth;
}

/** The smoothest surface from the rim: each missing cell is the mean of its neighbours. */
function membrane(picture, missing, n) {
  const out = Float32Array.from(picture), cells = [];
  for (let i = 0; i < n * n; i++) if (missing[i]) cells.push(i), out.fill(0.5, 3 * i, 3 * i + 3);
  for (let pass = 0; pass < 150; pass++)
    for (const i of cells) {
      const y = Math.floor(i / n), x = i % n, near = [y ? i - n : -1, y < n - 1 ? i + n : -1, x ? i - 1 : -1, x < n - 1 ? i + 1 : -1].filter((k) => k >= 0);
      for (let k = 0; k < 3; k++) out[3 * i + k] += 1.7 * (near.reduce((sum, j) => sum + out[3 * j + k], 0) / near.length - out[3 * i + k]);
    }
  return out;
}

/** The missing cells of a picture, [missing, 3]. */
const missingOf = (picture, grid) => picture.filter((_, i) => grid.missing[Math.floor(i / 3)]);

/** The picture with its missing cells from another one. */
const filled = (picture, missing, from) => picture.map((v, i) => (missing[Math.floor(i / 3)] ? from[i] : v));

/** Missing cells of a grid as a picture of all cells. */
function spread(x, { n, missing }) {
  const number = new Int32Array(n * n), out = new Float32Array(3 * CELLS * CELLS), scale = CELLS / n;
  for (let i = 0, count = 0; i < n * n; i++) if (missing[i]) number[i] = count++;
  for (let i = 0; i < CELLS * CELLS; i++) {
    const at = Math.floor(Math.floor(i / CELLS) / scale) * n + Math.floor((i % CELLS) / scale);
    if (missing[at]) for (let k = 0; k < 3; k++) out[3 * i + k] = x[3 * number[at] + k];
  }
  return out;
}

/** Where each missing cell is taken from: the way [rows, columns] of the most confident patch that covers it; null elsewhere. */
function offsets({ n, missing }, { targets, kept, trust }, best) {
  const found = new Array(n * n).fill(null), sure = new Float32Array(n * n);
  targets.forEach((p, k) => {
    const q = kept[best[k]], way = [Math.floor(q / n) - Math.floor(p / n), (q % n) - (p % n)];
    for (let y = -HALF; y <= HALF; y++)
      for (let x = -HALF; x <= HALF; x++) {
        const i = p + y * n + x;
        if (!missing[i] || trust[k] <= sure[i]) continue;
        sure[i] = trust[k];
        found[i] = way;
      }
  });
  return found;
}

/** A picture with each missing cell from where the offsets say. */
function copied(picture, offset) {
  return picture.map((v, i) => {
    const way = offset[Math.floor(i / 3)];
    return way ? picture[i + 3 * (way[0] * CELLS + way[1])] : v;
  });
}

/** The start on the finer grid: cells from twice the way that the coarser one retrieved. */
function finer(from, grid) {
  const start = [];
  for (let i = 0; i < grid.n * grid.n; i++) {
    if (!grid.missing[i]) continue;
    const way = from.offset[Math.floor(Math.floor(i / grid.n) / 2) * from.n + Math.floor((i % grid.n) / 2)] || [0, 0], at = i + 2 * (way[0] * grid.n + way[1]);
    for (let k = 0; k < 3; k++) start.push(grid.picture[3 * at + k] ?? 0.5);
  }
  return Float32Array.from(start);
}

// ---- pictures, and holes in addresses ----

/** 0: a wall of bricks; 2: woven stripes. */
function drawn(which) {
  const canvas = element("canvas", { width: CELLS, height: CELLS }), c = canvas.getContext("2d");
  const random = (i) => Math.abs(Math.sin(i * 12.9898 + 4.1) * 43758.5453) % 1;
  for (let y = 0; y < CELLS; y++)
    for (let x = 0; x < CELLS; x++) {
      const row = Math.floor(y / 8), shifted = x + (row % 2) * 8, brick = row * 31 + Math.floor(shifted / 16), speck = 18 * random(x * 131 + y * 977);
      const warp = Math.sin((x + y) / 4.1), weft = Math.sin((x - y) / 4.1);
      if (which === 0) c.fillStyle = y % 8 === 0 || shifted % 16 === 0 ? `rgb(${188 + speck},${182 + speck},${172 + speck})` : `rgb(${142 + 44 * random(brick) + speck},${64 + 24 * random(brick + 99) + speck},${48 + speck})`;
      else c.fillStyle = `rgb(${120 + 90 * warp + speck},${110 + 70 * weft},${150 - 60 * warp * weft})`;
      c.fillRect(x, y, 1, 1);
    }
  return canvas;
}

/** Lengths of runs of known and missing cells, in base 36. */
function runs(missing) {
  const lengths = [];
  for (let i = 0, value = 0; i < missing.length; value ^= 1) {
    let k = i;
    while (k < missing.length && missing[k] === value) k++;
    lengths.push((k - i).toString(36));
    i = k;
  }
  return lengths.join(".");
}

function readRuns(missing, text) {
  let at = 0, value = 0;
  missing.fill(0);
  for (const length of text.split(".").map((one) => Number.parseInt(one, 36) || 0)) {
    missing.fill(value, at, at + length);
    at += length;
    value ^= 1;
  }
}
