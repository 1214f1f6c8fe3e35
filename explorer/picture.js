// Paint a hole: the model completes it step by step; what it attends to, and which memories it recalls. The page has a
// model of clothes; one of photographs is loaded on demand, and a model file of one's own can be opened.
import { chosenFile, colour, digits, element, find, fromHex, latest, player, plot, risesOf, slider, toHex } from "./draw.js";

const ALPHA = 1e18; // too large: the squares of such tokens are beyond single precision
const LARGEST_MODEL = 64e6; // bytes of a model file
const BREAKS = ["no-attention", "no-memories", "negative", "large"];

export class Picture {
  /** `clothes`: {file, config, samples}; the samples are pictures [28 * 28] of bytes in one text. */
  constructor(ask, clothes) {
    this.ask = ask;
    this.clothes = clothes;
    this.query = -1;
    this.head = -1;
    this.mode = "paint";
    this.next = 0;
    this.own = null; // a picture of the visitor's, as a canvas
    this.canvas = find("photo");
    this.build();
    this.ready = this.open(clothes.file, clothes.config);
  }

  /** Opens a model, and shows a picture with a hole. */
  async open(file, config) {
    const tiles = await this.ask("openPicture", file, config);
    Object.assign(this, { config, tiles, side: config.size / config.patch, step: config.steps, head: -1, fall: null, seen: null, trained: null, sheet: null });
    this.tokens = this.side ** 2;
    this.query = this.mode === "look" ? this.tokens >> 1 : -1;
    this.missing = new Uint8Array(this.tokens);
    this.dig();
    this.revealed = false; // the hole is shown unfilled, until somebody asks
    this.alpha.write(config.alpha);
    this.count.write(config.steps);
    const choose = (value, name) => element("option", { value }, name);
    find("heads").replaceChildren(choose(-1, "all heads"), ...Array.from({ length: config.heads }, (_, h) => choose(h, `head ${h + 1}`)));
    find("picture-note").textContent = `The picture has ${this.side} x ${this.side} patches of ${config.patch} x ${config.patch} pixels.`;
    find("memory-note").textContent = `Each of the ${config.memories} memories as the patch that it stands for.`;
    find("clothes").hidden = this.isClothes();
    this.takeOwn();
    await this.run();
  }

  /** A hole in the middle. */
  dig() {
    const first = Math.floor(0.36 * this.side), last = Math.max(first + 1, Math.ceil(0.64 * this.side));
    for (let y = first; y < last; y++) for (let x = first; x < last; x++) this.missing[y * this.side + x] = 1;
  }

  /** What an address says of this panel, and the panel as it says; pictures and models from files stay as they are. */
  state() {
    const off = BREAKS.filter((id) => find(id).checked).join(" ");
    return { picture: String(this.next), hole: this.missing ? toHex(this.missing) : "", look: this.mode === "look" ? String(this.query) : "", head: String(this.head), broken: off, alpha: digits(this.alpha.read()), steps: String(this.count.read()), filled: this.revealed ? "1" : "" };
  }

  async restore(state) {
    await this.ready;
    this.stop();
    this.next = Math.max(0, Number.parseInt(state.picture) || 0);
    if (!this.own) this.takeOwn();
    this.missing.fill(0);
    if (state.hole === undefined) this.dig();
    else this.missing.set(fromHex(state.hole, this.tokens));
    const broken = (state.broken || "").split(" ");
    for (const id of BREAKS) find(id).checked = broken.includes(id);
    this.alpha.write(Number.parseFloat(state.alpha) || this.config.alpha);
    this.count.write(Math.min(40, Number.parseInt(state.steps) || this.config.steps));
    this.head = state.head in [...Array(this.config.heads)] ? Number(state.head) : -1;
    find("heads").value = this.head;
    this.query = state.look ? Math.max(0, Math.min(this.tokens - 1, Number(state.look) || 0)) : -1;
    this.choose(state.look ? "look" : "paint");
    this.revealed = state.filled === "1";
    this.run();
  }

  isClothes() {
    return this.config === this.clothes.config;
  }

