// Two minutes through the page: at each stop three sentences, and something happens.
import { find } from "./draw.js";
import { FORMULAS } from "./landscape.js";

export function stops(panels) {
  const beta = (value) => {
    panels.landscape.beta.write(value);
    find("basins").checked = true;
    panels.landscape.changed();
  };
  return [
    { panel: "energy", show: "plane", text: "An energy is a number for every state; here a state is a point of the plane, and dark blue is low. Points (black) take small steps against the gradient and end in a minimum (green). Drag one over a ridge, and it ends in another one.", act: () => panels.landscape.choose(FORMULAS[0]) },
    { panel: "energy", show: "plane", text: "A stored pattern (star) is a minimum of this energy. Each colour is a basin: all starts that end in the same minimum. That is an associative memory, and the formula is the whole network.", act: () => { panels.landscape.choose(FORMULAS[3]); beta(8); } },
    { panel: "energy", show: "plane", text: "Beta says how sharp the memory is. It falls now, and basins merge until every point ends in the same mixture of all patterns. Move the slider beta to the right, and they part.", act: () => { panels.landscape.choose(FORMULAS[3]); panels.landscape.sweep(8, 0.7); } },
    { panel: "letters", show: "letter", text: "The same formula with 64 numbers: each letter is a stored pattern, and the start has 14 wrong pixels. The descent brings the letter back. Click pixels to change the start, or store a pattern of your own.", act: () => panels.letters.restore({}) },
    { panel: "labels", show: "labelled", text: "Stored patterns may carry labels. A query whose label is unknown (grey) falls to the points around it and takes theirs; lines say how much each draws it. Drag the query into the grey: there nothing stored is near, and its energy says so.", act: () => { panels.labels.restore({}); panels.labels.stop.play(0); } },
    { panel: "patches", show: "self", text: "A picture is the memory of its own hole: its known patches are the stored patterns. The hole falls to patches that it has elsewhere, and lines lead to where each came from. Drop a picture of your own to see it filled.", act: () => panels.patches.stop.play(0) },
    { panel: "picture", show: "photo", text: "An Energy Transformer has learnt an energy of pictures: its patches are tokens, and clothes have a low energy. Missing patches (orange frames) begin blank and change with every step. Paint a hole of your own.", act: () => { panels.picture.choose("paint"); panels.picture.asTrained(); panels.picture.stop.play(0); } },
    { panel: "picture", show: "photo", text: "Which patches does one patch attend to? With \"look\" and a click, orange shows its attention; the table below names the strongest patch of each head. The memories that it recalls are framed in green.", act: () => { panels.picture.choose("look"); panels.picture.ask_about(panels.picture.tokens >> 1); } },
    { panel: "picture", show: "alarm", text: "In every step the energy must not rise. With a negative gamma in the layer norm the step no longer goes downhill, and the page says where and why. \"As trained\" undoes it.", act: () => { find("negative").checked = true; panels.picture.run(); } },
    { panel: "sudoku-panel", show: "board", text: "Rules can be an energy, too. 729 candidates, one per cell and digit, go down together until rows, columns and boxes agree. The text below compares it with two simple rules that people use.", act: () => { panels.picture.asTrained(); panels.board.stop.play(0); } },
    { panel: "accounts", show: "network", text: "A detector marks accounts that it suspects in red. For the chosen one, the tables say what raised its score, and how probable fraud would be without each transfer. Remove one, and watch the score change.", act: () => {} },
    { panel: "energy", show: "formula", text: "Now write your own: any formula of g with NumPy's names. The engine differentiates it and descends. Everything runs in this page, by the same C library as the program and the Python package.", act: () => { find("basins").checked = false; panels.landscape.choose(FORMULAS[0]); } },
  ];
}

export class Tour {
  /** `open` shows a panel; `keep` gives a function that brings all panels back to what they show now. */
  constructor(panels, open, keep) {
    this.stops = stops(panels);
    this.open = open;
    this.keep = keep;
    this.at = -1;
    find("tour").addEventListener("click", () => this.go(0));
    find("tour-next").addEventListener("click", () => this.go(this.at + 1));
    find("tour-back").addEventListener("click", () => this.go(this.at - 1));
    find("tour-end").addEventListener("click", () => this.go(-1));
    document.addEventListener("keydown", (event) => event.key === "Escape" && this.at >= 0 && this.go(-1));
  }

  go(at) {
    if (this.at < 0) this.back = this.keep();
    this.at = at >= this.stops.length ? -1 : at;
    find("tour-box").hidden = this.at < 0;
    if (this.at < 0) {
      this.back();
      find("tour").focus();
      return;
    }
    const stop = this.stops[this.at];
    this.open(stop.panel);
    find("tour-text").textContent = stop.text;
    find("tour-count").textContent = `${this.at + 1} of ${this.stops.length}`;
    find("tour-back").disabled = this.at === 0;
    find("tour-next").textContent = this.at === this.stops.length - 1 ? "Done" : "Next";
    stop.act();
    find("tour-next").focus();
    scrollTo(0, 0);
    find(stop.show).scrollIntoView({ block: "nearest" });
  }
}
