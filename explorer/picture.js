// Paint a hole: the model completes it step by step; what it attends to, and which memories it recalls.
import { colour, digits, element, find, latest, player, plot, risesOf, slider } from "./draw.js";

export class Picture {
  constructor(ask, config, samples) {
    this.ask = ask;
    this.config = config; // the model's settings: size, patch, channels, mean, deviation, ..
    this.samples = samples; // pictures [28 * 28] bytes
    this.side = config.size / config.patch;
    this.tokens = this.side ** 2;
    this.missing = new Uint8Array(this.tokens);
    this.step = config.steps;
    this.query = -1;
    this.head = -1;
    this.mode = "paint";
    this.canvas = find("photo");
    this.build();
  }

  async open(file) {
    this.tiles = await this.ask("openPicture", file, this.config);
    this.drawMemories(null);
    this.take(this.samples[0]);
    for (const i of [17, 18, 24, 25, 31, 32]) this.missing[i] = 1;
    this.run();
  }

  build() {
    const run = () => this.run();
    this.alpha = slider("alpha", { min: 0.01, max: 2, value: this.config.alpha, log: true, note: "size of a step", onchange: run });
    this.count = slider("steps", { min: 1, max: 40, value: this.config.steps, step: 1, note: "in all", onchange: run });
    this.shown = slider("shown step", { min: 0, max: this.config.steps, value: this.config.steps, step: 1, onchange: (v) => { this.stop(); this.showStep(v); } });
    find("picture-shown").append(this.shown.label);
    find("picture-sliders").append(this.alpha.label, this.count.label);
    const show = (step) => { this.shown.write(step); this.showStep(step); };
    this.stop = player(find("picture-play"), { last: () => (this.fall ? this.fall.frames.length - 1 : 1), at: () => this.step, show, milliseconds: 3000 });
    for (const id of ["no-attention", "no-memories", "negative"]) find(id).addEventListener("change", run);
    find("mend").addEventListener("click", () => this.asTrained());
    find("whole").addEventListener("click", () => {
      this.missing.fill(0);
      this.run();
    });
    find("another").addEventListener("click", () => {
      this.next = ((this.next || 0) + 1) % this.samples.length;
      this.take(this.samples[this.next]);
      this.run();
    });
    for (const mode of ["paint", "look"]) find(mode).addEventListener("change", () => this.choose(mode));
    const heads = find("heads");
    heads.append(element("option", { value: -1 }, "all heads"));
    for (let h = 0; h < this.config.heads; h++) heads.append(element("option", { value: h }, `head ${h + 1}`));
    heads.addEventListener("change", () => {
      this.head = Number(heads.value);
      this.draw();
      this.tellAttention();
    });
    find("upload").addEventListener("change", (event) => event.target.files[0] && this.read(event.target.files[0]));
    find("camera").addEventListener("click", () => this.snap());
    this.run = latest(() => this.compute());
    this.look = latest(() => this.computeLook());
    this.pointer();
    this.dropping();
  }

  /** paint: clicks make patches missing; look: they ask a patch what it attends to. */
  choose(mode) {
    this.mode = mode;
    find(mode).checked = true;
    find("heads").disabled = mode !== "look";
    if (mode === "look" && this.query < 0) this.query = 24;
    this.draw();
    if (this.seen) this.drawMemories(this.seen);
    this.tellAttention();
  }

  asTrained() {
    for (const id of ["no-attention", "no-memories", "negative"]) find(id).checked = false;
    this.alpha.write(this.config.alpha);
    this.count.write(this.config.steps);
    this.run();
  }

  // ---- pictures in ----

  /** Bytes [28 * 28] as the picture. */
  take(bytes) {
    const { size, mean, deviation } = this.config;
    this.pixels = Float32Array.from(bytes, (v) => (v / 255 - mean[0]) / deviation[0]);
    this.size = size;
  }

  dropping() {
    const zone = find("picture");
    zone.addEventListener("dragover", (event) => event.preventDefault());
    zone.addEventListener("drop", (event) => {
      event.preventDefault();
      if (event.dataTransfer.files[0]) this.read(event.dataTransfer.files[0]);
    });
  }

