// The page: tabs, the worker, and the panels.
import { Accounts } from "./accounts.js";
import { find, unpack } from "./draw.js";
import { Landscape } from "./landscape.js";
import { Letters } from "./letters.js";
import { Picture } from "./picture.js";
import { Reports } from "./reports.js";
import { Sudoku } from "./sudoku.js";
import { Tour } from "./tour.js";

function startWorker() {
  const text = find("worker").textContent;
  const worker = new Worker(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
  const waiting = new Map();
  let count = 0;
  worker.onmessage = ({ data: { id, value, error } }) => {
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    if (error) reject(Object.assign(new Error(error.message), { place: error.place }));
    else resolve(value);
  };
  worker.onerror = (event) => fail(event.message);
  const ask = (name, ...args) =>
    new Promise((resolve, reject) => {
      waiting.set(++count, { resolve, reject });
      worker.postMessage({ id: count, name, args });
    });
  return { ask, idle: () => waiting.size === 0 };
}

function fail(message) {
  const line = find("failure");
  line.hidden = false;
  line.textContent = `The engine could not start: ${message}. It needs WebAssembly with SIMD: any browser since 2021 (Safari since 2023).`;
}

function open(name) {
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const chosen = tab.dataset.panel === name;
    tab.setAttribute("aria-selected", chosen);
    tab.tabIndex = chosen ? 0 : -1;
    find(tab.dataset.panel).hidden = !chosen;
  }
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
  open("energy");
}

/** Links to documents: on the site they are pages beside this one, in the repository files. */
function links() {
  const inRepository = location.pathname.endsWith("/build/explorer/basin.html");
  for (const link of document.querySelectorAll("a[data-doc]")) link.href = inRepository ? `../../docs/${link.dataset.doc}.md` : `docs/${link.dataset.doc}.html`;
}

/** Canvases do not follow the style by themselves. */
function followScheme(panels) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    panels.landscape.draw();
    panels.landscape.show();
    panels.letters.draw();
    panels.picture.redraw();
    panels.board.draw();
    panels.accounts.draw();
  });
}

const text = async (id) => new TextDecoder().decode(await unpack(id));

async function start() {
  tabs();
  links();
  const { ask, idle } = startWorker(), panels = { idle };
  await ask("start", await unpack("wasm"));
  panels.landscape = new Landscape(ask);
  panels.letters = new Letters(ask);
  const samples = new Uint8Array(await unpack("samples")), size = 28 * 28;
  const pictures = Array.from({ length: samples.length / size }, (_, i) => samples.subarray(i * size, (i + 1) * size));
  panels.picture = new Picture(ask, JSON.parse(find("fashion-config").textContent), pictures);
  await panels.picture.open(await unpack("fashion"));
  panels.board = new Sudoku(ask);
  await panels.board.open(await unpack("sudoku"));
  panels.accounts = new Accounts(ask, JSON.parse(await text("network-data")));
  await panels.accounts.open(await unpack("accounts-model"));
  panels.reports = new Reports(await text("viewer"));
  new Tour(panels, open);
  followScheme(panels);
  window.explorer = panels; // for tests, and for the curious
  document.body.dataset.ready = "yes";
}

start().catch((error) => fail(error.message));
