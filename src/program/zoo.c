/* basin zoo list, descend: published models, and whether their updates go down their energy. */
#include "program/cli.h"
#include "program/verify/specimen.h"
#include "tasks/common/digest.h"
#include "tasks/common/view/document.h"

typedef struct options {
    BASIN_ARGS;
    const char *page;
    int64_t seeds, steps;
    double scale;
} options;
#define OPTIONS options

#define SEEDS(needs_)                                                                              \
    BASIN_INTEGER(seeds, "seeds", "N", 1, 100000, .initial = BASIN_SPECIMEN_DRAWS, .needs = needs_)
#define STEPS(needs_)                                                                              \
    BASIN_INTEGER(steps, "steps", "T", 1, BASIN_SPECIMEN_STEPS, .initial = 20, .needs = needs_)

static basin_status find(const basin_zoo_model **model, const char *name, basin_error *error) {
    *model = basin_specimen_model(name);
    if (*model) return BASIN_OK;
    return basin_usage(error, "no model '%s' in the zoo", name);
}

/* ---- list ---- */

static const basin_option list_table[] = {
    SEEDS("OPERAND="),
    STEPS("OPERAND="),
    BASIN_OPTION_SEED_FOR("OPERAND="),
    BASIN_OPTION_JSON_FOR("OPERAND="),
    BASIN_OPTION_QUIET,
    BASIN_OPTIONS_END,
};

extern const char *const basin_zoo_page[]; /* the lines of docs/zoo.md */

/* The section of docs/zoo.md whose first line names the model, without its picture. */
static basin_status show_one(const char *typed, basin_error *error) {
    const basin_zoo_model *model;
    char name[80];
    const char *const *at = basin_zoo_page, *title = "";
    BASIN_TRY(find(&model, typed, error));
    snprintf(name, sizeof name, "`%s`", model->name);
    for (; *at && !(*title && strstr(*at, name)); at++)
        if (!strncmp(*at, "##", 2)) title = (*at)[2] == '#' ? *at + strlen("### ") : "";
    printf("%s\n", title);
    for (; *at && **at != '#' && **at != '!'; at++) fputs(*at, stdout);
    return BASIN_OK;
}

#define F(member, ...) BASIN_FIELD(basin_specimen_verdict, member, __VA_ARGS__)
static const basin_field verdict_fields[] = {
    F(steps, "steps"),
    F(rises, "rises"),
    F(small_rises, "small_rises"),
    F(rising_low, "rising_low|draws that rise from %", "%.1f"),
    F(rising_high, "rising_high|to %", "%.1f"),
    F(mean_cosine, "mean_cosine", "%.3f"),
    F(min_cosine, "least_cosine|min cosine", "%.3f"),
    F(skew, "skew", "%.3f"),
    F(skew_low, "skew_low|skew from", "%.3f"),
    F(skew_high, "skew_high|skew to", "%.3f"),
    F(step_skew, "step_skew", "%.3f"),
    {0}};

static void put_verdict(basin_record *r, const basin_zoo_model *model,
                        const basin_specimen_verdict *v) {
    basin_record_fields(r, "model=%s;reference=%s;descends=%s;gradient=%s", model->name,
                        model->reference, basin_specimen_answer(v), basin_specimen_gradient(v));
    basin_record_struct(r, verdict_fields, v);
}

static basin_status judge_all(basin_record *r, options *o, basin_error *error) {
    int count = 0;
    while (basin_zoo_at(count)) count++;
    basin_progress progress = basin_progress_begin("judging", count, o->quiet || o->json);
    basin_status status = BASIN_OK;
    for (int i = 0; i < count; i++) {
        const basin_zoo_model *at = basin_zoo_at(i);
        basin_specimen_verdict v;
        basin_progress_show(&progress, i, (const char *[]){at->name, NULL});
        status = basin_specimen_judge(&v, at, NULL, (int)o->seeds, (uint64_t)o->seed, (int)o->steps,
                                      error);
        if (status) break;
        basin_record_row(r);
        put_verdict(r, at, &v);
    }
    basin_progress_end(&progress);
    return status;
}

static basin_status run_list(void *context, basin_error *error) {
    options *o = context;
    if (o->operands) return show_one(o->operand[0], error);
    basin_record *r = basin_record_open(stdout, o->json ? BASIN_FORM_JSON : BASIN_FORM_TEXT);
    if (!r) return basin_fail_memory(error, "a result");
    basin_record_table(r, "models", NULL);
    basin_status status = judge_all(r, o, error);
    basin_record_end(r);
    basin_record_note(r, "rises: of the steps, and of twice as many a thousand times smaller; more "
                         "draws (--seeds) find rarer ones");
    basin_status closed = basin_record_close(r, status ? NULL : error);
    return status ? status : closed;
}

const basin_command basin_command_zoo_list = {BASIN_COMMAND("zoo list", list_table),
                                              .run = run_list};

/* ---- descend ---- */

static const basin_option descend_table[] = {
    STEPS(NULL),       BASIN_REAL(scale, "scale", "X", 1e-9, 1e9, .initial = 1),
    SEEDS(NULL),       BASIN_TEXT(page, 0, "page", "FILE", .writes = true),
    BASIN_OPTION_SEED, BASIN_OPTION_JSON,
    BASIN_OPTIONS_END,
};

typedef struct descent {
    options *o;
    const basin_zoo_model *model;
    basin_bundle *file;
    basin_specimen_run run;
    basin_specimen_verdict verdict;
} descent;

static basin_status draw(const descent *d, basin_error *error) {
    basin_plot_line line = {.name = d->model->name, .y = d->run.energy, .count = d->run.steps + 1};
    basin_plot plot = {.title = d->model->name, .y_label = "energy", .line = &line, .lines = 1};
    return basin_plot_write(d->o->page, &plot, error);
}

static void put_descent(basin_record *r, const void *context) {
    const descent *d = context;
    put_verdict(r, d->model, &d->verdict);
    basin_record_numbers(r, "energy", d->run.energy, d->run.steps + 1);
    basin_record_table(r, "|trace", NULL);
    for (int t = 0; t <= d->run.steps; t++) {
        basin_record_row(r);
        basin_record_fields(r, "step=%lld;energy=%.6f", (long long)t, d->run.energy[t]);
    }
    basin_record_end(r);
}

static basin_status descend(descent *d, const char *path, basin_error *error) {
    options *o = d->o;
    if (path) BASIN_TRY(basin_model_read(&d->file, path, error));
    BASIN_TRY(basin_specimen_descend(&d->run, d->model, d->file, (uint64_t)o->seed, (int)o->steps,
                                     o->scale, error));
    BASIN_TRY(basin_specimen_judge(&d->verdict, d->model, d->file, (int)o->seeds, (uint64_t)o->seed,
                                   (int)o->steps, error));
    if (o->page) BASIN_TRY(draw(d, error));
    return basin_record_print(o->json, put_descent, d, error);
}

static basin_status run_descend(void *context, basin_error *error) {
    options *o = context;
    descent d = {.o = o};
    const char *path = o->operands > 1 ? o->operand[1] : NULL;
    BASIN_TRY(find(&d.model, o->operand[0], error));
    if (path && (basin_option_given(&o->args, "seed") || basin_option_given(&o->args, "seeds")))
        return basin_usage(error, "--seed and --seeds are for drawn weights, not for %s", path);
    basin_status status = descend(&d, path, error);
    basin_bundle_free(d.file);
    return status;
}

const basin_command basin_command_zoo_descend = {BASIN_COMMAND("zoo descend", descend_table),
                                                 .run = run_descend};
