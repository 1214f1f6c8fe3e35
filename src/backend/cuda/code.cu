/* Kernels compiled at run time by NVRTC, kept by their text. All that a list of calls lacks are
 * compiled together, as one module. The driver's own functions are looked up when first needed, so
 * that the module loads, and says what is missing, on a machine without a driver. */
#include <cuda.h>
#include <dlfcn.h>
#include <new>
#include <nvrtc.h>
#include <string>
#include <unordered_map>
#include <vector>

#include "backend/cuda/inside.h"
#include "backend/cuda/prelude.h"

struct driver {
    decltype(&cuModuleLoadData) load;
    decltype(&cuModuleUnload) unload;
    decltype(&cuModuleGetFunction) function;
    decltype(&cuLaunchKernel) launch;
};

struct basin_cuda_codes {
    driver cu;
    std::unordered_map<std::string, CUfunction> known;
    std::vector<std::string> wanted; /* while collecting */
    std::vector<CUmodule> module;
    bool collecting;
};

static void fail(basin_cuda *cuda, const char *what, const char *why) {
    if (cuda->error.status == BASIN_OK)
        basin_fail(&cuda->error, BASIN_IO, "backend cuda: %s: %.300s", what, why);
}

void basin_cuda_codes_new(basin_cuda *cuda) {
    basin_cuda_codes *codes = cuda->codes = new (std::nothrow) basin_cuda_codes();
    void *library = dlopen("libcuda.so.1", RTLD_NOW); /* stays: the runtime holds it, too */
    if (!codes || !library) {
        fail(cuda, "libcuda.so.1", codes ? "cannot be opened" : "no memory");
        return;
    }
    codes->cu.load = (decltype(&cuModuleLoadData))dlsym(library, "cuModuleLoadData");
    codes->cu.unload = (decltype(&cuModuleUnload))dlsym(library, "cuModuleUnload");
    codes->cu.function = (decltype(&cuModuleGetFunction))dlsym(library, "cuModuleGetFunction");
    codes->cu.launch = (decltype(&cuLaunchKernel))dlsym(library, "cuLaunchKernel");
    if (!codes->cu.load || !codes->cu.unload || !codes->cu.function || !codes->cu.launch)
        fail(cuda, "libcuda.so.1", "lacks functions that compiled programs need");
}

void basin_cuda_codes_free(basin_cuda *cuda) {
    if (!cuda->codes) return;
    for (CUmodule module : cuda->codes->module) cuda->codes->cu.unload(module);
    delete cuda->codes;
    cuda->codes = NULL;
}

bool basin_cuda_codes_collecting(const basin_cuda *cuda) { return cuda->codes->collecting; }
void basin_cuda_codes_collect(basin_cuda *cuda) { cuda->codes->collecting = true; }

/* The image for this device; empty where it does not compile. */
static std::vector<char> compile(basin_cuda *cuda, const std::string &source) {
    nvrtcProgram program;
    std::vector<char> image;
    int major = 9, minor = 0;
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, cuda->device);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, cuda->device);
    std::string arch = "--gpu-architecture=sm_" + std::to_string(major) + std::to_string(minor);
    const char *options[] = {arch.c_str(), "--std=c++17", "--disable-warnings"};
    nvrtcResult code = nvrtcCreateProgram(&program, source.c_str(), "basin.cu", 0, NULL, NULL);
    if (code != NVRTC_SUCCESS) {
        fail(cuda, "nvrtcCreateProgram", nvrtcGetErrorString(code));
        return image;
    }
    code = nvrtcCompileProgram(program, 3, options);
    size_t bytes = 0;
    if (code != NVRTC_SUCCESS) {
        std::string log;
        if (nvrtcGetProgramLogSize(program, &bytes) == NVRTC_SUCCESS && bytes > 1) {
            log.resize(bytes);
            nvrtcGetProgramLog(program, &log[0]);
        }
        fail(cuda, nvrtcGetErrorString(code), log.c_str());
    } else if (nvrtcGetCUBINSize(program, &bytes) == NVRTC_SUCCESS) {
        image.resize(bytes);
        nvrtcGetCUBIN(program, image.data());
    }
    nvrtcDestroyProgram(&program);
    return image;
}

/* A text is the body of a kernel over `const basin_args p` that knows which `block` of how many
 * `blocks` it is; behind BASIN_CUDA_FOR_MANY, over each p of a basin_many. */
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

void basin_cuda_codes_compile(basin_cuda *cuda) {
    basin_cuda_codes *codes = cuda->codes;
    std::vector<std::string> wanted;
    wanted.swap(codes->wanted);
    codes->collecting = false;
    if (wanted.empty() || cuda->error.status != BASIN_OK) return;
    std::string source = BASIN_CUDA_PRELUDE;
    for (size_t i = 0; i < wanted.size(); i++) source += kernel_text(wanted[i], i);
    std::vector<char> image = compile(cuda, source);
    CUmodule module;
    if (image.empty()) {
        fail(cuda, "a pointwise program", "could not be compiled");
        return;
    }
    if (codes->cu.load(&module, image.data()) != CUDA_SUCCESS) {
        fail(cuda, "cuModuleLoadData", "refuses a compiled program");
        return;
    }
    codes->module.push_back(module);
    for (size_t i = 0; i < wanted.size(); i++) {
        CUfunction function;
        std::string name = "program" + std::to_string(i);
        if (codes->cu.function(&function, module, name.c_str()) == CUDA_SUCCESS)
            codes->known[wanted[i]] = function;
        else
            fail(cuda, "cuModuleGetFunction", name.c_str());
    }
}

CUfunction basin_cuda_code_find(basin_cuda *cuda, const char *text) {
    basin_cuda_codes *codes = cuda->codes;
    auto found = codes->known.find(text);
    if (found != codes->known.end()) return codes->collecting ? NULL : found->second;
    if (codes->collecting) {
        for (const std::string &other : codes->wanted)
            if (other == text) return NULL;
        codes->wanted.push_back(text);
    } else
        fail(cuda, "a pointwise program", "was not compiled before it ran");
    return NULL;
}

void basin_cuda_code_launch(basin_cuda *cuda, CUfunction function, unsigned blocks,
                            unsigned threads, void *arguments) {
    void *list[] = {arguments};
    CUresult code = cuda->codes->cu.launch(function, blocks, 1, 1, threads, 1, 1, 0,
                                           (CUstream)cuda->stream, list, NULL);
    if (code != CUDA_SUCCESS)
        fail(cuda, "cuLaunchKernel", ("error " + std::to_string((int)code)).c_str());
}
