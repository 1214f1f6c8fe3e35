/* Operations of the caller's own: each becomes a function inside the programs that call it, which
 * are kept by their text, so that sources that differ never share a kernel. A source is compiled
 * alone when a plan is made, so that what is wrong with it is told there, by its own name. */
#include <new>
#include <string>

#include "backend/cuda/inside.h"

/* A name as it stands in a text in quotes. */
static std::string quotable(const char *name) {
    std::string text = name;
    for (char &c : text)
        if (c == '"' || c == '\\' || (unsigned char)c < ' ') c = '_';
    return text;
}

std::string basin_cuda_own_function(const basin_own_code *code, int number) {
    return "const auto own" + std::to_string(number) +
           " = [](const float (&x)[3]) -> float {\n#line 1 \"" + quotable(code->name) + "\"\n" +
           code->source + "\n};\n#line 1 \"basin.cu\"\n";
}

/* A source that reads an operand too many gets NaN. */
std::string basin_cuda_own_value(const basin_instruction *s, int number) {
    const uint16_t from[BASIN_OWN_INS] = {s->a, s->b, s->c};
    std::string text = "{\nconst float x[3] = {";
    for (int i = 0; i < BASIN_OWN_INS; i++)
        text += (i ? ", " : "") + (i < s->own.operands ? "r" + std::to_string(from[i])
                                                       : std::string("__int_as_float(0x7fffffff)"));
    return text + "};\nr" + std::to_string(s->to) + " = own" + std::to_string(number) + "(x);\n}\n";
}

/* A kernel of the source alone. What would only be a warning, no value returned or an operand far
 * outside, is an error. */
static std::string trial(const basin_own_code *code) {
    basin_instruction call = {};
    call.to = 0, call.a = 1, call.b = 2, call.c = 3, call.own = *code;
    return "#pragma nv_diag_error 175, 940, 1056\nfloat r0, r1 = p.vectors, r2 = r1, r3 = r1;\n" +
           basin_cuda_own_function(code, 0) + basin_cuda_own_value(&call, 0) +
           "*(float *)p.out[0] = r0;\n";
}

/* The first error of a compiler's log, "FILE(LINE): error: what" as "line LINE: what". */
static std::string first_error(const std::string &log) {
    const std::string mark = "): error: ";
    size_t at = log.find(mark), open = log.rfind('(', at);
    if (at == std::string::npos || open == std::string::npos) return log.substr(0, log.find('\n'));
    std::string what = log.substr(at + mark.size());
    return "line " + log.substr(open + 1, at - open - 1) + ": " + what.substr(0, what.find('\n'));
}

static basin_status check(basin_backend *backend, const basin_own_code *code, basin_error *error) {
    try {
        const std::string log = basin_cuda_code_try((basin_cuda *)backend, trial(code));
        if (log.empty()) return BASIN_OK;
        return basin_fail(error, BASIN_BAD_VALUE,
                          "backend cuda: the source of '%s' does not compile: %.300s", code->name,
                          first_error(log).c_str());
    } catch (const std::bad_alloc &) {
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for the source of '%s'",
                          code->name);
    }
}

const basin_own_table basin_cuda_own = {check};