  /** Any picture that the browser reads, however large: cut to a square and made small. */
  async read(file) {
    const say = find("picture-problem");
    say.textContent = "";
    try {
      const picture = await createImageBitmap(file);
      this.takeImage(picture, picture.width, picture.height);
      picture.close();
    } catch {
      say.textContent = `${file.name}: the browser cannot read it as a picture; it takes PNG, JPEG, WebP and the like`;
    }
  }

  takeImage(image, width, height) {
    const side = Math.min(width, height), n = this.config.size;
    const small = document.createElement("canvas");
    small.width = small.height = n;
    const c = small.getContext("2d");
    c.imageSmoothingQuality = "high";
    c.drawImage(image, (width - side) / 2, (height - side) / 2, side, side, 0, 0, n, n);
    const data = c.getImageData(0, 0, n, n).data;
    this.take(Uint8Array.from({ length: n * n }, (_, i) => 0.299 * data[4 * i] + 0.587 * data[4 * i + 1] + 0.114 * data[4 * i + 2]));
    this.run();
  }

  async snap() {
    const say = find("picture-problem");
    say.textContent = "";
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ video: true });
      const video = element("video", { muted: true });
      video.srcObject = stream;
      await video.play();
      this.takeImage(video, video.videoWidth, video.videoHeight);
      stream.getTracks().forEach((track) => track.stop());
    } catch (error) {
      say.textContent = `no picture from the camera: ${error.message}`;
    }
  }

  // ---- the model ----

  patches() {
    const { patch } = this.config, n = this.config.size, out = new Float32Array(this.pixels.length);
    for (let i = 0; i < out.length; i++) {
      const token = Math.floor(i / patch ** 2), k = i % patch ** 2;
      const y = Math.floor(token / this.side) * patch + Math.floor(k / patch);
      out[i] = this.pixels[y * n + (token % this.side) * patch + (k % patch)];
    }
    return out;
  }

  async compute() {
    const steps = this.count.read();
    const terms = (find("no-attention").checked ? 0 : 1) | (find("no-memories").checked ? 0 : 2);
    const say = find("picture-problem");
    if (!terms) {
      say.textContent = "both terms are off: there is no energy left, and no step to take";
      return;
    }
    const gamma = find("negative").checked ? -0.5 : 0;
    const patches = this.patches();
    try {
      this.fall = await this.ask("descendPicture", patches, Float32Array.from(this.missing), { steps, alpha: this.alpha.read(), gamma, terms });
      say.textContent = "";
    } catch (error) {
      say.textContent = error.message;
      return;
    }
    find("picture-time").textContent = `${digits(this.fall.milliseconds / steps)} ms per step`;
    const input = this.shown.label.querySelector("input");
    input.max = steps;
    this.stop();
    this.step = steps;
    this.shown.write(steps);
    this.seen = null;
    this.draw();
    this.drawPlot();
    this.look();
  }

  async computeLook() {
    if (!this.fall) return;
    const step = this.step;
    try {
      this.seen = { step, ...(await this.ask("lookPicture", step)) };
    } catch {
      return;
    }
    this.draw();
    this.drawMemories(this.seen);
    this.tellAttention();
  }

  showStep(step) {
    this.step = step;
    this.draw();
    this.drawPlot();
    this.look();
  }

  // ---- what is seen ----

  draw() {
    const c = this.canvas.getContext("2d"), n = this.config.size, scale = this.canvas.width / n, { patch, mean, deviation } = this.config;
    const frame = this.fall && this.fall.frames[Math.min(this.step, this.fall.frames.length - 1)];
    for (let token = 0; token < this.tokens; token++)
      for (let k = 0; k < patch ** 2; k++) {
        const x = (token % this.side) * patch + (k % patch), y = Math.floor(token / this.side) * patch + Math.floor(k / patch);
        const hole = this.missing[token];
        const v = hole && frame ? frame[token * patch ** 2 + k] : this.pixels[y * n + x];
        const grey = Math.round(255 * Math.max(0, Math.min(1, v * deviation[0] + mean[0])));
        c.fillStyle = hole && !frame ? colour("accent") : `rgb(${grey},${grey},${grey})`;
        c.fillRect(x * scale, y * scale, scale + 0.5, scale + 0.5);
      }
    this.drawGrid(c, patch * scale);
    if (this.mode === "look" && this.query >= 0 && this.seen) this.drawAttention(c, patch * scale);
    if (this.mode === "paint" && this.query >= 0 && document.activeElement === this.canvas) this.frame(c, patch * scale, this.query, colour("good"));
  }

  frame(c, box, token, stroke) {
    c.lineWidth = 3;
    c.strokeStyle = stroke;
    c.strokeRect((token % this.side) * box + 2, Math.floor(token / this.side) * box + 2, box - 4, box - 4);
    c.lineWidth = 1;
  }

  /** The attention [tokens] of the chosen patch: of a head, or the mean of all for -1. */
  shares(head) {
    const n = this.tokens, heads = head < 0 ? [...Array(this.config.heads).keys()] : [head];
    return Array.from({ length: n }, (_, key) => heads.reduce((sum, h) => sum + this.seen.share[(h * n + this.query) * n + key], 0) / heads.length);
  }

  drawGrid(c, box) {
    for (let token = 0; token < this.tokens; token++)
      if (this.missing[token]) {
        c.strokeStyle = colour("accent");
        c.strokeRect((token % this.side) * box + 1, Math.floor(token / this.side) * box + 1, box - 2, box - 2);
      }
  }

  /** Orange from the least to the most attention of the chosen patch; the rest of the picture is darker. */
  drawAttention(c, box) {
    const share = this.shares(this.head), most = Math.max(...share), least = Math.min(...share.filter((_, key) => key !== this.query));
    for (let key = 0; key < this.tokens; key++) {
      const t = key === this.query ? 0 : (share[key] - least) / (most - least || 1);
      c.fillStyle = `rgba(255,140,0,${0.75 * t ** 2.5})`;
      c.fillRect((key % this.side) * box, Math.floor(key / this.side) * box, box, box);
    }
    this.frame(c, box, this.query, "#27c277");
    this.frame(c, box, share.indexOf(most), "#ff8c00");
  }

  /** Which patch the chosen one attends to, over all heads and in each. */
  tellAttention() {
    const table = find("by-head");
    table.replaceChildren();
    find("attends").textContent = "";
    find("attention-key").hidden = this.mode !== "look";
    if (this.mode !== "look" || !this.seen || this.query < 0) return;
    const where = (token) => `row ${Math.floor(token / this.side) + 1}, column ${(token % this.side) + 1}`;
    const top = (head) => {
      const share = this.shares(head), most = Math.max(...share);
      return { head, share: most, key: share.indexOf(most) };
    };
    const mean = top(this.head), heads = Array.from({ length: this.config.heads }, (_, h) => top(h)).sort((a, b) => b.share - a.share);
    const even = digits(100 / (this.tokens - 1));
    find("attends").textContent = `The patch at ${where(this.query)} attends most to the one at ${where(mean.key)}: ${digits(100 * mean.share)} % of its attention ${this.head < 0 ? "over all heads" : `in head ${this.head + 1}`} at step ${this.seen.step}. Evenly spread, each patch would get ${even} %. The sharpest is head ${heads[0].head + 1}, with ${digits(100 * heads[0].share)} % for ${where(heads[0].key)}.`;
    const pick = (head) => {
      this.head = head;
      find("heads").value = head;
      this.draw();
      this.tellAttention();
    };
    for (const { head, share, key } of heads)
      table.append(element("tr", {}, element("td", {}, element("button", { onclick: () => pick(head), "aria-pressed": String(this.head === head) }, `head ${head + 1}`)), element("td", {}, where(key)), element("td", {}, `${digits(100 * share)} %`)));
  }

  drawPlot() {
    const { energy } = this.fall, steps = energy.length / 2;
    const part = (k) => Array.from({ length: steps }, (_, t) => energy[2 * t + k]);
    const attention = part(0), memories = part(1), total = attention.map((v, t) => v + memories[t]);
    const box = find("picture-plot");
    box.replaceChildren(
      plot([{ name: "total", values: total, colour: colour("ink") }, { name: "attention", values: attention, colour: colour("accent"), dashed: true }, { name: "memories", values: memories, colour: colour("good"), dashed: true }], { step: this.step, rises: true }),
    );
    const rises = risesOf(total, 1e-5), rose = rises[0], alarm = find("alarm");
    const lost = !Number.isFinite(total[steps - 1]);
    alarm.textContent = lost ? `The energy is no longer a number. ${this.reason()}` : !rises.length ? `The energy falls in every step: ${digits(total[0])} to ${digits(total[steps - 1])}.` : `The energy rises in step ${rose}: ${digits(total[rose - 1])} to ${digits(total[rose])}${rises.length > 1 ? `, and in ${rises.length - 1} more` : ""} (red dots). ${this.reason()}`;
    alarm.className = rises.length || lost ? "bad" : "good";
  }

  /** Why an energy rises here. */
  reason() {
    if (find("negative").checked) return "Why: gamma scales the layer norm. With gamma > 0 the layer norm is the gradient of a convex function, and a step against dE/dg lowers E. A negative gamma turns that direction round, so the same step climbs.";
    if (this.alpha.read() > this.config.alpha * 1.5) return `Why: alpha is ${digits(this.alpha.read())}, and the model was trained with ${digits(this.config.alpha)}. The gradient says where down is only near the present state; so large a step goes past the minimum.`;
    return "Why: a step is larger than the curvature of the energy allows. Lower alpha.";
  }

  /** Each memory as the patch that the decoder makes of it, lit by how strongly it is recalled. */
  drawMemories(seen) {
    const canvas = find("memories"), c = canvas.getContext("2d"), { patch, memories } = this.config, p = patch ** 2, across = 32;
    const strength = new Float32Array(memories);
    if (seen)
      for (let token = 0; token < this.tokens; token++)
        if (this.mode === "paint" ? this.missing[token] : token === this.query)
          for (let m = 0; m < memories; m++) strength[m] += seen.active[token * memories + m];
    const most = Math.max(...strength) || 1, size = canvas.width / across, dot = (size - 2) / patch;
    canvas.height = size * Math.ceil(memories / across);
    for (let m = 0; m < memories; m++) {
      const tile = this.tiles.subarray(m * p, (m + 1) * p), high = Math.max(...tile.map(Math.abs)) || 1;
      const x0 = (m % across) * size, y0 = Math.floor(m / across) * size, lit = strength[m] / most;
      c.globalAlpha = seen ? 0.2 + 0.8 * lit : 0.6;
      for (let k = 0; k < p; k++) {
        const grey = Math.round(128 + (127 * tile[k]) / high);
        c.fillStyle = `rgb(${grey},${grey},${grey})`;
        c.fillRect(x0 + 1 + (k % patch) * dot, y0 + 1 + Math.floor(k / patch) * dot, dot + 0.3, dot + 0.3);
      }
      c.globalAlpha = 1;
      if (seen && lit > 0.5) {
        c.strokeStyle = colour("good");
        c.strokeRect(x0 + 0.5, y0 + 0.5, size - 1, size - 1);
      }
    }
  }

  // ---- painting ----

  pointer() {
    let painting = null;
    const token = (event) => {
      const box = this.canvas.getBoundingClientRect();
      const x = Math.floor(((event.clientX - box.left) / box.width) * this.side), y = Math.floor(((event.clientY - box.top) / box.height) * this.side);
      return Math.max(0, Math.min(this.tokens - 1, y * this.side + x));
    };
    const act = (at) => {
      if (this.mode === "look") this.ask_about(at);
      else if (this.missing[at] !== painting) {
        this.missing[at] = painting;
        this.run();
      }
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      const at = token(event);
      painting = this.missing[at] ? 0 : 1;
      this.cursor = at;
      this.canvas.setPointerCapture(event.pointerId);
      act(at);
    });
    this.canvas.addEventListener("pointermove", (event) => painting !== null && act(token(event)));
    this.canvas.addEventListener("pointerup", () => (painting = null));
    this.canvas.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.side, ArrowDown: this.side }[event.key];
      if (by) this.ask_about(Math.max(0, Math.min(this.tokens - 1, (this.query < 0 ? 0 : this.query) + by)));
      else if (event.key === " " || event.key === "Enter") {
        this.missing[Math.max(0, this.query)] ^= 1;
        this.run();
      } else if (event.key === "l" || event.key === "p") this.choose(event.key === "l" ? "look" : "paint");
      else return;
      event.preventDefault();
    });
  }

  ask_about(token) {
    this.query = token;
    this.draw();
    if (this.seen) this.drawMemories(this.seen);
    this.tellAttention();
  }

  /** All again, in the colours of the page. */
  redraw() {
    if (!this.fall) return;
    this.draw();
    this.drawPlot();
    this.drawMemories(this.seen);
  }
}
