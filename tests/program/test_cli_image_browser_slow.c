/* A report in a real browser (chromium, headless): every picture loads, the slider moves and the
 * pictures change, play plays, toggles and thumbnails work, a clicked patch shows its attention,
 * pictures are enlarged, nothing overflows a phone's width, and the console stays empty. Skipped
 * where there is no chromium. */
#include "program/browser.h"

/* Runs in the page, after its own script; sends its verdict to the page around it. */
static const char check[] =
    "<script>\n"
    "const wrong = [], say = (good, what) => { if (!good) wrong.push(what) };\n"
    "(async () => {\n"
    "  const wait = ms => new Promise(done => setTimeout(done, ms));\n"
    "  if (document.readyState !== 'complete') await new Promise(d => addEventListener('load', "
    "d));\n"
    "  for (const i of document.images) say(i.complete && i.naturalWidth > 0, 'img ' + i.alt);\n"
    "  const slider = document.querySelector('input[type=range]');\n"
    "  const seen = () => Array.from(document.querySelectorAll('.scene img'))\n"
    "    .filter(i => i.getClientRects().length).map(i => i.src).join();\n"
    "  const looks = [];\n"
    "  for (let t = 0; t <= Number(slider.max); t++) {\n"
    "    slider.value = t;\n"
    "    slider.dispatchEvent(new Event('input'));\n"
    "    looks.push(seen());\n"
    "  }\n"
    "  say(looks.every(l => l.length > 0), 'a step shows nothing');\n"
    "  say(new Set(looks).size === looks.length, 'two steps look the same');\n"
    "  say(document.querySelector('output').textContent.includes(slider.max), 'output');\n"
    "  document.querySelector('.stepper button').click();\n"
    "  await wait(100);\n"
    "  say(document.querySelector('.stepper button').textContent === 'Pause', 'no pause');\n"
    "  await wait(8000);\n"
    "  say(document.querySelector('.stepper button').textContent === 'Play', 'plays for ever');\n"
    "  say(slider.value === slider.max, 'did not play to the end');\n"
    "  document.querySelector('.stepper button').dispatchEvent(\n"
    "    new KeyboardEvent('keydown', { key: 'ArrowLeft', bubbles: true }));\n"
    "  say(Number(slider.value) === Number(slider.max) - 1, 'arrow key');\n"
    "  const before = seen(), picks = document.querySelectorAll('.picks input');\n"
    "  picks[1].click();\n"
    "  say(seen() !== before && seen().length > 0, 'thumbnail');\n"
    "  const box = document.querySelector('#memories input[type=checkbox]');\n"
    "  const all = document.querySelector('#memories .either .second');\n"
    "  say(!all.getClientRects().length, 'all memories at first');\n"
    "  box.click();\n"
    "  say(all.getClientRects().length, 'all memories');\n"
    "  say(document.querySelector('.marker').getAttribute('d'), 'marker');\n"
    "  attend();\n"
    "  await zoom();\n"
    "  say(document.documentElement.scrollWidth <= innerWidth, 'wider than the page: '\n"
    "    + document.documentElement.scrollWidth + ' of ' + innerWidth);\n"
    "  for (const d of document.querySelectorAll('.facts dd'))\n"
    "    say(d.scrollWidth <= d.clientWidth, 'a fact is cut: ' + d.textContent);\n"
    "  const columns = getComputedStyle(document.querySelector('main')).gridTemplateColumns;\n"
    "  say(columns.split(' ').length === (innerWidth > 1100 ? 2 : 1), 'columns ' + columns);\n"
    "  parent.postMessage(wrong.join('; ') || 'all is well', '*');\n"
    "})();\n"
    "</script>\n";

/* Where a patch looks: a click, the arrow keys, a step, the other direction, another picture. */
static const char check_attention[] =
    "<script>\n"
    "const attend = () => {\n"
    "  const root = document.querySelector('.attend'), board = root.querySelector('.patches');\n"
    "  const pixels = canvas => {\n" /* of a copy: reading one canvas twice gets a warning */
    "    const copy = document.createElement('canvas').getContext('2d');\n"
    "    copy.drawImage(canvas, 0, 0);\n"
    "    return Array.from(copy.getImageData(0, 0, canvas.width, canvas.height).data);\n"
    "  };\n"
    "  const maps = () => Array.from(root.querySelectorAll('canvas')).map(pixels);\n"
    "  const text = () => root.querySelector('[aria-live]').textContent;\n"
    "  const slider = root.querySelector('input[type=range]');\n"
    "  const changes = (what, act) => {\n"
    "    const before = JSON.stringify(maps());\n"
    "    act();\n"
    "    say(JSON.stringify(maps()) !== before, what + ' changes no map');\n"
    "  };\n"
    "  const all = JSON.parse(document.getElementById('document').textContent);\n"
    "  const what = { ...all.models[0].attention, across: all.size / all.patch };\n"
    "  say(maps().length === 1 + what.heads, 'a map a head');\n"
    "  board.scrollIntoView();\n"
    "  const box = board.getBoundingClientRect(), n = what.across;\n"
    "  changes('a click', () => board.dispatchEvent(new MouseEvent('click', { bubbles: true,\n"
    "    clientX: box.left + box.width * 1.5 / n, clientY: box.top + box.height * 0.5 / n })));\n"
    "  say(text().startsWith('Patch in row 1, col 2,'), 'clicked: ' + text());\n"
    "  const own = maps().map(m => m[4 * 1 + 3]);\n"
    "  say(own.every(alpha => alpha === 0), 'a patch looks at itself');\n"
    "  say(maps().every(m => m.some((v, i) => i % 4 === 3 && v > 200)), 'a map without a peak');\n"
    "  changes('an arrow key', () => board.dispatchEvent(\n"
    "    new KeyboardEvent('keydown', { key: 'ArrowDown', bubbles: true })));\n"
    "  say(text().startsWith('Patch in row 2, col 2,'), 'moved: ' + text());\n"
    "  changes('a step', () => { slider.value = 0; slider.dispatchEvent(new Event('input')); });\n"
    "  changes('direction', () => root.querySelector('input[type=checkbox]').click());\n"
    "  changes('a picture', () => root.querySelectorAll('.picks input')[1].click());\n"
    "};\n"
    "const zoom = async () => {\n"
    "  const picture = document.querySelector('.card img.zoom');\n"
    "  const large = () => document.querySelector('dialog[open] img');\n"
    "  picture.click();\n"
    "  say(large() && large().src === picture.src, 'not enlarged');\n"
    "  say(large().getBoundingClientRect().width > 200, 'not large');\n"
    "  document.querySelector('dialog').dispatchEvent(\n"
    "    new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }));\n"
    "  say(large().src !== picture.src, 'no next picture');\n"
    "  const dialog = document.querySelector('dialog');\n" /* next, what Escape does */
    "  (dialog.requestClose || dialog.close).call(dialog);\n"
    "  await new Promise(done => setTimeout(done, 50));\n"
    "  say(!document.querySelector('dialog'), 'stays open');\n"
    "  picture.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));\n"
    "  say(large(), 'Enter does not enlarge');\n"
    "  large().click();\n"
    "};\n"
    "</script>\n";

