// Sudoku: every cell's digit by step, rules that are broken, and what singles do.
import { colour, digits, element, find, latest, player, plot, slider } from "./draw.js";

const OPEN = 0.15; // below it a cell has no likeliest digit: nine equal ones have 0.11

const UNITS = [];
for (let i = 0; i < 9; i++) {
  UNITS.push(Array.from({ length: 9 }, (_, k) => 9 * i + k), Array.from({ length: 9 }, (_, k) => 9 * k + i));
  UNITS.push(Array.from({ length: 9 }, (_, k) => 27 * Math.floor(i / 3) + 3 * (i % 3) + 9 * Math.floor(k / 3) + (k % 3)));
}

/** Pairs of equal digits in a row, column or box: how many, and which cells. */
export function broken(cells) {
  const wrong = new Set();
  let pairs = 0;
  for (const unit of UNITS)
    for (let a = 0; a < 9; a++)
      for (let b = 0; b < a; b++)
        if (cells[unit[a]] && cells[unit[a]] === cells[unit[b]]) {
          pairs++;
          wrong.add(unit[a]).add(unit[b]);
        }
  return { pairs, wrong };
}

export class Sudoku {
  constructor(ask) {
    this.ask = ask;
    this.given = new Array(81).fill(0);
    this.cells = [];
    this.run = latest(() => this.compute());
    this.build();
  }

  async open(file) {
    find("board-weights").textContent = (await this.ask("openSudoku", file)).toLocaleString("en");
    this.opened = true;
    this.first = Array.from(await this.ask("makeSudoku", 1, false));
    this.restore(this.wanted || {});
  }

  /** What an address says of this panel, and the panel as it says. */
  state() {
    return { cells: this.given.join(""), steps: String(this.steps.read()), solved: this.revealed ? "1" : "" };
  }

  restore(state) {
    if (!this.opened) return (this.wanted = state);
    this.stop();
    this.animate = false;
    const { cells, steps, solved } = state;
    this.given = /^[0-9]{81}$/.test(cells) ? Array.from(cells, Number) : [...this.first];
    this.steps.write(Math.max(8, Math.min(1024, Number.parseInt(steps) || 64)));
    this.revealed = solved === "1";
    this.fall = null;
    this.draw();
    if (this.seen) this.run();
  }

  /** Nothing is computed before somebody looks. */
  arrive() {
    this.seen = true;
    if (this.opened) this.run();
  }

