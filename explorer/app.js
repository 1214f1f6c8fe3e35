// The page: tabs, the engine in its worker, and the panels.
import { Accounts } from "./accounts.js";
import { element, find } from "./draw.js";
import { FORMULAS, Landscape } from "./landscape.js";
import { Labels } from "./labels.js";
import { Letters } from "./letters.js";
import { Patches } from "./patches.js";
import { Picture } from "./picture.js";
import { Reports } from "./reports.js";
import { Sudoku } from "./sudoku.js";
import { Tour } from "./tour.js";

const packed = (id) => find(id).textContent;

/** The engine in a worker, which answers calls in their order. A worker cannot be interrupted: `stop` ends it and
 * begins another one, for which the calls that opened models are kept. */
class Engine {
  constructor() {
    this.url = URL.createObjectURL(new Blob([packed("worker")], { type: "text/javascript" }));
    this.waiting = new Map();
    this.opened = new Map();
    this.count = 0;
    this.ask = (name, ...args) => this.call(name, args);
    find("stop").addEventListener("click", () => this.stop());
    this.begin();
  }

  begin() {
    this.worker = new Worker(this.url);
    this.worker.onmessage = ({ data }) => (data.id ? this.answer(data) : this.progress(data));
    this.worker.onerror = (event) => fail(event.message);
    this.call("start", [packed("wasm")]).catch((error) => error.stopped || fail(error.message));
    for (const [name, args] of this.opened) this.call(name, args).catch(() => {});
  }

  call(name, args) {
    if (name.startsWith("open")) this.opened.set(name, args);
    return new Promise((resolve, reject) => {
      this.waiting.set(++this.count, { resolve, reject });
      this.worker.postMessage({ id: this.count, name, args });
      this.timer ??= setTimeout(() => (find("busy").hidden = false), 700);
    });
  }

  answer({ id, value, error }) {
    const { resolve, reject } = this.waiting.get(id);
    this.waiting.delete(id);
    if (!this.waiting.size) this.quiet();
    if (error) reject(Object.assign(new Error(error.message), { place: error.place }));
    else resolve(value);
  }

  progress({ step, steps }) {
    find("busy-text").textContent = `computing: step ${step} of ${steps}`;
  }

  quiet() {
    clearTimeout(this.timer);
    this.timer = null;
    find("busy").hidden = true;
    find("busy-text").textContent = "computing";
  }

  stop() {
    const all = [...this.waiting.values()];
    this.worker.terminate();
    this.waiting.clear();
    this.quiet();
    this.begin();
    for (const { reject } of all) reject(Object.assign(new Error("stopped: what is shown was computed before"), { place: -1, stopped: true }));
  }
}

function fail(message) {
  const line = find("failure");
  line.hidden = false;
  line.textContent = `The engine could not start: ${message}. It needs WebAssembly with SIMD: any browser since 2021 (Safari since 2023).`;
}

const arrived = new Set(["energy"]);

function open(name) {
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const chosen = tab.dataset.panel === name;
    tab.setAttribute("aria-selected", chosen);
    tab.tabIndex = chosen ? 0 : -1;
    find(tab.dataset.panel).hidden = !chosen;
  }
  if (!window.explorer) return; // the page is opening
  document.querySelector("[aria-selected=true]").scrollIntoView({ block: "nearest", inline: "center" }); // where tabs are wider than a phone
  redraw(name);
}

/** A panel draws only where it is seen; the first time it may begin to move. */
function redraw(name) {
  const { landscape, labels, letters, patches, picture, board } = window.explorer;
  ({ energy: () => landscape.redraw(), labels: () => labels.draw(), letters: () => letters.draw(), patches: () => patches.draw(), picture: () => picture.redraw(), "sudoku-panel": () => board.draw() })[name]?.();
  if (!arrived.has(name)) ({ labels, letters, patches, "sudoku-panel": board })[name]?.arrive();
  arrived.add(name);
}

// ---- addresses ----

/** The panels whose state an address can have, by their names in it. */
const kept = (panels) => ({ energy: panels.landscape, letters: panels.letters, labels: panels.labels, patches: panels.patches, picture: panels.picture, "sudoku-panel": panels.board, accounts: panels.accounts });

/** The panel that an address names, or the first one, and the state it has: #energy?f=sum(g**2). */
function named() {
  const [name, query] = location.hash.slice(1).split(/\?(.*)/s);
  const panel = document.querySelector(`[role=tab][data-panel="${CSS.escape(name)}"]`) ? name : "energy";
  return { panel, state: query ? Object.fromEntries(new URLSearchParams(query)) : {} };
}

/** Writes what the open panel shows into the address, without what is as it was at first. */
function addresses(panels) {
  const first = Object.fromEntries(Object.entries(kept(panels)).map(([name, panel]) => [name, panel.plain ?? panel.state()]));
  let timer = 0;
  const now = () => {
    const name = document.querySelector("[aria-selected=true]").dataset.panel, state = kept(panels)[name]?.state() || {};
    const query = new URLSearchParams(Object.entries(state).filter(([key, value]) => value !== first[name][key])).toString();
    return `#${name}${query ? `?${query}` : ""}`;
  };
  const write = () => {
    clearTimeout(timer);
    if (find("tour-box").hidden) history.replaceState(null, "", now());
  };
  for (const event of ["input", "change", "click", "pointerup", "keyup"])
    addEventListener(event, () => {
      clearTimeout(timer);
      timer = setTimeout(write, 300);
    });
  find("link").addEventListener("click", async () => {
    write();
    try {
      await navigator.clipboard.writeText(location.href);
      find("link").textContent = "Copied";
    } catch {
      find("link").textContent = "It is in the address bar";
    }
    setTimeout(() => (find("link").textContent = "Copy link"), 2500);
  });
  addEventListener("hashchange", () => {
    const { panel, state } = named();
    open(panel);
    kept(panels)[panel]?.restore(state);
  });
}

