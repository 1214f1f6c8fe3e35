/* basin info: what is in a tensor file: configuration (metadata), a line for each tensor, totals.
 * basin --version: what this build is made of and what it found on this machine. */
#include <cjson/cJSON.h>
#include <zlib.h>

#include "base/file.h"
#include "base/info.h"
#include "base/library.h"
#include "base/parallel.h"
#include "basin/version.h"
#include "program/cli.h"
#include "tasks/common/digest.h"

typedef struct options {
    BASIN_ARGS;
    bool check;
} options;
#define OPTIONS options

static const basin_option table[] = {
    BASIN_FLAG(check, "check"),
    BASIN_OPTION_JSON,
    BASIN_OPTIONS_END,
};

static void put_tensor(basin_record *r, const char *name, const basin_tensor *tensor) {
    basin_record_row(r);
    basin_record_fields(r, "name|tensor=%s;dtype|type=%s", name, basin_dtype_name(tensor->dtype));
    basin_record_shape(r, "shape", tensor->shape);
    basin_record_integer(r, "count", basin_shape_count(tensor->shape));
}

/* In text values that are too long to read are cut. */
static void put_configuration(basin_record *r, const basin_bundle *bundle) {
    enum { LONG_VALUE = 2000, SHOWN = 200 };
    bool text = basin_record_is_text(r);
    basin_record_section(r, "configuration");
    if (text && basin_bundle_meta_at(bundle, 0, NULL)) basin_record_note(r, "configuration:");
    basin_record_data_keys(r, true);
    const char *key, *value;
    for (size_t i = 0; (key = basin_bundle_meta_at(bundle, i, &value)); i++) {
        if (text && !strncmp(key, "trained.", 8) && strchr(value, '\n')) continue; /* above */
        if (text && strlen(value) > LONG_VALUE)
            basin_record_format(r, key, "%.*s ... (%zu bytes; --json has all)", SHOWN, value,
                                strlen(value));
        else
            basin_record_text(r, key, value);
    }
    basin_record_data_keys(r, false);
    basin_record_end(r);
}

/* The id by which scores, reports and logs name a model: the first digits of its file's digest. */
static void put_id(basin_record *r, const basin_bundle *bundle) {
    char text[BASIN_SHA256_TEXT];
    if (!basin_bundle_meta(bundle, "basin.model")) return;
    if (basin_file_sha256(text, basin_bundle_path(bundle), NULL)) return;
    basin_record_format(r, "id", "%.16s", text);
    basin_record_text(r, "sha256", text);
}

/* The training data, how they were cut, and the models of the initial weights: lines of words, the
 * last of which may have blanks. */
static void put_training(basin_record *r, const basin_bundle *bundle) {
    static const struct {
        const char *key, *name, *title, *column[5];
    } lists[] = {{"trained.files", "files", "trained on:", {"sha256", "path"}},
                 {"trained.cuts", "cuts", "with:", {"cut", "value"}},
                 {"trained.command", "command", "made by:", {"what", "value"}},
                 {"trained.parents",
                  "parents",
                  "initial weights, latest parent first:",
                  {"id", "date", "version", "data"}}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const char *at = basin_bundle_meta(bundle, lists[i].key);
        if (!at) continue;
        basin_record_table(r, lists[i].name, lists[i].title);
        for (; *at; at += *at == '\n') {
            basin_record_row(r);
            for (const char *const *column = lists[i].column; *column; column++) {
                int length = (int)strcspn(at, column[1] ? " \n" : "\n");
                basin_record_format(r, *column, "%.*s", length, at);
                at += length;
                at += strspn(at, " ");
            }
        }
        basin_record_end(r);
    }
}

/* Files that training, conversion or cutting wrote have them; others need none. */
static void put_digests(basin_record *r, const basin_bundle *bundle, bool checked) {
    bool ours = basin_bundle_meta(bundle, "basin.model") || basin_bundle_meta(bundle, "format");
    if (basin_bundle_has_digests(bundle))
        basin_record_text(r, "digests", checked ? "as computed now" : "there (--check compares)");
    else if (ours || checked)
        basin_record_text(r, "digests", "absent: damage cannot be found");
}