  build() {
    const run = () => { this.revealed = true; this.run(); }, { config } = this.clothes;
    this.alpha = slider("alpha", { min: 0.01, max: 1e20, value: config.alpha, log: true, bend: 2.5, note: "size of a step", onchange: (v) => { find("large").checked = v >= ALPHA; run(); } });
    this.count = slider("steps", { min: 1, max: 40, value: config.steps, step: 1, note: "in all", onchange: run });
    this.shown = slider("shown step", { min: 0, max: config.steps, value: config.steps, step: 1, onchange: (v) => { this.stop(); this.revealed = true; this.showStep(v); } });
    find("picture-shown").append(this.shown.label);
    find("picture-sliders").append(this.alpha.label, this.count.label);
    const show = (step) => { this.revealed = true; if (Math.floor(step) !== this.step || !step) { this.shown.write(Math.floor(step)); this.showStep(Math.floor(step)); } };
    this.stop = player(find("picture-play"), { label: "Fill the hole", last: () => (this.fall ? this.fall.frames.length - 1 : 1), at: () => this.step, show, milliseconds: 3000 });
    for (const id of ["no-attention", "no-memories", "negative"]) find(id).addEventListener("change", run);
    find("large").addEventListener("change", (event) => {
      this.alpha.write(event.target.checked ? ALPHA : this.config.alpha);
      run();
    });
    find("mend").addEventListener("click", () => this.asTrained());
    find("whole").addEventListener("click", () => {
      this.missing.fill(0);
      this.run();
    });
    find("another").addEventListener("click", () => {
      this.next++;
      this.own = null;
      this.revealed = false;
      this.takeOwn();
      this.run();
    });
    for (const mode of ["paint", "look"]) find(mode).addEventListener("change", () => this.choose(mode));
    find("heads").addEventListener("change", () => {
      this.head = Number(find("heads").value);
      this.draw();
      this.tellAttention();
    });
    chosenFile(find("upload"), (file) => this.read(file));
    find("camera").addEventListener("click", () => this.snap());
    find("photos").addEventListener("click", () => this.loadPhotos());
    chosenFile(find("model"), (file) => this.readModel(file));
    find("clothes").addEventListener("click", () => this.open(this.clothes.file, this.clothes.config));
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
    if (mode === "look" && this.query < 0) this.query = this.tokens >> 1;
    this.draw();
    if (this.seen) this.drawMemories(this.seen);
    this.tellAttention();
  }

  asTrained() {
    for (const id of BREAKS) find(id).checked = false;
    this.alpha.write(this.config.alpha);
    this.count.write(this.config.steps);
    this.revealed = true;
    this.run();
  }

  // ---- models in ----

  say(text) {
    find("picture-problem").textContent = text;
  }

  /** The model of photographs, where the page's site has it. Nothing is fetched before this. */
  async loadPhotos() {
    const { content: address, dataset } = document.querySelector("meta[name=photographs]"), bar = find("photos-progress");
    if (!address || location.protocol === "file:")
      return this.say("A page from disk may load nothing. The copy on the site loads this model; here, press \"Open a model\" and choose models/photos.safetensors (9.8 MB) of the repository.");
    this.say("");
    bar.hidden = false;
    find("photos").disabled = true;
    try {
      const response = await fetch(address);
      if (!response.ok) throw new Error(`the server answers ${response.status}`);
      const parts = [], total = Number(dataset.bytes);
      let read = 0;
      for (const reader = response.body.getReader(); ; ) {
        const { done, value } = await reader.read();
        if (done) break;
        parts.push(value);
        read += value.length;
        bar.value = read / total;
        find("photos-text").textContent = `${(read / 1e6).toFixed(1)} of ${(total / 1e6).toFixed(1)} MB`;
      }
      if (read !== total) throw new Error(`${read} bytes came, ${total} were expected`);
      await this.openModel(await new Blob(parts).arrayBuffer());
    } catch (error) {
      this.say(`${address}: ${error.message}`);
    }
    bar.hidden = true;
    find("photos").disabled = false;
    find("photos-text").textContent = "";
  }

