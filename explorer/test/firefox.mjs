// Drives Firefox by Marionette, its own protocol over TCP: no package is needed.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export class Firefox {
  static async start(program = "firefox-esr") {
    const self = new Firefox(), port = 20000 + (process.pid % 20000);
    self.folder = mkdtempSync(join(tmpdir(), "firefox"));
    writeFileSync(join(self.folder, "user.js"), `user_pref("marionette.port", ${port});\nuser_pref("datareporting.policy.dataSubmissionEnabled", false);\n`);
    self.process = spawn(program, ["--headless", "--marionette", "--no-remote", "--profile", self.folder], { stdio: "ignore", env: { ...process.env, HOME: self.folder } });
    self.waiting = new Map();
    self.count = 0;
    for (let i = 0; !self.socket; i++) {
      await new Promise((resolve) => setTimeout(resolve, 250));
      self.socket = await new Promise((resolve) => {
        const socket = connect(port, "127.0.0.1", () => resolve(socket));
        socket.on("error", () => resolve(null));
      });
      if (i > 240) throw new Error("Firefox does not answer");
    }
    let data = Buffer.alloc(0);
    self.socket.on("data", (more) => {
      data = Buffer.concat([data, more]);
      for (let colon = data.indexOf(":"); colon > 0 && data.length > colon + Number(data.subarray(0, colon)); colon = data.indexOf(":")) {
        const size = Number(data.subarray(0, colon));
        self.receive(JSON.parse(data.subarray(colon + 1, colon + 1 + size)));
        data = data.subarray(colon + 1 + size);
      }
    });
    await self.send("WebDriver:NewSession", {});
    return self;
  }

  receive(message) {
    if (!Array.isArray(message)) return; // the greeting
    const [, id, error, result] = message, { resolve, reject } = this.waiting.get(id);
    this.waiting.delete(id);
    if (error) reject(new Error(`${error.error}: ${error.message}`));
    else resolve(result);
  }

  send(name, params) {
    const text = JSON.stringify([0, ++this.count, name, params]);
    this.socket.write(`${Buffer.byteLength(text)}:${text}`);
    return new Promise((resolve, reject) => this.waiting.set(this.count, { resolve, reject }));
  }

  go(url) {
    return this.send("WebDriver:Navigate", { url });
  }

  /** The value of an expression in the page; promises are waited for. */
  async eval(expression) {
    const script = `const done = arguments[arguments.length - 1]; (async () => (${expression}))().then((value) => done([value === undefined ? null : value]), (error) => done([null, String(error)]));`;
    const { value } = await this.send("WebDriver:ExecuteAsyncScript", { script, args: [], sandbox: null });
    if (value[1]) throw new Error(value[1]);
    return value[0];
  }

  async until(expression, seconds = 120) {
    for (const end = Date.now() + 1000 * seconds; Date.now() < end; ) {
      if (await this.eval(expression)) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`not within ${seconds} s: ${expression}`);
  }

  size(width, height) {
    return this.send("WebDriver:SetWindowRect", { width, height });
  }

  async picture(path) {
    const { value } = await this.send("WebDriver:TakeScreenshot", { full: false });
    writeFileSync(path, Buffer.from(value, "base64"));
  }

  async stop() {
    await this.send("Marionette:Quit", { flags: ["eForceQuit"] }).catch(() => {});
    await new Promise((resolve) => (this.process.exitCode === null ? this.process.once("exit", resolve) : resolve()));
    rmSync(this.folder, { recursive: true, force: true });
  }
}