static void train(void **state, const char *name, const char *options) {
    run_ok(state,
           "image train shapes:128:1:16x16x3 -q --channels 3 --size 16 --dim 16 --heads 3 "
           "--head-dim 8 --memories 150 --steps 5 --occlude 6 --keep 1 --batch 16 --warmup 0 "
           "--epochs 2 --threads 1 -o %s %s",
           name, options);
}

/* The page on a model, looked at on a phone and on a desk. */
static void look_at(void **state, const char *model) {
    static const int width[] = {320, 390, 1600};
    run_ok(state, "image report %s shapes:20:1:16x16x3 -q --shown 2 -o page.html", model);
    static const char *const script[] = {check_attention, check, NULL};
    browser_open(state, "page.html");
    browser_add(state, "page.html", "check.html", script);
    for (int i = 0; i < 3; i++) browser_judge(state, width[i]);
}

TEST(reports_work_in_a_browser) {
    if (!browser_there()) skip();
    char name[120] = "";
    memset(name, 'n', 100); /* a long name must not widen the page */
    strcat(name, ".safetensors");
    train(state, "m.safetensors", "");
    train(state, name, "--cls");
    look_at(state, "m.safetensors");
    look_at(state, name);
}

/* Blocks that no report has yet: a board by step, a network; one that the viewer does not know. */
TEST(other_blocks_are_drawn) {
    static const char make[] =
        "python3 - '" BASIN_SOURCE "/share/basin/viewer.html' page.html <<'END'\n"
        "import json, sys\n"
        "frame = lambda t: {'step': t, 'digits': [t] * 81, 'certainty': [0.5] * 81,\n"
        "    'wrong': [1] * 81, 'energy': -t}\n"
        "blocks = [{'type': 'board', 'given': [5] + [0] * 80, 'frames': [frame(1), frame(2)]},\n"
        "    {'type': 'network', 'title': 'n', 'nodes': [{'name': '<b>', 'value': 0.9},\n"
        "    {'name': 'b', 'value': 0.1}, {'name': 'c', 'value': 0.5}],\n"
        "    'edges': [[0, 1, 1], [1, 2, 0.1]]}, {'type': 'new'}]\n"
        "text = json.dumps({'title': 't', 'sections': [{'id': 's', 'title': 's',\n"
        "    'blocks': blocks}]}).replace('<', '\\\\u003c')\n"
        "page = open(sys.argv[1]).read().replace('\\nnull\\n', '\\n' + text + '\\n', 1)\n"
        "open(sys.argv[2], 'w').write(page)\n"
        "END";
    static const char look[] =
        "<script>\n"
        "const wrong = [], say = (good, what) => { if (!good) wrong.push(what) };\n"
        "const cells = () => Array.from(document.querySelectorAll('.board span'));\n"
        "say(cells().length === 81 && cells()[1].textContent === '2', 'board');\n"
        "say(cells()[0].className === 'given' && cells()[1].className === 'wrong', 'marks');\n"
        "document.querySelector('.stepper button').dispatchEvent(\n"
        "  new KeyboardEvent('keydown', { key: 'ArrowLeft', bubbles: true }));\n"
        "say(cells()[1].textContent === '1', 'a step back');\n"
        "const nodes = Array.from(document.querySelectorAll('circle.node'));\n"
        "say(nodes.length === 3 && nodes.every(n => isFinite(n.getAttribute('cx'))), 'nodes');\n"
        "say(document.querySelector('svg text').textContent === '<b>', 'name');\n"
        "say(document.body.textContent.includes('type \"new\"'), 'unknown');\n"
        "parent.postMessage(wrong.join('; ') || 'all is well', '*');\n"
        "</script>\n";
    static const char *const script[] = {look, NULL};
    char line[4000];
    if (!browser_there()) skip();
    snprintf(line, sizeof line, "cd '%s' && %s", (const char *)*state, make);
    assert_int_equal(system(line), 0);
    browser_open(state, "page.html");
    browser_add(state, "page.html", "check.html", script);
    browser_judge(state, 390);
}

int main(void) { return tests_run(folder_new, browser_teardown); }
