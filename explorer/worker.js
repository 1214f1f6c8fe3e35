// Runs the engine beside the page, so that the page answers while it computes. engine.js, which
// emscripten wrote, stands before this in one file; the page sends the module first.
let engine, started;

class Refused extends Error {
  constructor(message, place) {
    super(message);
    this.place = place;
  }
}

// Memory of the module for one call: everything is freed at its end.
class Memory {
  constructor() {
    this.blocks = [];
  }
  take(bytes) {
    const at = engine._malloc(Math.max(bytes, 8));
    if (!at) throw new Refused("out of memory", -1);
    this.blocks.push(at);
    return at;
  }
  text(text) {
    const bytes = engine.lengthBytesUTF8(text) + 1;
    const at = this.take(bytes);
    engine.stringToUTF8(text, at, bytes);
    return at;
  }
  floats(values) {
    const at = this.take(4 * values.length);
    engine.HEAPF32.set(values, at / 4);
    return at;
  }
  integers(values) {
    const at = this.take(4 * values.length);
    engine.HEAP32.set(values, at / 4);
    return at;
  }
  readFloats(at, count) {
    return engine.HEAPF32.slice(at / 4, at / 4 + count);
  }
  readDoubles(at, count) {
    return engine.HEAPF64.slice(at / 8, at / 8 + count);
  }
  readIntegers(at, count) {
    return engine.HEAP32.slice(at / 4, at / 4 + count);
  }
  free() {
    for (const at of this.blocks) engine._free(at);
  }
}

function check(failed) {
  if (failed) throw new Refused(engine.UTF8ToString(engine._explorer_message()), engine._explorer_place());
}

/** A stream of what the page holds as base64 of gzip. */
function unpacked(text) {
  const packed = atob(text), bytes = new Uint8Array(packed.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = packed.charCodeAt(i);
  return new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
}

/** A file for the engine: bytes, or what the page holds. */
async function place(path, file) {
  const bytes = typeof file === "string" ? await new Response(unpacked(file)).arrayBuffer() : file;
  engine.FS.writeFile(path, new Uint8Array(bytes));
}

/** How many numbers the tensors of a safetensors file have. */
function weights(bytes) {
  const size = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true)), { __metadata__, ...tensors } = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + size)));
  return Object.values(tensors).reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1), 0);
}

// The engine calls it in every step: the page shows how far it is, and can stop this worker.
let said = 0;
self.explorerStep = (step, steps) => {
  if (performance.now() - said < 80) return;
  said = performance.now();
  self.postMessage({ step, steps });
};

