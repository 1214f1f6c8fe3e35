/* What explorer/engine.c takes from Emscripten, for a compiler that only checks it. */
#define EMSCRIPTEN_KEEPALIVE __attribute__((used))
#define EM_JS(type, name, arguments, ...) type name arguments
