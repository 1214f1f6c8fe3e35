// Two minutes through the page: at each stop three sentences, and something happens.
import { find } from "./draw.js";
import { FORMULAS } from "./landscape.js";

export function stops(panels) {
  return [
    { panel: "energy", text: "An energy is a number for every state: here the height of a landscape over the plane. Points take small steps downhill, against the gradient, and come to rest in a valley. Drag one over a ridge and it ends elsewhere.", act: () => panels.landscape.choose(FORMULAS[0]) },
    { panel: "energy", text: "A memory is a valley. Here three patterns (stars) are stored, and whatever state one begins with falls to the nearest of them: that is an associative memory. The formula above is the whole network.", act: () => panels.landscape.choose(FORMULAS[3]) },
    { panel: "energy", text: "Beta says how sharp memories are. It is low now: the valleys have merged, and every point ends in a mixture of all patterns. Move the slider up to part them.", act: () => { panels.landscape.beta.write(0.7); panels.landscape.changed(); } },
    { panel: "picture", text: "The same with pictures: 49 patches are tokens, and an Energy Transformer has learnt an energy in which clothes are valleys. Missing patches begin as a blank token and fall. Move the slider to see every step, and paint a hole of your own.", act: () => panels.picture.showStep(panels.picture.count.read()) },
    { panel: "picture", text: "Where does a patch look? Choose \"look\", click a patch: orange is the attention that it pays to the others. Below, the memories that it recalls are lit.", act: () => { find("look").checked = true; panels.picture.mode = "look"; panels.picture.ask_about(24); } },
    { panel: "picture", text: "The energy must fall in every step: that is what makes it an energy. With a negative gamma in the layer norm the activation is no longer the gradient of a convex function, and the page says where the energy rises. \"As trained\" brings everything back.", act: () => { find("negative").checked = true; panels.picture.run(); } },
    { panel: "sudoku-panel", text: "Rules can be an energy, too. 729 candidates, one per cell and digit, go down together until rows, columns and boxes agree. Beside it: what the two simplest rules of a person solve alone.", act: () => panels.picture.asTrained() },
    { panel: "accounts", text: "Accounts of a network, red where the detector suspects fraud. Choose one: the lines are its attention, the table what moved its score. Click a line to remove that transfer, and watch the score change.", act: () => {} },
    { panel: "energy", text: "Now write your own: any formula of g with numpy's names. The engine differentiates it and goes down. Everything here runs in this page, by the same C library as the program and the Python package.", act: () => find("formula").focus() },
  ];
}

export class Tour {
  constructor(panels, open) {
    this.stops = stops(panels);
    this.open = open;
    this.at = -1;
    find("tour").addEventListener("click", () => this.go(0));
    find("tour-next").addEventListener("click", () => this.go(this.at + 1));
    find("tour-back").addEventListener("click", () => this.go(this.at - 1));
    find("tour-end").addEventListener("click", () => this.go(-1));
    document.addEventListener("keydown", (event) => event.key === "Escape" && this.at >= 0 && this.go(-1));
  }

  go(at) {
    this.at = at >= this.stops.length ? -1 : at;
    find("tour-box").hidden = this.at < 0;
    if (this.at < 0) return;
    const stop = this.stops[this.at];
    this.open(stop.panel);
    find("tour-text").textContent = stop.text;
    find("tour-count").textContent = `${this.at + 1} of ${this.stops.length}`;
    find("tour-back").disabled = this.at === 0;
    find("tour-next").textContent = this.at === this.stops.length - 1 ? "Done" : "Next";
    stop.act();
    find("tour-next").focus();
  }
}
