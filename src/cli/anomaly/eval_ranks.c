/* Runs of `basin anomaly eval` over ranks: who makes which, and how figures and scores come
 * together; see eval.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/anomaly/eval.h"
#include "ranks/ranks.h"

void basin_eval_deal(const basin_eval *eval, int64_t *first, int64_t *last) {
    basin_ranks_share share = basin_ranks_deal(eval->o->ranks, eval->splits.runs);
    *first = share.first;
    *last = share.first + share.count;
}

static int64_t maker_of(const basin_eval *b, int64_t run) {
    int64_t ranks = basin_ranks_count(b->o->ranks), r = 0;
    for (; r + 1 < ranks; r++) {
        basin_ranks_share share = basin_ranks_deal_to(r, ranks, b->splits.runs);
        if (run < share.first + share.count) break;
    }
    return r;
}

/* ---- figures ---- */

static basin_status share_figures(basin_eval *b, basin_error *error) {
    basin_status status = BASIN_OK;
    for (int64_t i = 0; i < b->splits.runs; i++)
        for (int m = 0; m < b->models && !status; m++)
            status = basin_ranks_broadcast(b->o->ranks, &b->figures[m * b->splits.runs + i],
                                           sizeof *b->figures, maker_of(b, i), error);
    return status;
}

/* What is told of the last run. */
static basin_status share_facts(basin_eval *b, basin_error *error) {
    basin_ranks *ranks = b->o->ranks;
    int64_t last = maker_of(b, b->splits.runs - 1);
    basin_status status = basin_ranks_broadcast(ranks, &b->overlap, sizeof b->overlap, last, error);
    if (!status)
        status = basin_ranks_broadcast(ranks, &b->parameters, sizeof b->parameters, last, error);
    if (!status)
        status = basin_ranks_broadcast(ranks, b->trained_on, sizeof b->trained_on, last, error);
    return status;
}

/* ---- scores ---- */

basin_status basin_eval_scores_begin(basin_eval *eval, basin_error *error) {
    if (basin_ranks_rank(eval->o->ranks)) {
        eval->scores.file = tmpfile();
        if (eval->scores.file) return BASIN_OK;
        return basin_fail(error, BASIN_IO, "no file for scores");
    }
    basin_status status = basin_writer_create(&eval->scores, eval->o->scores, error);
    if (!status) fputs("split,node,part,label,probability\n", eval->scores.file);
    return status;
}

basin_status basin_eval_scores_end(basin_eval *eval, basin_status status, basin_error *error) {
    if (!eval->scores.file) return status;
    if (basin_ranks_rank(eval->o->ranks))
        fclose(eval->scores.file);
    else if (!status && !eval->stopped)
        status = basin_writer_commit(&eval->scores, error);
    else
        basin_writer_discard(&eval->scores);
    return status;
}

/* The lines of a silent rank. */
static basin_status read_lines(char **text, size_t *bytes, FILE *file, basin_error *error) {
    long end = fseek(file, 0, SEEK_END) ? -1 : ftell(file);
    *bytes = end > 0 ? (size_t)end : 0;
    *text = malloc(*bytes + 1);
    rewind(file);
    if (end < 0 || !*text || fread(*text, 1, *bytes, file) != *bytes)
        return basin_fail(error, BASIN_IO, "the scores of a rank cannot be read");
    return BASIN_OK;
}

/* Runs are dealt in their order, so the ranks' lines follow each other. */
static basin_status receive_lines(basin_eval *b, int64_t from, size_t bytes, basin_error *error) {
    char *text = malloc(bytes + 1);
    basin_ranks_part part = {text, bytes, from};
    if (!text) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for scores");
    basin_status status = basin_ranks_exchange(b->o->ranks, NULL, 0, &part, 1, error);
    if (!status) status = basin_writer_put(&b->scores, text, bytes, error);
    free(text);
    return status;
}

static basin_status share_scores(basin_eval *b, basin_error *error) {
    basin_ranks *ranks = b->o->ranks;
    bool first = basin_ranks_rank(ranks) == 0;
    char *text = NULL;
    size_t bytes = 0;
    basin_status status = first ? BASIN_OK : read_lines(&text, &bytes, b->scores.file, error);
    for (int64_t r = 1; r < basin_ranks_count(ranks) && !status; r++) {
        size_t theirs = bytes;
        status = basin_ranks_broadcast(ranks, &theirs, sizeof theirs, r, error);
        basin_ranks_part part = {text, bytes, 0};
        if (!status && first) status = receive_lines(b, r, theirs, error);
        if (!status && basin_ranks_rank(ranks) == r)
            status = basin_ranks_exchange(ranks, &part, 1, NULL, 0, error);
    }
    free(text);
    return status;
}

basin_status basin_eval_share(basin_eval *eval, basin_error *error) {
    if (basin_ranks_count(eval->o->ranks) == 1) return BASIN_OK;
    basin_status status = share_figures(eval, error);
    if (!status) status = share_facts(eval, error);
    if (!status && eval->o->scores) status = share_scores(eval, error);
    return status;
}
