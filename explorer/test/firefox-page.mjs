// The Explorer in Firefox: it moves, energies fall, a hole is filled. What is the same in every browser is tested in
// page.mjs.
//
//     node explorer/test/firefox-page.mjs PAGE [FOLDER]      pictures of panels go into FOLDER
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { Firefox } from "./firefox.mjs";

const [page, pictures] = process.argv.slice(2), browser = await Firefox.start();
const text = (id) => browser.eval(`document.getElementById("${id}").textContent`);
const shot = (name) => pictures && browser.picture(join(pictures, `firefox-${name}.png`));
const open = (panel) => browser.eval(`document.querySelector("[data-panel=${panel}]").click()`);
let passed = 0, failed = 0;

const tests = {
  async "points fall, and the curve grows"() {
    const at = () => browser.eval("document.querySelector('#fall circle')?.getAttribute('cx')");
    await browser.until("Boolean(document.querySelector('#fall circle'))"); // elements are replaced while they are read
    const first = await at();
    for (let i = 0; i < 100 && (await at()) === first; i++) await new Promise((wait) => setTimeout(wait, 20));
    assert.notEqual(await at(), first);
    await browser.until("document.body.dataset.ready === 'yes' && explorer.idle()", 60);
    await shot("energy");
  },
  async "a formula in the address falls, and never rises"() {
    await browser.eval("location.hash = '#energy?f=' + encodeURIComponent('(1 - g[0])**2 + 100 * (g[1] - g[0]**2)**2')");
    await browser.until("explorer.landscape.path?.energy[0] > 1000 && explorer.idle()");
    assert.match(await text("verdict"), /never rose/);
  },
  async "each panel has what it shows"() {
    for (const [panel, ready] of [["letters", "/recalled|mixture/.test(document.getElementById('letter-verdict').textContent)"], ["labels", "explorer.labels.path"], ["patches", "explorer.patches.fall"], ["picture", "explorer.picture.fall"], ["sudoku-panel", "explorer.board.fall"], ["accounts", "explorer.accounts.why"]]) {
      await open(panel);
      await browser.until(`${ready} && explorer.idle()`, 60);
      assert(await browser.eval("document.documentElement.scrollWidth <= innerWidth"), panel);
      await shot(panel);
    }
  },
  async "a hole is filled by patches of the picture"() {
    await open("patches");
    await browser.eval("document.getElementById('self-play').click()");
    await browser.until("explorer.patches.shown.read() === 26");
    assert.match(await text("self-verdict"), /falls in every step/);
    console.log(`      ${/Computed in [\d.]+ s/.exec(await text("self-verdict"))}`);
    await shot("filled");
  },
};

if (pictures) mkdirSync(pictures, { recursive: true });
await browser.size(1400, 985);
await browser.go(`file://${resolve(page)}`);
for (const [name, test] of Object.entries(tests))
  try {
    await test();
    passed++;
    console.log(`ok    ${name}`);
  } catch (error) {
    failed++;
    console.log(`FAIL  ${name}: ${error.message}`);
  }
await browser.stop();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
