// Reports that the program writes (basin image report, anomaly report, ..), shown by its own viewer.
import { element, find } from "./draw.js";

export class Reports {
  constructor(viewer) {
    this.viewer = viewer; // the text of share/basin/viewer.html
    find("report").addEventListener("change", (event) => event.target.files[0] && this.read(event.target.files[0]));
    const zone = find("reports");
    zone.addEventListener("dragover", (event) => event.preventDefault());
    zone.addEventListener("drop", (event) => {
      event.preventDefault();
      if (event.dataTransfer.files[0]) this.read(event.dataTransfer.files[0]);
    });
  }

  async read(file) {
    const say = find("report-problem");
    say.textContent = "";
    let text = await file.text();
    const inside = /<script type="application\/json" id="document">([\s\S]*?)<\/script>/.exec(text);
    if (inside) text = inside[1];
    try {
      if (!JSON.parse(text)) throw new SyntaxError("it is empty");
    } catch (error) {
      say.textContent = `${file.name}: neither a report of Basin's nor its JSON: ${error.message}`;
      return;
    }
    const document = this.viewer.replace(/(<script type="application\/json" id="document">)[\s\S]*?(<\/script>)/, (_, a, b) => `${a}${text.replace(/</g, "\\u003c")}${b}`);
    find("report-frame").replaceChildren(element("iframe", { srcdoc: document, sandbox: "allow-scripts", title: file.name }));
  }
}
