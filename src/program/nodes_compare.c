/* basin anomaly compare: two models judged on the same nodes. */
#include "program/nodes.h"

typedef struct options {
    BASIN_ARGS;
    bool all_nodes;
} options;
#define OPTIONS options

static const basin_option table[] = {
    BASIN_FLAG(all_nodes, "all"),
    BASIN_NODES_OPTIONS,
};

typedef struct job {
    options *o;
    basin_nodes_use use[2];
    double *probability[2]; /* [N] */
    basin_nodes_comparison found;
} job;

/* Each model reads the files by its own columns. */
static basin_status compare(void *context, basin_error *error) {
    job *j = context;
    const basin_nodes_model *model[2];
    const basin_network *network[2];
    for (int k = 0; k < 2; k++) {
        basin_nodes_use *u = &j->use[k];
        BASIN_TRY(basin_nodes_use_open(u, &j->o->args, j->o->operand[k], 2, error));
        BASIN_TRY(BASIN_NEW(&j->probability[k], u->network->nodes, "probabilities", error));
        BASIN_TRY(basin_nodes_score(j->probability[k], u->model, u->network, &u->work, error));
        model[k] = u->model, network[k] = u->network;
        j->o->quiet = true; /* print the notes on the files once */
    }
    return basin_nodes_compare(&j->found, model, network,
                               (const double *const[]){j->probability[0], j->probability[1]},
                               j->o->all_nodes, error);
}

static void put_models(basin_record *r, const job *j) {
    basin_record_table(r, "models", NULL);
    for (int k = 0; k < 2; k++) {
        const basin_nodes_figures *f = &j->found.figures[k];
        basin_record_row(r);
        basin_record_fields(r, "model=%s;id=%s", j->o->operand[k],
                            basin_nodes_get_info(j->use[k].model)->id);
        basin_record_figures(r, f, true);
        basin_record_number(r, "brier", "%.4f", f->reliability.brier);
    }
    basin_record_end(r);
    basin_record_table(r, "budgets", "percent, by the number of alerts:");
    for (int i = 0; i < j->found.figures[0].budgets; i++) {
        const basin_nodes_budget *a = &j->found.figures[0].budget[i];
        const basin_nodes_budget *b = &j->found.figures[1].budget[i];
        basin_record_row(r);
        basin_record_fields(r,
                            "alerts=%lld;precision_a|precision, A=%.2f;precision_b|B=%.2f;"
                            "recall_a|recall, A=%.2f;recall_b|B =%.2f",
                            (long long)a->alerts, 100 * a->precision, 100 * b->precision,
                            100 * a->recall, 100 * b->recall);
    }
    basin_record_end(r);
}

/* A Brier score is better where it is smaller. */
static void put_differences(basin_record *r, const job *j) {
    basin_record_table(r, "differences", "B minus A, with 95 % bounds of 1,000 draws:");
    for (int m = 0; m < BASIN_NODES_DIFFERENCES; m++) {
        const basin_nodes_difference *d = &j->found.difference[m];
        bool beyond = d->low > 0 || d->high < 0, less = m == BASIN_NODES_DIFFERENCES - 1;
        double unit = less ? 1 : 100;
        basin_record_row(r);
        basin_record_text(r, "measure", d->name);
        basin_record_number(r, "difference", less ? "%+.4f" : "%+.2f", unit * d->difference);
        basin_record_number(r, "low", less ? "%+.4f" : "%+.2f", unit * d->low);
        basin_record_number(r, "high", less ? "%+.4f" : "%+.2f", unit * d->high);
        basin_record_text(r, "verdict",
                          !beyond                       ? "within noise"
                          : (d->difference > 0) != less ? "B is better, beyond noise"
                                                        : "A is better, beyond noise");
    }
    basin_record_end(r);
}

static void put_comparison(basin_record *r, const void *context) {
    const job *j = context;
    const basin_nodes_comparison *c = &j->found;
    basin_record_fields(r, "data=%s;nodes=%lld;anomalous=%lld;left_out=%lld",
                        j->use[0].network->path, (long long)c->figures[0].nodes,
                        (long long)c->figures[0].anomalous, (long long)c->left_out);
    basin_record_note(r, j->o->all_nodes ? "includes nodes that took part in training"
                                         : "excludes nodes that took part in the training of A, B "
                                           "or their parents");
    put_models(r, j);
    put_differences(r, j);
    basin_record_object(r, "alerts");
    basin_record_fields(r, "both=%lld;only_a|only A=%lld;only_b|only B=%lld", (long long)c->both,
                        (long long)c->only[0], (long long)c->only[1]);
    basin_record_end(r);
}

static void close_all(void *context) {
    job *j = context;
    for (int k = 0; k < 2; k++) {
        basin_nodes_use_close(&j->use[k]);
        free(j->probability[k]);
    }
}

const basin_command basin_command_anomaly_compare = {
    BASIN_COMMAND("anomaly compare", table),
    BASIN_USES(job, .work = compare, .print = put_comparison, .close = close_all)};
