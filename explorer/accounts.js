// Why this account: scores of a small network, what moved one of them, and edges that come and go.
import { colour, digits, element, find, latest } from "./draw.js";

export class Accounts {
  constructor(ask, network) {
    this.ask = ask;
    this.network = { ...network, edges: network.edges.map((edge) => [...edge]) };
    this.removed = [];
    this.without = []; // the probability of the chosen account without each of its edges
    this.node = -1;
    this.place = network.place; // [x, y] in 0 .. 600
    this.run = latest(() => this.compute());
    find("restore").addEventListener("click", () => this.bringBack(this.removed));
    find("suspects").addEventListener("change", (event) => this.choose(Number(event.target.value)));
  }

  async open(file) {
    this.threshold = await this.ask("openAccounts", file);
    await this.compute();
    this.first = this.probability;
    this.order = [...this.probability.keys()].sort((a, b) => this.probability[b] - this.probability[a]);
    find("suspects").append(...this.order.map((node) => element("option", { value: node })));
    this.restore(this.wanted || {});
  }

  /** What an address says of this panel, and the panel as it says. */
  state() {
    return { account: String(this.node), removed: this.removed.map((edge) => edge.join("-")).join(" ") };
  }

  restore(state) {
    if (!this.order) return (this.wanted = state);
    const removed = (state.removed || "").split(" ");
    this.network.edges.push(...this.removed.splice(0));
    this.network.edges = this.network.edges.filter((edge) => !removed.includes(edge.join("-")) || !this.removed.push(edge));
    this.choose(this.order.includes(Number(state.account)) && state.account ? Number(state.account) : this.order[0]);
  }

  choose(node) {
    this.node = node;
    find("suspects").value = node;
    this.run();
  }

  async compute() {
    try {
      const found = await this.ask("scoreAccounts", this.network, this.node);
      this.probability = found.probability;
      this.why = found.why;
      this.without = [];
      find("accounts-problem").textContent = "";
    } catch (error) {
      find("accounts-problem").textContent = error.message;
      return;
    }
    this.draw();
    this.tell();
    await this.withoutEach();
  }

  /** The probability of the chosen account without each of its transfers, one by one. */
  async withoutEach() {
    const node = this.node, edges = this.network.edges, found = [];
    if (node < 0) return;
    for (let i = 0; i < edges.length; i++) {
      if (!edges[i].includes(node)) continue;
      const less = { ...this.network, edges: edges.filter((_, k) => k !== i) };
      const { probability } = await this.ask("scoreAccounts", less, -1);
      if (node !== this.node) return;
      found.push({ i, other: edges[i][0] === node ? edges[i][1] : edges[i][0], without: probability[node] });
    }
    const { probability } = await this.ask("scoreAccounts", { ...this.network, edges: edges.filter((edge) => !edge.includes(node)) }, -1);
    if (node !== this.node) return;
    this.without = found;
    this.alone = probability[node]; // without any transfer
    this.tellTransfers();
    this.draw();
  }

  /** The transfers of the chosen account, that which raises its probability most first. */
  tellTransfers() {
    const body = find("transfers"), p = this.probability[this.node];
    const rows = [...this.without].sort((a, b) => a.without - b.without);
    body.replaceChildren();
    for (const { i, other, without } of rows)
      body.append(
        element("tr", {}, element("td", {}, element("button", { onclick: () => this.choose(other) }, String(other)), this.probability[other] > this.threshold ? element("small", { class: "bad" }, " suspected") : null),
          element("td", {}, `${digits(100 * this.why.neighbour[2 * other])} %`),
          element("td", { class: without < p ? "bad" : "good" }, `${without.toFixed(3)} (${without < p ? "" : "+"}${(without - p).toFixed(3)})`),
          element("td", {}, element("button", { onclick: () => this.remove(i), "aria-label": `remove the transfer with account ${other}` }, "Remove"))),
      );
    const first = rows[0];
    const all = first ? ` Without all ${rows.length} it would be ${this.alone.toFixed(3)}: partners that resemble each other stand in for one another, so one removal changes less than all.` : "";
    find("matters").textContent = (!first ? "It has no transfers." : first.without < p ? `The transfer with account ${first.other} raises it most: without it the probability is ${first.without.toFixed(3)}, not ${p.toFixed(3)}.` : "None of its transfers raises its probability by itself.") + all;
  }