  build() {
    const board = find("board");
    for (let i = 0; i < 81; i++) {
      const input = element("input", { inputmode: "numeric", maxlength: 1, "aria-label": `row ${Math.floor(i / 9) + 1}, column ${(i % 9) + 1}`, autocomplete: "off" });
      input.addEventListener("input", () => {
        const digit = Number(input.value.replace(/[^1-9]/g, "").slice(-1));
        this.given[i] = digit;
        this.run();
      });
      input.addEventListener("keydown", (event) => {
        const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -9, ArrowDown: 9 }[event.key];
        const next = this.cells[i + by];
        if (by && next) {
          next.focus();
          event.preventDefault();
        }
      });
      this.cells.push(input);
      board.append(input);
      find("singles").append(element("span"));
    }
    board.addEventListener("paste", (event) => {
      const text = event.clipboardData.getData("text");
      if (text.replace(/\s/g, "").length < 20) return;
      event.preventDefault();
      this.paste(text);
    });
    this.steps = slider("steps", { min: 8, max: 1024, value: 64, step: 1, log: true, note: "in all", onchange: () => this.run() });
    this.shown = slider("shown step", { min: 0, max: 64, value: 64, step: 1, onchange: () => { this.stop(); this.revealed = true; this.draw(); } });
    find("board-sliders").append(this.shown.label, this.steps.label);
    this.stop = player(find("board-play"), { last: () => (this.fall ? this.fall.steps : 0.01), at: () => this.shown.read(), show: (step) => { this.revealed = true; this.animate = !this.fall; if (Math.floor(step) !== this.shown.read() || !step) { this.shown.write(Math.floor(step)); this.draw(); } }, milliseconds: 4500, label: "Solve it" });
    find("easy").addEventListener("click", () => this.make(false));
    find("hard").addEventListener("click", () => this.make(true));
    find("empty").addEventListener("click", () => {
      this.given.fill(0);
      this.revealed = false;
      this.run();
    });
    find("paste-board").addEventListener("click", () => this.paste(find("board-text").value));
  }

  /** 81 digits, 0 or . for empty cells; anything else between them is left out. */
  paste(text) {
    const cells = text.replace(/[^0-9.]/g, "").replace(/\./g, "0");
    if (cells.length !== 81) {
      find("board-problem").textContent = `${cells.length} cells; a board has 81: digits, and 0 or . for empty ones`;
      return;
    }
    this.given = Array.from(cells, Number);
    this.revealed = false;
    this.run();
  }

  async make(hard) {
    this.seed = (this.seed || 1) + 1;
    this.revealed = false;
    this.given = Array.from(await this.ask("makeSudoku", this.seed, hard));
    this.run();
  }

  async compute() {
    const problem = find("board-problem"), { pairs } = broken(this.given);
    problem.textContent = pairs ? "two given digits are equal in a row, column or box" : "";
    const given = [...this.given], steps = this.steps.read();
    try {
      this.fall = { ...(await this.ask("descendSudoku", given, steps)), steps };
    } catch (error) {
      problem.textContent = error.message;
      return;
    }
    // A cell that no digit is likeliest in has none.
    const read = (t, i) => {
      const [digit, sure] = this.likeliest(t, i);
      return sure < OPEN ? 0 : digit;
    };
    this.answers = Array.from({ length: steps + 1 }, (_, t) => given.map((digit, i) => digit || (t ? read(t, i) : 0))); // at first only what is given
    this.rules = this.answers.map((cells) => broken(cells).pairs);
    this.stop();
    this.shown.input.max = steps;
    this.shown.write(this.revealed ? steps : 0);
    if (this.animate) this.stop.play(0); // somebody could not wait
    else this.draw();
    this.animate = false;
  }

  /** The digit of a cell at a step, and how sure the model is. */
  likeliest(t, i) {
    const row = this.fall.likelihood.subarray(729 * t + 9 * i, 729 * t + 9 * i + 9);
    const best = row.indexOf(Math.max(...row));
    return [best + 1, row[best]];
  }

  draw() {
    if (!this.fall) return this.cells.forEach((input, i) => {
      input.value = this.given[i] || "";
      input.className = this.given[i] ? "given" : "";
    });
    const t = this.shown.read(), answer = this.answers[t], { wrong } = broken(answer), givenWrong = broken(this.given).wrong;
    this.cells.forEach((input, i) => {
      if (document.activeElement !== input || this.given[i]) input.value = answer[i] || "";
      const [, sure] = this.likeliest(t, i);
      input.className = this.given[i] ? (givenWrong.has(i) ? "given wrong" : "given") : wrong.has(i) ? "wrong" : "";
      input.style.opacity = this.given[i] ? 1 : 0.5 + 0.5 * sure;
    });
    const { rules } = this;
    const box = find("board-plot"), [upper, lower] = box.children.length ? box.children : [element("div"), element("div")], height = innerWidth < 600 ? 72 : 130;
    if (!box.children.length) box.append(upper, lower);
    plot(upper, [{ name: "energy", values: this.fall.energy, colour: colour("accent") }], { step: t, legend: false, height });
    plot(lower, [{ name: "rules broken", values: rules, colour: colour("bad") }], { step: t, axis: "broken", legend: false, height });
    this.drawSingles();
    const { solutions, solution } = this.fall, right = (cells) => cells.every((digit, i) => digit === solution[i]);
    const solved = solutions === 1 && right(answer);
    const say = [`Step ${t}: energy ${digits(this.fall.energy[t])}${this.given.some(Boolean) ? `, ${rules[t]} broken rules` : ""}.`];
    say.push(solutions === 0 ? "The board has no solution." : solutions > 1 ? `The board has several solutions${this.given.some(Boolean) ? ": give more digits" : ": type digits into cells, or take a new board"}.` : solved ? `Solved. ${this.tellHeld(right)}` : `${answer.filter((digit, i) => digit !== solution[i]).length} cells ${t ? "differ from the solution" : "are to be found"}.${t && this.answers.some(right) ? ` ${this.tellHeld(right)}` : ""}`);
    find("board-verdict").textContent = say.join(" ");
    find("board-verdict").className = solved ? "good" : "";
  }

  /** Since which step the answer is there, and whether it is lost again: a fixed point would hold it. */
  tellHeld(right) {
    const there = this.answers.map(right), first = there.indexOf(true), lost = there.indexOf(false, first);
    const held = there.lastIndexOf(false) + 1;
    return lost < 0 ? `The answer is there from step ${first} on, and no later step loses it.` : `The answer is there first at step ${first}${held < there.length ? `, and without a break from step ${held} on` : `, and is lost again at step ${lost}`}.`;
  }

  /** Beside it: the same board by two rules, without search, until neither gives a digit. */
  drawSingles() {
    const { singles } = this.fall, cells = find("singles").children, left = singles.filter((digit) => !digit).length;
    const found = singles.filter((digit, i) => digit && !this.given[i]).length;
    singles.forEach((digit, i) => {
      cells[i].textContent = digit || "";
      cells[i].className = this.given[i] ? "given" : "";
    });
    const rules = "A single is a cell with one digit left, or a digit with one place left in a row, column or box.";
    find("singles-verdict").textContent = `${rules} ${left ? `They give ${found} digits, then stop: ${left} cells stay empty.` : "They solve this board, too."}`;
  }
}