const calls = {
  // The module is compiled while it is unpacked.
  async start(m, wasm) {
    const compiled = WebAssembly.compileStreaming(new Response(unpacked(wasm), { headers: { "Content-Type": "application/wasm" } }));
    engine = await new Promise((resolve, reject) => {
      const instantiateWasm = (imports, done) => {
        compiled.then(async (module) => done(await WebAssembly.instantiate(module, imports), module)).catch(reject);
        return {};
      };
      basinModule({ instantiateWasm }).then(resolve, reject);
    });
    return true;
  },

  // A text of the page's own data.
  async text(m, packed) {
    return new Response(unpacked(packed)).text();
  },

  // Energies, and forces, of states side by side in x.
  energies(m, e) {
    const count = e.x.length / e.dim;
    const energy = m.take(4 * count);
    const force = e.forces ? m.take(4 * e.x.length) : 0;
    check(
      engine._explorer_energies(
        m.text(e.text), energy, force, m.floats(e.x), count, e.dim, e.together ? 1 : 0,
        m.floats(e.patterns), e.patterns.length / e.dim, e.beta,
      ),
    );
    return { energy: m.readFloats(energy, e.together ? 1 : count), force: force && m.readFloats(force, e.x.length) };
  },

  // States at every step, and their energies.
  descend(m, e) {
    const count = e.x.length / e.dim;
    const path = m.take(4 * e.x.length * (e.steps + 1));
    const energy = m.take(8 * count * (e.steps + 1));
    engine.HEAPF32.set(e.x, path / 4);
    check(
      engine._explorer_descend(
        m.text(e.text), path, energy, count, e.dim, e.together ? 1 : 0, m.floats(e.patterns),
        e.patterns.length / e.dim, e.beta, e.steps, e.alpha, e.reach ?? 0.2, e.noise, e.seed,
      ),
    );
    const samples = e.together ? 1 : count;
    return {
      x: m.readFloats(path, e.x.length * (e.steps + 1)),
      energy: m.readDoubles(energy, samples * (e.steps + 1)),
      samples,
    };
  },

  // A hole at every step, and the pattern nearest to each patch in the end; `h` as explorer_hole_descend takes it.
  descendHole(m, h) {
    const missing = h.x.length / 3, path = m.take(4 * h.x.length * (h.steps + 1)), energy = m.take(8 * (h.steps + 1)), best = m.take(4 * h.trust.length);
    engine.HEAPF32.set(h.x, path / 4);
    check(
      engine._explorer_hole_descend(
        path, energy, best, missing, m.floats(h.known), h.known.length / 3, m.integers(h.pixel), h.trust.length,
        m.floats(h.stored), m.floats(h.half), h.half.length, m.floats(h.trust), m.floats(h.share), h.beta, h.steps,
      ),
    );
    return { x: m.readFloats(path, h.x.length * (h.steps + 1)), energy: m.readDoubles(energy, h.steps + 1), best: m.readIntegers(best, h.trust.length) };
  },

  async openPicture(m, file, c) {
    await place("/picture", file);
    const patch = c.patch * c.patch * c.channels;
    const tokens = (c.size / c.patch) ** 2;
    const failed = engine._explorer_picture_open(m.text("/picture"), tokens, patch, c.channels, c.dim, c.heads, c.head_dim, c.memories);
    engine.FS.unlink("/picture");
    check(failed);
    calls.sizes = { tokens, patch, heads: c.heads, memories: c.memories };
    const tiles = m.take(4 * c.memories * patch);
    check(engine._explorer_picture_memories(tiles));
    return m.readFloats(tiles, c.memories * patch);
  },

  // Every step: patches, and the energies of attention and memories.
  descendPicture(m, patches, replaced, how) {
    const { tokens, patch } = calls.sizes;
    const energy = m.take(16 * (how.steps + 1));
    const decoded = m.take(4 * tokens * patch);
    const begin = performance.now();
    check(
      engine._explorer_picture_descend(
        energy, m.floats(patches), m.floats(replaced), how.steps, how.alpha, how.gamma, how.terms,
      ),
    );
    const milliseconds = performance.now() - begin;
    const frames = [];
    for (let step = 0; step <= how.steps; step++) {
      check(engine._explorer_picture_decode(decoded, step));
      frames.push(m.readFloats(decoded, tokens * patch));
    }
    return { energy: m.readDoubles(energy, 2 * (how.steps + 1)), frames, milliseconds };
  },

  lookPicture(m, step) {
    const { tokens, heads, memories } = calls.sizes;
    const share = m.take(4 * heads * tokens * tokens);
    const active = m.take(4 * tokens * memories);
    check(engine._explorer_picture_look(share, active, step));
    return { share: m.readFloats(share, heads * tokens * tokens), active: m.readFloats(active, tokens * memories) };
  },

  async openSudoku(m, file) {
    await place("/sudoku", file);
    check(engine._explorer_sudoku_open(m.text("/sudoku")));
    return weights(engine.FS.readFile("/sudoku"));
  },

  makeSudoku(m, seed, hard) {
    const cells = m.take(4 * 81);
    engine._explorer_sudoku_make(cells, seed, hard ? 1 : 0);
    return m.readIntegers(cells, 81);
  },

  descendSudoku(m, cells, steps) {
    const likelihood = m.take(4 * 729 * (steps + 1));
    const energy = m.take(8 * (steps + 1));
    const singles = m.take(4 * 81);
    const solution = m.take(4 * 81);
    const given = m.integers(cells);
    check(engine._explorer_sudoku_descend(likelihood, energy, given, steps));
    const solutions = engine._explorer_sudoku_solve(singles, solution, given);
    return {
      likelihood: m.readFloats(likelihood, 729 * (steps + 1)),
      energy: m.readDoubles(energy, steps + 1),
      singles: m.readIntegers(singles, 81),
      solution: m.readIntegers(solution, 81),
      solutions,
    };
  },

  async openAccounts(m, file) {
    await place("/accounts", file);
    check(engine._explorer_accounts_open(m.text("/accounts")));
    return engine._explorer_accounts_threshold();
  },

  scoreAccounts(m, network, node) {
    const nodes = network.rows.length;
    const columns = network.columns.length;
    const probability = m.take(8 * nodes);
    const neighbour = m.take(8 * nodes);
    const feature = m.take(8 * (columns + 1));
    const about = m.take(8 * 4);
    check(
      engine._explorer_accounts_score(
        probability, neighbour, feature, about, m.floats(network.rows.flat()), nodes,
        m.text(network.columns.join("\n")), columns, m.integers(network.edges.flat()), network.edges.length, node,
      ),
    );
    const why = {
      neighbour: m.readFloats(neighbour, 2 * nodes),
      feature: m.readFloats(feature, 2 * (columns + 1)),
      about: m.readDoubles(about, 4),
    };
    return { probability: m.readDoubles(probability, nodes), why: node < 0 ? null : why };
  },
};

// One call after the other, in the order in which they came.
self.onmessage = ({ data: { id, name, args } }) => {
  started = Promise.resolve(started).then(async () => {
    const memory = new Memory();
    try {
      const value = await calls[name](memory, ...args);
      self.postMessage({ id, value });
    } catch (error) {
      self.postMessage({ id, error: { message: String(error.message || error), place: error.place ?? -1 } });
    } finally {
      if (engine) memory.free();
    }
  });
};