  async readModel(file) {
    this.say("");
    try {
      if (file.size > LARGEST_MODEL) throw new Error(`${Math.round(file.size / 1e6)} MB; this page opens models up to ${LARGEST_MODEL / 1e6} MB`);
      await this.openModel(await file.arrayBuffer());
    } catch (error) {
      this.say(`${file.name}: ${error.message}`);
    }
  }

  async openModel(data) {
    const config = configOf(data);
    try {
      await this.open(data, config);
    } catch (error) {
      await this.open(this.clothes.file, this.clothes.config); // the engine keeps none that it refused
      throw error;
    }
  }

  // ---- pictures in ----

  /** The visitor's picture, or the next of ours, in the model's size. */
  takeOwn() {
    const n = this.config.size, { samples } = this.clothes;
    if (!this.own && this.config.channels === 1 && n === 28) {
      const from = 784 * (this.next % (samples.length / 784));
      return this.take((i) => samples.charCodeAt(from + i));
    }
    const image = this.own || scene(this.next), small = element("canvas", { width: n, height: n }), c = small.getContext("2d");
    c.imageSmoothingQuality = "high";
    c.drawImage(image, 0, 0, n, n);
    const { data } = c.getImageData(0, 0, n, n);
    if (this.config.channels === 3) this.take((i, channel) => data[4 * i + channel]);
    else this.take((i) => 0.299 * data[4 * i] + 0.587 * data[4 * i + 1] + 0.114 * data[4 * i + 2]);
  }

  /** Patches [tokens, channels, patch, patch] of a picture whose bytes are at(pixel, channel). */
  take(at) {
    const { size, patch, channels, mean, deviation } = this.config, area = patch ** 2;
    this.pixels = new Float32Array(size * size * channels);
    for (let i = 0; i < this.pixels.length; i++) {
      const token = Math.floor(i / (area * channels)), channel = Math.floor(i / area) % channels, k = i % area;
      const y = Math.floor(token / this.side) * patch + Math.floor(k / patch), x = (token % this.side) * patch + (k % patch);
      this.pixels[i] = (at(y * size + x, channel) / 255 - mean[channel]) / deviation[channel];
    }
    this.trained = null;
  }

  dropping() {
    find("picture").addEventListener("drop", (event) => {
      const [file] = event.dataTransfer.files;
      if (file) (file.name.endsWith(".safetensors") ? this.readModel(file) : this.read(file));
    });
  }

  /** Any picture that the browser reads, however large: cut to a square and made small. */
  async read(file) {
    this.say("");
    try {
      const picture = await createImageBitmap(file);
      this.takeImage(picture, picture.width, picture.height);
      picture.close();
    } catch {
      this.say(`${file.name}: the browser cannot read it as a picture; it takes PNG, JPEG, WebP and the like`);
    }
  }

  takeImage(image, width, height) {
    const side = Math.min(width, height), n = Math.min(side, 512);
    this.own = element("canvas", { width: n, height: n });
    const c = this.own.getContext("2d");
    c.imageSmoothingQuality = "high";
    c.drawImage(image, (width - side) / 2, (height - side) / 2, side, side, 0, 0, n, n);
    this.takeOwn();
    this.revealed = false;
    if (!this.missing.includes(1)) this.dig();
    this.run();
  }

  /** The first press shows what the camera sees, the second takes it. */
  async snap() {
    const video = find("video"), button = find("camera");
    this.say("");
    if (video.srcObject) {
      if (video.videoWidth) this.takeImage(video, video.videoWidth, video.videoHeight);
      video.srcObject.getTracks().forEach((track) => track.stop());
      video.srcObject = null;
    } else
      try {
        if (!navigator.mediaDevices) throw new Error("this browser gives a page from here no camera");
        video.srcObject = await navigator.mediaDevices.getUserMedia({ video: true });
        await video.play();
      } catch (error) {
        video.srcObject = null;
        this.say(`no picture from the camera: ${error.message}`);
      }
    video.hidden = !video.srcObject;
    button.textContent = video.srcObject ? "Take the picture" : "Camera";
  }

  // ---- the model ----

