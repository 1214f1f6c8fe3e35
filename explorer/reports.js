// Reports that the program writes, shown by its own viewer (share/basin/viewer.html): what basin image report and basin
// anomaly report make, and the JSON of all other commands, of which a document is made here.
import { chosenFile, element, find, risesOf, thinned } from "./draw.js";

const LARGEST_REPORT = 100e6, ROWS = 400, LEVELS = 6; // bytes of a file, rows of a table, levels of JSON

export class Reports {
  /** `viewer` gives the text of share/basin/viewer.html; `picture` has the descent of the example. */
  constructor(viewer, picture) {
    this.viewer = viewer;
    find("example").addEventListener("click", () => this.read(new File([JSON.stringify(picture.report())], "paint-a-hole.json")));
    chosenFile(find("report"), (file) => this.read(file));
    find("reports").addEventListener("drop", (event) => event.dataTransfer.files[0] && this.read(event.dataTransfer.files[0]));
  }

  async read(file) {
    const say = find("report-problem"), frame = find("report-frame");
    say.textContent = "";
    frame.replaceChildren();
    try {
      if (file.size > LARGEST_REPORT) throw new Error(`${Math.round(file.size / 1e6)} MB; this page shows reports up to ${LARGEST_REPORT / 1e6} MB`);
      const found = parsed(await file.text());
      const json = JSON.stringify(Array.isArray(found.sections) || found.models || found.detector ? found : documentOf(found, file.name)).replace(/</g, "\\u003c");
      const page = (await this.viewer()).replace(/(<script type="application\/json" id="document">)[\s\S]*?(<\/script>)/, (_, a, b) => a + json + b);
      frame.append(element("iframe", { srcdoc: page, sandbox: "allow-scripts", title: file.name }));
    } catch (error) {
      say.textContent = `${file.name}: ${error.message}`;
    }
  }
}

/** JSON, lines of JSON (a log of training), or a page of the viewer's with its document. */
function parsed(text) {
  const inside = /<script type="application\/json" id="document">([\s\S]*?)<\/script>/.exec(text);
  let found, why;
  try {
    found = JSON.parse(inside ? inside[1] : text);
  } catch (error) {
    why = error.message;
    try {
      found = { lines: text.trim().split("\n").map((line) => JSON.parse(line)) };
    } catch {
      throw new Error(`neither a report of Basin's nor its JSON: ${why}`);
    }
  }
  if (Array.isArray(found) && found.length) found = { rows: found };
  if (!found || typeof found !== "object" || !Object.keys(found).length) throw new Error("neither a report of Basin's nor its JSON: there is nothing in it");
  return found;
}

// ---- the JSON of commands, as a document of the viewer's ----

const plain = (value) => value === null || typeof value !== "object";
const shown = (value) => (typeof value === "boolean" ? (value ? "yes" : "no") : value);
const spoken = (name) => name.replaceAll("_", " ");

function documentOf(found, name) {
  const kind = found.trace ? "a descent" : found.folds ? "a cross-validation" : found.nodes && found.edges ? "what a graph's output comes from" : found.neighbours ? "why a node has its score" : "what a command printed";
  const sections = [];
  describe(sections, "Summary", found, 0);
  return { kind: "json", version: 1, writer: "Basin Explorer", title: name, lead: `${kind[0].toUpperCase()}${kind.slice(1)} (--json).`, sections };
}

/** A section of an object: its plain values as facts, its lists as plots and tables; objects in it follow. */
function describe(sections, title, object, depth) {
  const blocks = [], section = { id: `part-${sections.length}`, title: spoken(title), link: spoken(title), blocks };
  sections.push(section);
  const long = ([, value]) => typeof value === "string" && value.length > 14, all = Object.entries(object).filter(([, value]) => plain(value));
  const facts = all.filter((one) => !long(one)).map(([name, value]) => ({ name: spoken(name), value: shown(value), ...(typeof value === "number" && !Number.isInteger(value) ? { digits: 5 } : {}) }));
  if (facts.length) blocks.push({ type: "facts", facts });
  if (all.some(long)) blocks.push({ type: "table", columns: [{ name: "what" }, { name: "value" }], rows: all.filter(long).map(([name, value]) => [spoken(name), value]) });
  const drawn = network(object);
  if (drawn) blocks.push(drawn);
  for (const [name, value] of Object.entries(object)) {
    if (plain(value)) continue;
    if (Array.isArray(value)) blocks.push(...list(spoken(name), value));
    else if (depth < LEVELS) describe(sections, depth ? `${title}: ${name}` : name, value, depth + 1);
  }
  if (!blocks.length) sections.splice(sections.indexOf(section), 1);
}

