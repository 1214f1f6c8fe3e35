// Why this account: scores of a small network, what moved one of them, and edges that come and go.
import { colour, digits, element, find, latest, signed } from "./draw.js";

export class Accounts {
  constructor(ask, network) {
    this.ask = ask;
    this.network = { ...network, edges: network.edges.map((edge) => [...edge]) };
    this.removed = [];
    this.node = -1;
    this.place = layout(network.rows.length, network.edges);
    this.run = latest(() => this.compute());
    find("restore").addEventListener("click", () => {
      this.network.edges.push(...this.removed.splice(0));
      this.run();
    });
    find("suspects").addEventListener("change", (event) => this.choose(Number(event.target.value)));
  }

  async open(file) {
    this.threshold = await this.ask("openAccounts", file);
    await this.compute();
    this.first = this.probability;
    const order = [...this.probability.keys()].sort((a, b) => this.probability[b] - this.probability[a]);
    for (const node of order) find("suspects").append(element("option", { value: node }, `account ${node}: ${digits(this.probability[node])}`));
    this.choose(order[0]);
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
      find("accounts-problem").textContent = "";
    } catch (error) {
      find("accounts-problem").textContent = error.message;
      return;
    }
    this.draw();
    this.tell();
  }

  draw() {
    const svg = find("network");
    svg.replaceChildren();
    this.network.edges.forEach((edge, i) => {
      const [a, b] = edge, mine = a === this.node || b === this.node, other = a === this.node ? b : a;
      const share = mine && this.why ? this.why.neighbour[2 * other] : 0, push = mine && this.why ? this.why.neighbour[2 * other + 1] : 0;
      const line = element("line", {
        x1: this.place[a][0], y1: this.place[a][1], x2: this.place[b][0], y2: this.place[b][1],
        stroke: mine ? (push > 0 ? colour("bad") : colour("good")) : colour("line"), "stroke-width": mine ? 1.5 + 10 * share : 1,
        class: mine ? "edge mine" : "edge", tabindex: mine ? 0 : null, role: mine ? "button" : null, "aria-label": mine ? `remove the edge to account ${other}` : null,
        onclick: () => mine && this.remove(i), onkeydown: (event) => mine && event.key === "Enter" && this.remove(i),
      });
      if (mine) line.append(element("title", {}, `account ${other}: ${digits(100 * share)} % of the attention, moved the logit by ${digits(push)}. Click to remove the edge.`));
      svg.append(line);
    });
    this.place.forEach(([x, y], node) => {
      const p = this.probability[node];
      const circle = element("circle", {
        cx: x, cy: y, r: node === this.node ? 9 : 6, fill: signed(2 * p - 1), class: "node", stroke: node === this.node ? colour("ink") : colour("line"), "stroke-width": node === this.node ? 3 : 1,
        onclick: () => this.choose(node),
      });
      circle.append(element("title", {}, `account ${node}: probability ${digits(p)}`));
      svg.append(circle);
    });
  }

  remove(i) {
    this.removed.push(...this.network.edges.splice(i, 1));
    this.run();
  }

  tell() {
    if (this.node < 0 || !this.why) return;
    const p = this.probability[this.node], row = this.network.rows[this.node], [logit, typical, , rest] = this.why.about;
    const was = this.first && this.removed.length ? ` It was ${digits(this.first[this.node])} with all edges.` : "";
    find("accounts-verdict").textContent = `Account ${this.node}: probability ${digits(p)}, ${p > this.threshold ? "above" : "below"} the threshold ${digits(this.threshold)}.${was}`;
    find("accounts-verdict").className = p > this.threshold ? "bad" : "good";
    const body = find("reasons");
    body.replaceChildren();
    const add = (name, value, share) =>
      body.append(element("tr", {}, element("td", {}, name), element("td", {}, value), element("td", {}, `${share > 0 ? "+" : ""}${digits(share)}`)));
    this.network.columns.forEach((name, i) => add(name, digits(row[i]), this.why.feature[2 * i]));
    const around = this.network.columns.reduce((sum, _, i) => sum + this.why.feature[2 * i + 1], 0);
    const degree = this.network.edges.filter((edge) => edge.includes(this.node)).length;
    add("its neighbours' features", `${degree} neighbours`, around);
    add("number of neighbours, known anomalies", "", this.why.feature[2 * this.network.columns.length] + this.why.feature[2 * this.network.columns.length + 1]);
    add("further away", "", rest);
    find("logit").textContent = `Its logit is ${digits(logit)}, that of a typical account ${digits(typical)}; the rows add up to the difference.`;
  }
}

/** Places in 0 .. 600: nodes repel each other, edges pull; the same for the same network. */
function layout(count, edges) {
  let seed = 7;
  const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  const place = Array.from({ length: count }, () => [random() * 600, random() * 600]);
  for (let round = 0; round < 260; round++) {
    const heat = 22 * (1 - round / 260), move = place.map(() => [0, 0]);
    for (let a = 0; a < count; a++)
      for (let b = 0; b < a; b++) {
        const dx = place[a][0] - place[b][0], dy = place[a][1] - place[b][1], d2 = dx * dx + dy * dy + 1, f = 700 / d2;
        move[a][0] += dx * f; move[a][1] += dy * f;
        move[b][0] -= dx * f; move[b][1] -= dy * f;
      }
    for (const [a, b] of edges) {
      const dx = place[b][0] - place[a][0], dy = place[b][1] - place[a][1], f = Math.hypot(dx, dy) / 70;
      move[a][0] += dx * f; move[a][1] += dy * f;
      move[b][0] -= dx * f; move[b][1] -= dy * f;
    }
    place.forEach((p, i) => {
      move[i][0] += (300 - p[0]) * 0.05; move[i][1] += (300 - p[1]) * 0.05;
      const size = Math.hypot(...move[i]) || 1, step = Math.min(size, heat) / size;
      p[0] = Math.max(12, Math.min(588, p[0] + move[i][0] * step));
      p[1] = Math.max(12, Math.min(588, p[1] + move[i][1] * step));
    });
  }
  return place;
}