  async compute() {
    const steps = this.count.read(), { config } = this;
    const terms = (find("no-attention").checked ? 0 : 1) | (find("no-memories").checked ? 0 : 2);
    if (!terms) return this.say("Both terms are off: there is no energy left, and no step to take.");
    const gamma = find("negative").checked ? -0.5 : 0, alpha = this.alpha.read(), missing = Float32Array.from(this.missing);
    const broken = terms !== 3 || gamma < 0 || alpha !== config.alpha || steps !== config.steps;
    const hole = missing.join("");
    try {
      if (broken && this.trained?.hole !== hole) this.trained = { hole, ...(await this.ask("descendPicture", this.pixels, missing, { steps: config.steps, alpha: config.alpha, gamma: 0, terms: 3 })) };
      const fall = await this.ask("descendPicture", this.pixels, missing, { steps, alpha, gamma, terms });
      if (config !== this.config) return; // another model meanwhile
      this.fall = { ...fall, hole: missing, broken };
      if (!broken) this.trained = { hole, ...fall };
      this.say("");
    } catch (error) {
      return this.say(error.message);
    }
    find("picture-time").textContent = `${digits(this.fall.milliseconds / steps)} ms per step`;
    this.shown.input.max = steps;
    this.stop();
    this.step = this.revealed ? steps : 0;
    this.shown.write(this.step);
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
    if (!this.pixels) return;
    const c = this.canvas.getContext("2d"), { size, patch, channels, mean, deviation } = this.config, area = patch ** 2;
    const frame = this.fall && this.fall.frames[Math.min(this.step, this.fall.frames.length - 1)], image = new ImageData(size, size);
    for (let i = 0; i < size * size; i++) {
      const y = Math.floor(i / size), x = i % size, token = Math.floor(y / patch) * this.side + Math.floor(x / patch);
      const from = this.missing[token] && frame ? frame : this.pixels, blank = this.missing[token] && !this.step;
      for (let k = 0; k < 3; k++) {
        if (blank) {
          image.data[4 * i + k] = (x + y) % 2 ? 120 : 150; // nothing is there yet
          continue;
        }
        const channel = Math.min(k, channels - 1), at = (token * channels + channel) * area + (y % patch) * patch + (x % patch);
        image.data[4 * i + k] = Math.round(255 * (from[at] * deviation[channel] + mean[channel])); // held within 0 .. 255
      }
      image.data[4 * i + 3] = 255;
    }
    const small = element("canvas", { width: size, height: size });
    small.getContext("2d").putImageData(image, 0, 0);
    c.imageSmoothingEnabled = false;
    c.drawImage(small, 0, 0, this.canvas.width, this.canvas.height);
    const box = this.canvas.width / this.side;
    this.drawGrid(c, box);
    if (this.mode === "look" && this.query >= 0 && this.seen) this.drawAttention(c, box);
    if (this.mode === "paint" && this.query >= 0 && document.activeElement === this.canvas) this.frame(c, box, this.query, colour("good"));
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

  /** Energies by step: attention, memories and their sum. */
  energies({ energy }) {
    const part = (k) => Array.from({ length: energy.length / 2 }, (_, t) => energy[2 * t + k]);
    const attention = part(0), memories = part(1);
    return { attention, memories, total: attention.map((v, t) => v + memories[t]) };
  }

  /** The shown descent as basin descend --json writes one. */
  report() {
    const { attention, memories, total } = this.energies(this.fall);
    return { model: this.isClothes() ? "models/fashion.safetensors" : "opened in the Explorer", alpha: this.alpha.read(), steps: total.length - 1, missing_patches: this.missing.reduce((a, b) => a + b), trace: total.map((energy, step) => ({ step, energy, attention: attention[step], hopfield: memories[step] })) };
  }

  drawPlot() {
    if (!this.fall) return;
    const { attention, memories, total } = this.energies(this.fall), last = total.length - 1;
    const lines = [{ name: "total", values: total, colour: colour("ink") }, { name: "attention", values: attention, colour: colour("accent"), dashed: true }, { name: "memories", values: memories, colour: colour("good"), dashed: true }];
    if (this.fall.broken) lines.push({ name: "total as trained", values: this.energies(this.trained).total, colour: colour("soft"), thin: true });
    plot(find("picture-plot"), lines, { step: this.step, rises: true });
    const rises = risesOf(total, 1e-5), rose = rises[0], lost = !Number.isFinite(total[last]), off = this.termOff();
    const said = lost ? `The energy is no longer a number. ${this.reason()}`
      : rises.length ? `The energy rises in step ${rose}: ${digits(total[rose - 1])} to ${digits(total[rose])}${rises.length > 1 ? `, and in ${rises.length - 1} more` : ""} (red dots). ${this.reason()}`
      : `The energy falls in every step: ${digits(total[0])} to ${digits(total[last])}.`;
    find("alarm").textContent = [said, off, this.tellError()].join(" ");
    find("alarm").className = rises.length || lost || off ? "bad" : "good";
  }

  /** What becomes of the energy of a term that is off: nothing lowers it. */
  termOff() {
    const off = ["attention", "memories"].find((name) => find(`no-${name}`).checked);
    if (!off || !this.fall.broken) return "";
    const now = this.energies(this.fall)[off], trained = this.energies(this.trained)[off].at(-1), rises = risesOf(now, 1e-5);
    return `The term that is off is not lowered: ${off === "attention" ? "attention" : "the memories'"} energy ends at ${digits(now.at(-1))}, as trained at ${digits(trained)}${rises.length ? `, and rises by itself in ${rises.length} step${rises.length > 1 ? "s" : ""}` : ""}.`;
  }

  /** How far the hole is from the picture, in levels of 0 to 255. */
  tellError() {
    if (!this.fall.hole.includes(1)) return "There is no hole: paint one.";
    const error = (frame) => {
      const { channels, patch, mean, deviation } = this.config, area = patch ** 2, level = (v, channel) => Math.max(0, Math.min(255, 255 * (v * deviation[channel] + mean[channel])));
      let sum = 0, count = 0;
      for (let i = 0; i < frame.length; i++) {
        if (!this.fall.hole[Math.floor(i / (area * channels))]) continue;
        const channel = Math.floor(i / area) % channels;
        sum += Math.abs(level(frame[i], channel) - level(this.pixels[i], channel));
        count++;
      }
      return digits(Math.round(sum / count));
    };
    const trained = this.fall.broken ? `; as trained ${error(this.trained.frames.at(-1))}` : "";
    return `In the hole, a pixel is ${error(this.fall.frames[Math.min(this.step, this.fall.frames.length - 1)])} of 255 levels from the true one at step ${this.step}${trained}.`;
  }

  /** Why an energy rises here. */
  reason() {
    if (find("negative").checked) return "Why: gamma scales the layer norm. With gamma > 0 the layer norm is the gradient of a convex function, and a step against dE/dg lowers E. A negative gamma turns that direction round, so the same step climbs.";
    if (this.alpha.read() > 1e12) return "Why: tokens have become so long that their squares are beyond single precision; the layer norm, which divides by their length, gives 0 then, and all that was found is lost. Below that, a large alpha does little harm: the layer norm leaves only the direction of a token.";
    if (this.alpha.read() > this.config.alpha * 1.5) return `Why: alpha is ${digits(this.alpha.read())}, and the model was trained with ${digits(this.config.alpha)}. The gradient says where down is only near the present state; so large a step goes past the minimum.`;
    return "Why: a step is larger than the curvature of the energy allows. Lower alpha.";
  }

  /** The memories as patches, side by side: each as the decoder makes it, from its least to its most. */
  drawSheet(across, size) {
    const { patch, memories, channels } = this.config, area = patch ** 2, one = new ImageData(patch, patch), small = element("canvas", { width: patch, height: patch });
    this.sheet = element("canvas", { width: across * size, height: size * Math.ceil(memories / across) });
    const c = this.sheet.getContext("2d");
    c.imageSmoothingEnabled = size < patch;
    for (let m = 0; m < memories; m++) {
      const tile = this.tiles.subarray(m * area * channels, (m + 1) * area * channels);
      let high = 1e-9;
      for (const v of tile) high = Math.max(high, Math.abs(v));
      for (let k = 0; k < area; k++) {
        for (let rgb = 0; rgb < 3; rgb++) one.data[4 * k + rgb] = 128 + (127 * tile[Math.min(rgb, channels - 1) * area + k]) / high;
        one.data[4 * k + 3] = 255;
      }
      small.getContext("2d").putImageData(one, 0, 0);
      c.drawImage(small, (m % across) * size + 1, Math.floor(m / across) * size + 1, size - 2, size - 2);
    }
  }

  /** The memories, lit by how strongly the hole or the chosen patch recalls them. */
  drawMemories(seen) {
    if (find("picture").hidden) return;
    const canvas = find("memories"), c = canvas.getContext("2d"), { memories } = this.config, across = memories > 1000 ? 64 : 32, size = canvas.width / across;
    const strength = new Float32Array(memories);
    if (seen)
      for (let token = 0; token < this.tokens; token++)
        if (this.mode === "paint" ? this.missing[token] : token === this.query)
          for (let m = 0; m < memories; m++) strength[m] += seen.active[token * memories + m];
    if (!this.sheet) this.drawSheet(across, size);
    canvas.height = this.sheet.height;
    const most = strength.reduce((a, b) => Math.max(a, b), 0) || 1;
    for (let m = 0; m < memories; m++) {
      const x = (m % across) * size, y = Math.floor(m / across) * size, lit = strength[m] / most;
      c.fillStyle = "#0c1018";
      c.fillRect(x, y, size, size);
      c.globalAlpha = seen ? 0.28 + 0.72 * lit : 0.6;
      c.drawImage(this.sheet, x, y, size, size, x, y, size, size);
      c.globalAlpha = 1;
      if (seen && lit > 0.5) {
        c.strokeStyle = "#3fe08f";
        c.lineWidth = 2;
        c.strokeRect(x + 1, y + 1, size - 2, size - 2);
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
        this.revealed = true;
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
        this.revealed = true;
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
    this.draw();
    this.drawPlot();
    if (this.tiles) this.drawMemories(this.seen);
  }
}

/** The settings of a model file (safetensors); refuses what this page cannot run. */
function configOf(data) {
  const size = data.byteLength < 8 ? Infinity : Number(new DataView(data).getBigUint64(0, true));
  if (!(size < data.byteLength - 8)) throw new Error("not a safetensors file");
  let about = {};
  try {
    about = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 8, size))).__metadata__ || {};
  } catch {
    throw new Error("not a safetensors file: its header is not JSON");
  }
  if (about["basin.model"] !== "image") throw new Error(`a model of ${about["basin.model"] || "no kind that it names"}; expected one that basin image train wrote`);
  const config = JSON.parse(about["basin.config"] || "{}"), wanted = { arch: "et", hopfield_kind: "relu", attention: true, hopfield: true, self_attention: false, cls: false, beta: 0, learn_beta: false };
  for (const [name, value] of Object.entries(wanted)) if (name in config && config[name] !== value) throw new Error(`its ${name} is ${config[name]}; this page runs models with ${value}`);
  for (const name of ["size", "patch", "channels", "dim", "heads", "head_dim", "memories", "steps", "alpha"]) if (!(config[name] > 0)) throw new Error(`its settings have no ${name}`);
  return config;
}

/** Drawn landscapes, for models of photographs: those of the visitor are better. */
function scene(which) {
  const canvas = element("canvas", { width: 224, height: 224 }), c = canvas.getContext("2d"), sky = c.createLinearGradient(0, 0, 0, 150), evening = which % 2;
  sky.addColorStop(0, evening ? "#3b4a86" : "#5d8fd0");
  sky.addColorStop(1, evening ? "#f0a878" : "#d9e8f5");
  c.fillStyle = sky;
  c.fillRect(0, 0, 224, 224);
  ["#8fa3b8", "#6d8a72", "#4e6d42", "#3c5530"].forEach((fill, k) => {
    c.fillStyle = fill;
    c.beginPath();
    c.moveTo(0, 224);
    for (let x = 0; x <= 224; x++) c.lineTo(x, 105 + 27 * k - (26 - 5 * k) * Math.sin(x / (58 - 9 * k) + 2 * k + which) - 5 * Math.sin(x / 11 + k));
    c.lineTo(224, 224);
    c.fill();
  });
  return canvas;
}