/** Numbers are a plot, rows a table, and a plot of each column where there are steps or epochs. */
function list(name, values) {
  if (!values.length) return [{ type: "text", text: `${name}: none`, tone: "soft" }];
  if (values.every((v) => typeof v === "number" || v === null)) {
    const few = thinned(values.length, 2000), axis = name === "energy" ? "step" : "place";
    return [{ type: "heading", text: name }, { type: "plots", plots: [{ title: name, x: axis, y: name, whole: "x", series: [{ name, x: few, y: few.map((i) => values[i]) }] }] }];
  }
  const rows = values.map((row) => (plain(row) ? { value: row } : flat(row))), columns = [...new Set(rows.flatMap((row) => Object.keys(row)))].slice(0, 40);
  const number = (column) => rows.every((row) => row[column] === undefined || row[column] === null || typeof row[column] === "number");
  const axis = ["step", "epoch"].find((one) => columns.includes(one) && number(one)), blocks = [{ type: "heading", text: name }];
  if (axis) blocks.push(...curves(rows, columns.filter((column) => column !== axis && number(column)), axis));
  const table = { type: "table", columns: columns.map((column) => ({ name: spoken(column), number: number(column), ...(rows.some((row) => typeof row[column] === "number" && !Number.isInteger(row[column])) ? { digits: 5 } : {}) })), rows: rows.slice(0, ROWS).map((row) => columns.map((column) => shown(row[column] ?? null))) };
  if (rows.length > 12) table.folded = `${rows.length} rows${rows.length > ROWS ? `, of which the first ${ROWS} are shown` : ""}`;
  return [...blocks, table];
}

function curves(rows, columns, axis) {
  const few = thinned(rows.length, 2000), energy = rows.map((row) => row.energy), rises = columns.includes("energy") ? risesOf(energy) : null;
  const plots = columns.map((column) => ({ title: spoken(column), x: axis, y: spoken(column), whole: "x", series: [{ name: spoken(column), x: few.map((i) => rows[i][axis]), y: few.map((i) => rows[i][column] ?? null) }] }));
  const text = rises && (rises.length ? `The energy rises in ${rises.length} step${rises.length > 1 ? "s" : ""}, first in step ${rows[rises[0]][axis]}.` : "The energy falls in every step.");
  return [...(text ? [{ type: "text", text, tone: rises.length ? "bad" : "good" }] : []), { type: "plots", plots }];
}

/** An object's plain values, and those of objects in it under both names. */
function flat(object, before = "", depth = 0) {
  const out = {};
  for (const [name, value] of Object.entries(object)) {
    if (plain(value)) out[before + name] = value;
    else if (Array.isArray(value)) out[before + name] = value.every(plain) ? value.slice(0, 8).join(", ") + (value.length > 8 ? ", .." : "") : `${value.length} values`;
    else if (depth < 3) Object.assign(out, flat(value, `${before}${name} `, depth + 1));
  }
  return out;
}

/** Nodes and edges of basin graph explain, or a node among its neighbours, drawn with what each adds. */
function network({ nodes, edges, node, neighbours }) {
  const listed = (value) => Array.isArray(value) && value.length > 0 && value.every((one) => one && typeof one === "object");
  if (listed(nodes) && listed(edges) && "a" in edges[0]) {
    const names = [...new Set([...nodes.map((one) => one.node), ...edges.flatMap(({ a, b }) => [a, b])])].slice(0, ROWS), adds = new Map(nodes.map((one) => [one.node, one.adds]));
    const at = new Map(names.map((name, i) => [name, i])), drawn = edges.filter(({ a, b }) => at.has(a) && at.has(b));
    return { type: "network", title: "What each node and edge adds", signed: 1, nodes: names.map((name) => ({ name: String(name), value: adds.get(name) ?? 0 })), edges: drawn.map(({ a, b, adds: weight }) => [at.get(a), at.get(b), weight ?? 0]) };
  }
  if (!listed(neighbours) || !("moves" in neighbours[0])) return null;
  const near = neighbours.slice(0, 30);
  return { type: "network", title: "What its neighbours move", signed: 1, nodes: [{ name: String(node), value: 0 }, ...near.map((one) => ({ name: String(one.node), value: one.moves }))], edges: near.map((one, i) => [i + 1, 0, one.moves]) };
}
