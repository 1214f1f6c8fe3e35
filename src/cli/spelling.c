/* Misspelt and foreign names; see spelling.h. */
#include "cli/spelling.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *foreign, *ours;
} hints[] = {
    {"lr", "rate"},
    {"learning-rate", "rate"},
    {"min-lr", "rate-last"},
    {"batch-size", "batch"},
    {"bs", "batch"},
    {"epoch", "epochs"},
    {"num-epochs", "epochs"},
    {"max-epochs", "epochs"},
    {"warmup-epochs", "warmup"},
    {"weight-decay", "decay"},
    {"wd", "decay"},
    {"adam-beta2", "beta2"},
    {"grad-clip", "clip"},
    {"clip-grad", "clip"},
    {"max-grad-norm", "clip"},
    {"dropout-rate", "dropout"},
    {"early-stopping", "patience"},
    {"gradient-checkpointing", "recompute"},
    {"checkpointing", "recompute"},
    {"device", "backend"},
    {"gpu", "backend"},
    {"cuda", "backend"},
    {"cpu", "backend"},
    {"workers", "threads"},
    {"num-workers", "threads"},
    {"num-threads", "threads"},
    {"jobs", "threads"},
    {"n-jobs", "threads"},
    {"precision", "dtype"},
    {"amp", "dtype"},
    {"bf16", "dtype"},
    {"fp8", "dtype"},
    {"fp16", "dtype"},
    {"random-seed", "seed"},
    {"random-state", "seed"},
    {"d-model", "dim"},
    {"hidden-dim", "dim"},
    {"hidden-size", "dim"},
    {"embed-dim", "dim"},
    {"num-heads", "heads"},
    {"n-heads", "heads"},
    {"nhead", "heads"},
    {"depth", "blocks"},
    {"depth", "steps"},
    {"layers", "blocks"},
    {"layers", "steps"},
    {"num-layers", "blocks"},
    {"num-layers", "steps"},
    {"image-size", "size"},
    {"img-size", "size"},
    {"patch-size", "patch"},
    {"temperature", "beta"},
    {"out", "output"},
    {"out-dir", "output"},
    {"output-dir", "output"},
    {"save", "output"},
    {"dir", "output"},
    {"ckpt", "resume"},
    {"pretrained", "from"},
    {"val-split", "validation"},
    {"cfg", "config"},
    {"settings", "config"},
    {"silent", "quiet"},
    {"edge-type", "relation-column"},
    {"relation", "relation-column"},
};

const char *basin_option_hint(const char *foreign, int i) {
    for (size_t at = 0; at < sizeof hints / sizeof *hints; at++)
        if (!strcmp(hints[at].foreign, foreign) && i-- == 0) return hints[at].ours;
    return NULL;
}
