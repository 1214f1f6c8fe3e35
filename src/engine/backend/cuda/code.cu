/* Kernels compiled at run time by NVRTC, kept by their text. All that a list of calls lacks are
 * compiled together, as one module. Backends that were opened beside one another share them: what
 * one compiles, the others wait for and find. The driver's own functions are looked up when first
 * needed, so that the module loads, and says what is missing, on a machine without a driver. */
#include <cuda.h>
#include <dlfcn.h>
#include <memory>
#include <mutex>
#include <new>
#include <nvrtc.h>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/backend/cuda/inside.h"
#include "engine/backend/cuda/prelude.h"

struct driver {
    decltype(&cuModuleLoadData) load;
    decltype(&cuModuleUnload) unload;
    decltype(&cuModuleGetFunction) function;
    decltype(&cuLaunchKernel) launch;
};

/* What backends share; all but `cu` is under the lock, which is also the gate of inside.h. */
struct shelf {
    driver cu;
    std::recursive_mutex lock;
    std::unordered_map<std::string, CUfunction> known;
    std::unordered_set<std::string> tried; /* texts that compile, and were not loaded */
    std::vector<CUmodule> module;
    ~shelf() {
        for (CUmodule m : module) cu.unload(m);
    }
};

struct basin_cuda_codes {
    std::shared_ptr<shelf> common;
    std::vector<std::string> requested; /* while collecting */
    bool collecting;
};

struct basin_cuda_gate::inside {
    std::shared_ptr<shelf> common; /* outlives the lock: the last backend may close in there */
    std::unique_lock<std::recursive_mutex> lock;
};

basin_cuda_gate::basin_cuda_gate(const basin_cuda *cuda) : held(NULL) {
    if (!cuda || !cuda->codes) return;
    held = new (std::nothrow) inside();
    if (!held) return;
    held->common = cuda->codes->common;
    held->lock = std::unique_lock<std::recursive_mutex>(held->common->lock);
}

basin_cuda_gate::~basin_cuda_gate() {
    if (held) held->lock.unlock();
    delete held;
}

static void fail(basin_cuda *cuda, const char *what, const char *why) {
    if (cuda->error.status == BASIN_OK)
        basin_fail(&cuda->error, BASIN_IO, "backend cuda: %s: %.300s", what, why);
}

static void find_driver(basin_cuda *cuda, driver *cu) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW); /* stays open: the runtime also holds it */
    if (!library) {
        fail(cuda, "libcuda.so.1", "cannot be opened");
        return;
    }
    cu->load = (decltype(&cuModuleLoadData))dlsym(library, "cuModuleLoadData");
    cu->unload = (decltype(&cuModuleUnload))dlsym(library, "cuModuleUnload");
    cu->function = (decltype(&cuModuleGetFunction))dlsym(library, "cuModuleGetFunction");
    cu->launch = (decltype(&cuLaunchKernel))dlsym(library, "cuLaunchKernel");
    if (!cu->load || !cu->unload || !cu->function || !cu->launch)
        fail(cuda, "libcuda.so.1", "lacks functions that compiled programs need");
}

void basin_cuda_codes_new(basin_cuda *cuda, const basin_cuda *beside) {
    try {
        std::unique_ptr<basin_cuda_codes> codes(new basin_cuda_codes());
        if (beside)
            codes->common = beside->codes->common;
        else
            codes->common = std::make_shared<shelf>();
        if (!beside) find_driver(cuda, &codes->common->cu);
        cuda->codes = codes.release();
    } catch (const std::bad_alloc &) {
        fail(cuda, "compiled programs", "out of memory");
    }
}

void basin_cuda_codes_free(basin_cuda *cuda) {
    delete cuda->codes;
    cuda->codes = NULL;
}

bool basin_cuda_codes_collecting(const basin_cuda *cuda) { return cuda->codes->collecting; }
void basin_cuda_codes_collect(basin_cuda *cuda) { cuda->codes->collecting = true; }

static std::string log_of(nvrtcProgram program, nvrtcResult code) {
    size_t bytes = 0;
    std::string log;
    if (nvrtcGetProgramLogSize(program, &bytes) == NVRTC_SUCCESS && bytes > 1) {
        log.resize(bytes);
        nvrtcGetProgramLog(program, &log[0]);
    }
    return log.empty() ? nvrtcGetErrorString(code) : log.c_str();
}

/* The image for this device; empty where it does not compile: `log` says why. */
static std::vector<char> compile(std::string *log, const basin_cuda *cuda,
                                 const std::string &source) {
    nvrtcProgram program;
    std::vector<char> image;
    int major = 9, minor = 0;
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, cuda->device);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, cuda->device);
    std::string arch = "--gpu-architecture=sm_" + std::to_string(major) + std::to_string(minor);
    const char *options[] = {arch.c_str(), "--std=c++17", "--disable-warnings"};
    nvrtcResult code = nvrtcCreateProgram(&program, source.c_str(), "basin.cu", 0, NULL, NULL);
    if (code != NVRTC_SUCCESS) {
        *log = nvrtcGetErrorString(code);
        return image;
    }
    code = nvrtcCompileProgram(program, 3, options);
    size_t bytes = 0;
    if (code != NVRTC_SUCCESS)
        *log = log_of(program, code);
    else if (nvrtcGetCUBINSize(program, &bytes) == NVRTC_SUCCESS) {
        image.resize(bytes);
        nvrtcGetCUBIN(program, image.data());
    }
    nvrtcDestroyProgram(&program);
    return image;
}

