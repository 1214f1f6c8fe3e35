// Drives Chromium by its DevTools protocol over a pipe: no package is needed.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export class Browser {
  static async start() {
    const self = new Browser();
    self.folder = mkdtempSync(join(tmpdir(), "explorer"));
    const options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", `--user-data-dir=${self.folder}`, "--no-first-run", "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream", "--disable-features=IsolateSandboxedIframes", "about:blank"];
    self.process = spawn("chromium", options, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    self.waiting = new Map();
    self.events = [];
    self.count = 0;
    let text = "";
    self.process.stdio[4].on("data", (data) => {
      text += data;
      const parts = text.split("\0");
      text = parts.pop();
      for (const part of parts) self.receive(JSON.parse(part));
    });
    const { targetInfos } = await self.send("Target.getTargets");
    const page = targetInfos.find((target) => target.type === "page");
    self.session = (await self.send("Target.attachToTarget", { targetId: page.targetId, flatten: true })).sessionId;
    for (const domain of ["Page", "Runtime", "Log", "Network", "DOM"]) await self.send(`${domain}.enable`);
    return self;
  }

  receive(message) {
    if (message.id) {
      const { resolve, reject } = this.waiting.get(message.id);
      this.waiting.delete(message.id);
      if (message.error) reject(new Error(message.error.message));
      else resolve(message.result);
    } else this.events.push(message);
  }

  send(method, params = {}) {
    const id = ++this.count;
    this.process.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId: this.session })}\0`);
    return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
  }

  /** The value of an expression in the page; promises are waited for. */
  async eval(expression) {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description || exceptionDetails.text);
    return result.value;
  }

  async until(expression, seconds = 120) {
    for (const end = Date.now() + 1000 * seconds; Date.now() < end; ) {
      if (await this.eval(expression)) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`not within ${seconds} s: ${expression}`);
  }

  /** Pages keep still unless `moves`: what moves by itself has tests of its own. */
  size(width, height, dark = false, moves = false) {
    return Promise.all([
      this.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: width < 600 }),
      this.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }, { name: "prefers-reduced-motion", value: moves ? "no-preference" : "reduce" }] }),
    ]);
  }

  async picture(path, full = true) {
    const { data } = await this.send("Page.captureScreenshot", { format: "png", captureBeyondViewport: full });
    writeFileSync(path, Buffer.from(data, "base64"));
  }

  /** The text of the page and of the frames in it. */
  async texts() {
    const { root } = await this.send("DOM.getDocument", { depth: -1, pierce: true });
    const walk = (node) => (node.nodeName === "SCRIPT" || node.nodeName === "STYLE" ? "" : [node.nodeType === 3 ? node.nodeValue : "", ...(node.children || []).map(walk), node.contentDocument ? walk(node.contentDocument) : ""].join(" "));
    return walk(root);
  }

  async mouse(type, x, y) {
    await this.send("Input.dispatchMouseEvent", { type, x, y, button: type === "mouseMoved" ? "none" : "left", buttons: type === "mouseReleased" ? 0 : 1, clickCount: 1 });
  }

  async drag(from, to) {
    await this.mouse("mousePressed", ...from);
    for (let i = 1; i <= 4; i++)
      await this.send("Input.dispatchMouseEvent", { type: "mouseMoved", x: from[0] + ((to[0] - from[0]) * i) / 4, y: from[1] + ((to[1] - from[1]) * i) / 4, button: "left", buttons: 1 });
    await this.mouse("mouseReleased", ...to);
  }

  async key(key, text) {
    await this.send("Input.dispatchKeyEvent", { type: text ? "keyDown" : "rawKeyDown", key, code: key, text, windowsVirtualKeyCode: { Tab: 9, Enter: 13, Escape: 27, ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40 }[key] });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", key, code: key });
  }

  async stop() {
    await this.send("Browser.close").catch(() => {});
    await new Promise((resolve) => this.process.once("exit", resolve));
    rmSync(this.folder, { recursive: true, force: true });
  }
}