/** What brings all panels back to what they show now. */
function keeper(panels) {
  return () => {
    const states = Object.entries(kept(panels)).map(([name, panel]) => [name, panel.state()]), shown = document.querySelector("[aria-selected=true]").dataset.panel;
    return () => {
      for (const [name, state] of states) kept(panels)[name].restore(state);
      open(shown);
    };
  };
}

function tabs() {
  const all = [...document.querySelectorAll("[role=tab]")];
  all.forEach((tab, i) => {
    tab.addEventListener("click", () => open(tab.dataset.panel));
    tab.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by) return;
      const next = all[(i + by + all.length) % all.length];
      open(next.dataset.panel);
      next.focus();
    });
  });
  open(named().panel);
}

/** Links to documents: on the site they are pages beside this one, in the repository files; a copy of the page that was
 * moved has neither, and names the file. */
function links() {
  const inRepository = location.pathname.endsWith("/build/explorer/basin.html"), onSite = document.querySelector("meta[name=photographs]").content !== "";
  for (const link of document.querySelectorAll("a[data-doc]")) {
    const { doc } = link.dataset;
    if (inRepository || onSite) link.href = inRepository ? `../../docs/${doc}.md` : `docs/${doc}.html`;
    else link.replaceWith(`${link.textContent} (docs/${doc}.md in the repository)`);
  }
}

const PAPER = "https://arxiv.org/html/2302.07253v2";

/** Equations: each has a link to its place in the paper, and the panels have links to it. */
function equations() {
  const all = document.querySelectorAll(".equations li");
  for (const item of all) {
    const number = item.id.split("-")[1];
    item.firstElementChild.append(element("a", { href: `${PAPER}#S2.E${number}`, title: "in the paper" }, `(${number})`));
  }
  for (const link of document.querySelectorAll("a[data-equation]")) {
    link.href = `#equation-${link.dataset.equation}`;
    link.addEventListener("click", (event) => {
      event.preventDefault();
      open("equations");
      for (const item of all) item.classList.toggle("asked", `#${item.id}` === link.hash);
      find(link.hash.slice(1)).scrollIntoView({ block: "start" });
    });
  }
}

/** What the buttons beside equations show. */
function examples(panels) {
  const show = {
    negative: () => (find("negative").checked || find("negative").click(), ["picture", "alarm"]),
    look: () => (panels.picture.choose("look"), ["picture", "photo"]),
    hole: () => (panels.picture.choose("paint"), panels.picture.asTrained(), panels.picture.stop.play(0), ["picture", "photo"]),
    letters: () => (panels.letters.stop.play(0), ["letters", "letter"]),
    overshoot: () => (panels.landscape.choose(FORMULAS[1], 2.05), ["energy", "plane"]),
  };
  for (const button of document.querySelectorAll("[data-show]"))
    button.addEventListener("click", () => {
      const [panel, place] = show[button.dataset.show]();
      open(panel);
      find(place).scrollIntoView({ block: "center" });
    });
}

/** Canvases do not follow the style by themselves. */
function followScheme(panels) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    panels.landscape.redraw();
    panels.labels.map();
    panels.letters.draw();
    panels.patches.draw();
    panels.picture.redraw();
    panels.board.draw();
    panels.accounts.draw();
  });
}

/** A drop beside the places for it must not replace the page by the file. */
function ignoreDrops() {
  for (const name of ["dragover", "drop"]) addEventListener(name, (event) => event.preventDefault());
}

/** The first panel can be used at once, and its calls wait for the engine; the others follow. */
async function start() {
  tabs();
  links();
  equations();
  ignoreDrops();
  const engine = new Engine(), { ask } = engine;
  const panels = { engine, idle: () => engine.waiting.size === 0 }, { panel, state } = named();
  panels.landscape = new Landscape(ask, panel === "energy" ? state : {});
  const turn = async () => {
    do await new Promise((resolve) => setTimeout(resolve, 20));
    while (engine.waiting.size); // what the visitor asked for comes first
  };
  await panels.landscape.first;
  await turn();
  panels.letters = new Letters(ask);
  await turn();
  panels.labels = new Labels(ask);
  await turn();
  panels.patches = new Patches(ask, Uint8Array.from(atob(packed("hills")), (c) => c.charCodeAt(0)));
  await turn();
  panels.picture = new Picture(ask, { file: packed("fashion"), config: JSON.parse(packed("fashion-config")), samples: atob(packed("samples")) });
  await turn();
  panels.board = new Sudoku(ask);
  await turn();
  panels.accounts = new Accounts(ask, JSON.parse(packed("network-data")));
  panels.reports = new Reports(() => ask("text", packed("viewer")), panels.picture);
  new Tour(panels, open, keeper(panels));
  examples(panels);
  followScheme(panels);
  window.explorer = panels; // for tests, and for the curious
  if (panel !== "energy") redraw(panel);
  await Promise.all([panels.patches.ready, panels.picture.ready, panels.board.open(packed("sudoku")), panels.accounts.open(packed("accounts-model"))]);
  addresses(panels);
  scrollTo(0, 0); // the browser went to the element that the address names
  if (panel !== "energy" && Object.keys(state).length) await kept(panels)[panel]?.restore(state);
  document.body.dataset.ready = "yes";
}

start().catch((error) => fail(error.message));