/* A text is the body of a kernel over `const basin_args p` that knows which `block` of how many
 * `blocks` it is; after BASIN_CUDA_FOR_MANY, over each p of a basin_many. */
static std::string kernel_text(const std::string &text, size_t number) {
    const std::string mark = BASIN_CUDA_FOR_MANY;
    std::string head =
        "extern \"C\" __global__ void __launch_bounds__(256) program" + std::to_string(number);
    if (text.compare(0, mark.size(), mark) != 0)
        return head +
               "(const basin_args p) {\nconst unsigned block = blockIdx.x, blocks = "
               "gridDim.x;\n" +
               text + "}\n";
    return head +
           "(const __grid_constant__ basin_many m) {\nint k = 0;\n"
           "while (blockIdx.x >= m.first[k + 1]) k++;\nconst basin_args &p = m.p[k];\n"
           "const unsigned block = blockIdx.x - m.first[k], blocks = m.first[k + 1] - "
           "m.first[k];\n" +
           text.substr(mark.size()) + "}\n";
}

/* Those of the texts that no backend has compiled. */
static std::vector<std::string> unknown(const shelf *all, const std::vector<std::string> &texts) {
    std::vector<std::string> lacking;
    for (const std::string &text : texts)
        if (all->known.find(text) == all->known.end()) lacking.push_back(text);
    return lacking;
}

static void compile_all(basin_cuda *cuda, shelf *all, const std::vector<std::string> &texts) {
    std::string source = BASIN_CUDA_PRELUDE;
    for (size_t i = 0; i < texts.size(); i++) source += kernel_text(texts[i], i);
    std::string log = "could not be compiled";
    std::vector<char> image = compile(&log, cuda, source);
    CUmodule module;
    if (image.empty()) {
        fail(cuda, "a pointwise program", log.c_str());
        return;
    }
    if (all->cu.load(&module, image.data()) != CUDA_SUCCESS) {
        fail(cuda, "cuModuleLoadData", "refuses a compiled program");
        return;
    }
    all->module.push_back(module);
    for (size_t i = 0; i < texts.size(); i++) {
        CUfunction function;
        std::string name = "program" + std::to_string(i);
        if (all->cu.function(&function, module, name.c_str()) == CUDA_SUCCESS)
            all->known[texts[i]] = function;
        else
            fail(cuda, "cuModuleGetFunction", name.c_str());
    }
}

void basin_cuda_codes_compile(basin_cuda *cuda) {
    basin_cuda_codes *codes = cuda->codes;
    std::vector<std::string> requested;
    requested.swap(codes->requested);
    codes->collecting = false;
    if (requested.empty() || cuda->error.status != BASIN_OK) return;
    std::lock_guard<std::recursive_mutex> guard(codes->common->lock);
    std::vector<std::string> lacking = unknown(codes->common.get(), requested);
    if (!lacking.empty()) compile_all(cuda, codes->common.get(), lacking);
}

std::string basin_cuda_code_try(basin_cuda *cuda, const std::string &text) {
    std::string log = "nothing was made of it";
    shelf *all = cuda->codes->common.get();
    std::lock_guard<std::recursive_mutex> guard(all->lock);
    if (all->tried.count(text) ||
        !compile(&log, cuda, BASIN_CUDA_PRELUDE + kernel_text(text, 0)).empty()) {
        all->tried.insert(text);
        log.clear();
    }
    return log;
}

CUfunction basin_cuda_code_find(basin_cuda *cuda, const char *text) {
    basin_cuda_codes *codes = cuda->codes;
    std::lock_guard<std::recursive_mutex> guard(codes->common->lock);
    auto found = codes->common->known.find(text);
    if (found != codes->common->known.end()) return codes->collecting ? NULL : found->second;
    if (codes->collecting) {
        for (const std::string &other : codes->requested)
            if (other == text) return NULL;
        codes->requested.push_back(text);
    } else
        fail(cuda, "a pointwise program", "was not compiled before it ran");
    return NULL;
}

void basin_cuda_code_launch(basin_cuda *cuda, CUfunction function, unsigned blocks,
                            unsigned threads, void *arguments) {
    void *list[] = {arguments};
    CUresult code = cuda->codes->common->cu.launch(function, blocks, 1, 1, threads, 1, 1, 0,
                                                   (CUstream)cuda->stream, list, NULL);
    if (code != CUDA_SUCCESS)
        fail(cuda, "cuLaunchKernel", ("error " + std::to_string((int)code)).c_str());
}

/* Custom operations: each becomes a function inside the programs that call it, which are kept by
 * their text, so that sources that differ never share a kernel. When a plan is made, each source is
 * first compiled by itself, so that its errors are reported then and under its name. */

/* A name as it stands in a text in quotes. */
static std::string quotable(const char *name) {
    std::string text = name;
    for (char &c : text)
        if (c == '"' || c == '\\' || (unsigned char)c < ' ') c = '_';
    return text;
}

std::string basin_cuda_own_function(const basin_custom_code *code, int number) {
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

/* A kernel that holds only this source; a missing return value or an operand index out of range is
 * an error. */
static std::string trial(const basin_custom_code *code) {
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

static basin_status check(basin_backend *backend, const basin_custom_code *code,
                          basin_error *error) {
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

const basin_custom_table basin_cuda_own = {check};