static void put_file(basin_record *r, const basin_bundle *bundle, bool checked) {
    int64_t numbers = 0, bytes = 0;
    size_t tensors = basin_bundle_count(bundle);
    for (size_t i = 0; i < tensors; i++) {
        numbers += basin_shape_count(basin_bundle_at(bundle, i)->shape);
        bytes += (int64_t)basin_tensor_bytes(basin_bundle_at(bundle, i));
    }
    bool text = basin_record_is_text(r);
    if (!text) basin_record_row(r);
    basin_record_text(r, "file", basin_bundle_path(bundle));
    put_id(r, bundle);
    put_digests(r, bundle, checked);
    basin_record_fields(r, "|tensors=%lld;numbers=%lld;bytes=%lld", (long long)tensors,
                        (long long)numbers, (long long)bytes);
    put_training(r, bundle);
    put_configuration(r, bundle);
    basin_record_table(r, "tensors", NULL);
    for (size_t i = 0; i < tensors; i++)
        put_tensor(r, basin_bundle_name(bundle, i), basin_bundle_at(bundle, i));
    basin_record_end(r);
}

/* Files that cannot be read are reported, and the others printed. */
static basin_status run(void *context, basin_error *error) {
    options *o = context;
    basin_status status = BASIN_OK;
    basin_record *r = basin_record_open(stdout, o->json ? BASIN_FORM_JSON : BASIN_FORM_TEXT);
    if (!r) return basin_fail_memory(error, "a result");
    if (o->json) basin_record_table(r, "files", NULL);
    for (int i = 0; i < o->operands; i++) {
        basin_bundle *bundle;
        basin_status (*read)(basin_bundle **, const char *, basin_error *) =
            o->check ? basin_model_read : basin_bundle_read;
        if (read(&bundle, o->operand[i], error)) {
            basin_report(error);
            status = BASIN_REPORTED;
            continue;
        }
        if (i && !o->json) basin_record_note(r, "%s", "");
        put_file(r, bundle, o->check);
        basin_bundle_free(bundle);
        basin_note_gamma(&o->args, o->operand[i]);
    }
    if (o->json) basin_record_end(r);
    BASIN_TRY(basin_record_close(r, error));
    return status;
}

const basin_command basin_command_info = {BASIN_COMMAND("info", table), .run = run};

/* ---- version ---- */

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "unknown"
#endif

#if defined(__x86_64__)
#define PROCESSOR "x86-64"
#elif defined(__aarch64__)
#define PROCESSOR "arm64"
#else
#define PROCESSOR "unknown"
#endif

/* Opens no library, so that the page is printed at once. */
static void put_version(basin_record *r, const void *context) {
    (void)context;
    bool text = basin_record_is_text(r);
    basin_machine_info machine = basin_machine_info_now();
    bool cuda = machine.cuda_module && machine.cuda_driver;
    char set[32];
    basin_record_note(r, "basin %s", basin_version());
    basin_record_text(r, ".version", basin_version());
    basin_record_list(r, "backends");
    basin_record_text(r, NULL, "ref");
    basin_record_text(r, NULL, "cpu");
    if (cuda) basin_record_text(r, NULL, "cuda");
    if (text && !cuda && machine.cuda_module)
        basin_record_text(r, NULL, "(cuda lacks its driver, libcuda.so.1)");
    basin_record_end(r);
    basin_record_text(r, "processor", PROCESSOR);
    basin_record_list(r, "instruction_sets");
    for (const char *at = machine.instruction_sets; sscanf(at, "%31s", set) == 1;
         at += strspn(at, " ") + strlen(set))
        basin_record_text(r, NULL, set);
    if (machine.amx) basin_record_text(r, NULL, "amx");
    basin_record_end(r);
    basin_record_fields(r, "instruction_set|in use=%s;threads=%lld;compiler=%s",
                        machine.instruction_set, (long long)basin_thread_count(), COMPILER);
    basin_record_object(r, "libraries");
    basin_record_fields(r, "zlib=%s;cJSON=%s", zlibVersion(), cJSON_Version());
    basin_record_end(r);
    basin_record_note(r, "opened when needed:");
    basin_record_section(r, "opened_when_needed");
    for (int i = 0; basin_library_name(i); i++)
        if (text)
            basin_record_format(r, basin_library_name(i), "for %s%s", basin_library_purpose(i),
                                basin_library_present(i) ? "" : " (absent here)");
        else
            basin_record_flag(r, basin_library_name(i), basin_library_present(i));
    basin_record_end(r);
}

static basin_status run_version(void *context, basin_error *error) {
    basin_args *o = context;
    return basin_record_print(o->json, put_version, NULL, error);
}

static const basin_option version_table[] = {
    BASIN_OPTION_JSON,
    BASIN_OPTIONS_END,
};

const basin_command basin_command_version = {BASIN_COMMAND("--version", version_table),
                                             .run = run_version};