  draw() {
    const svg = find("network"), near = new Set([this.node]);
    svg.replaceChildren();
    this.network.edges.forEach((edge, i) => {
      const [a, b] = edge, mine = a === this.node || b === this.node, other = a === this.node ? b : a;
      const share = mine && this.why ? this.why.neighbour[2 * other] : 0;
      const less = mine && this.without.find((one) => one.i === i), stroke = !mine ? "line" : !less ? "soft" : less.without < this.probability[this.node] ? "bad" : "good";
      const ends = { x1: this.place[a][0], y1: this.place[a][1], x2: this.place[b][0], y2: this.place[b][1] };
      const line = element("line", { ...ends, stroke: colour(stroke), "stroke-width": mine ? 2 + 10 * share : 1, class: mine ? "edge mine" : "edge" });
      svg.append(line);
      if (!mine) return;
      near.add(other);
      // A wide line that is not seen is easier to hit.
      const wide = element("line", { ...ends, stroke: "transparent", "stroke-width": 16, class: "edge mine", onclick: () => this.remove(i) });
      wide.append(element("title", {}, `account ${other}: ${digits(100 * share)} % of the attention${less ? `; probability without this transfer ${less.without.toFixed(3)}` : ""}. Click to remove it.`));
      svg.append(wide);
    });
    for (const edge of this.removed) {
      const [a, b] = edge, line = element("line", { x1: this.place[a][0], y1: this.place[a][1], x2: this.place[b][0], y2: this.place[b][1], stroke: colour("soft"), "stroke-width": 2, "stroke-dasharray": "5 5", class: "edge mine", onclick: () => this.bringBack([edge]) });
      line.append(element("title", {}, `removed: accounts ${a} and ${b}. Click to restore it.`));
      svg.append(line);
    }
    this.place.forEach(([x, y], node) => {
      const p = this.probability[node], suspected = p > this.threshold, chosen = node === this.node;
      const circle = element("circle", { cx: x, cy: y, r: chosen ? 11 : suspected ? 9 : 6, class: `node${suspected ? " suspected" : ""}${chosen ? " chosen" : near.has(node) || suspected ? "" : " far"}`, onclick: () => this.choose(node) });
      circle.append(element("title", {}, `account ${node}: probability ${digits(p)}`));
      svg.append(circle);
    });
    for (const node of near) {
      if (node < 0) continue;
      const [x, y] = this.place[node], right = x > 560;
      svg.append(element("text", { x: right ? x - 12 : x + 12, y: Math.max(16, y - 8), "text-anchor": right ? "end" : "start" }, String(node)));
    }
  }

  remove(i) {
    this.removed.push(...this.network.edges.splice(i, 1));
    this.run();
  }

  bringBack(edges) {
    this.network.edges.push(...edges);
    this.removed = this.removed.filter((edge) => !edges.includes(edge));
    this.run();
  }

  /** Whose probability the removed transfers changed most. */
  tellChanged() {
    find("restore").disabled = !this.removed.length;
    const by = (node) => this.probability[node] - this.first[node];
    const most = this.removed.length ? [...this.first.keys()].filter((node) => Math.abs(by(node)) >= 0.001).sort((a, b) => Math.abs(by(b)) - Math.abs(by(a))) : [];
    const said = most.slice(0, 4).map((node) => `account ${node} ${this.first[node].toFixed(3)} to ${this.probability[node].toFixed(3)}`);
    find("changed").textContent = !this.removed.length ? "" : `${this.removed.length} transfer${this.removed.length > 1 ? "s" : ""} removed (dashed; a click restores). ${most.length ? `${most.length} probabilities changed, most of all ${said.join(", ")}.` : "No probability changed by 0.001."}`;
  }

  tell() {
    if (this.first) this.tellChanged();
    for (const option of find("suspects").options) option.textContent = `account ${option.value}: ${this.probability[option.value].toFixed(3)}${this.probability[option.value] > this.threshold ? ", suspected" : ""}`;
    if (this.node < 0 || !this.why) return;
    const p = this.probability[this.node], row = this.network.rows[this.node], [logit, typical, , rest] = this.why.about;
    const was = this.first && this.removed.length ? ` It was ${this.first[this.node].toFixed(3)} with all edges.` : "";
    find("accounts-verdict").textContent = `Account ${this.node}: probability ${p.toFixed(3)}, ${p > this.threshold ? "above the threshold" : "below the threshold"} ${this.threshold.toFixed(3)}: ${p > this.threshold ? "suspected" : "not suspected"}.${was}`;
    find("accounts-verdict").className = p > this.threshold ? "bad" : "good";
    const body = find("reasons");
    body.replaceChildren();
    const add = (name, value, share) =>
      body.append(element("tr", {}, element("td", {}, name), element("td", {}, value), element("td", { class: share > 0 ? "bad" : "good" }, `${share > 0 ? "+" : ""}${share.toFixed(2)}`)));
    const median = (i) => this.network.rows.map((r) => r[i]).sort((a, b) => a - b)[this.network.rows.length >> 1];
    this.network.columns.forEach((name, i) => add(name, `${digits(row[i])} (${digits(median(i))})`, this.why.feature[2 * i]));
    const around = this.network.columns.reduce((sum, _, i) => sum + this.why.feature[2 * i + 1], 0);
    const degree = this.network.edges.filter((edge) => edge.includes(this.node)).length;
    add("what its partners are like", `${degree} partners`, around);
    add("number of partners", "", this.why.feature[2 * this.network.columns.length] + this.why.feature[2 * this.network.columns.length + 1]);
    add("what is left over", "", rest);
    find("logit").textContent = `The network's score is ${digits(logit)}, that of a typical account ${digits(typical)}; the rows add up to the difference. The probability ${p.toFixed(3)} is calibrated: that share of the validation accounts with such a score were frauds, so it is not the logistic function of the score. Red rows raise the score, green rows lower it.`;
  }
}
