/* The settings and the tokenizer that a run trains with: those asked for, of the checkpoint that it
 * goes on from, or of the model that it begins with; see start.h. */
#include "task/text/start.h"

#include <stdlib.h>
#include <string.h>

#include "train/shards/shards.h"

enum { VOCABULARY = 1024 };

/* Characters are those of all the text, so that each has a token; strings of bytes are looked for
 * in what is trained on alone, or the part that is held out would be told too well. */
static basin_status make_tokenizer(basin_tokenizer **tokenizer, const basin_text_settings *s,
                                   const basin_text_data *data, const basin_watch *watch,
                                   basin_error *error) {
    const char *text = data->train;
    size_t length = data->train_length;
    if (basin_choice_is(s->tokens, "characters"))
        return basin_tokenizer_characters(tokenizer, text, length, error);
    if (basin_choice_is(s->tokens, "bytes")) return basin_tokenizer_bytes(tokenizer, error);
    if (basin_choice_is(s->tokens, "bpe"))
        return basin_tokenizer_train(tokenizer, text, basin_text_cut(text, length, data->hold_out),
                                     s->vocabulary ? s->vocabulary : VOCABULARY, watch, error);
    return basin_fail(error, BASIN_BAD_VALUE, "tokens is 'file' and there is none; wanted one");
}

/* Tokenizers are handed over by their text. */
static basin_status copy_tokenizer(basin_tokenizer **copy, const basin_tokenizer *tokenizer,
                                   basin_error *error) {
    char *json = NULL;
    basin_status status = basin_tokenizer_print(&json, tokenizer, error);
    if (!status) status = basin_tokenizer_parse(copy, json, "the tokenizer", error);
    free(json);
    return status;
}

/* A run that goes on, or begins with a model, has the tokenizer of that file. */
static basin_status open_tokenizer(basin_tokenizer **tokenizer, basin_text_settings *s,
                                   const basin_run *run, const basin_text_data *data,
                                   basin_error *error) {
    const basin_bundle *checkpoint = basin_run_checkpoint(run), *from = basin_run_from(run);
    basin_status status;
    if (data->tokenizer && !basin_choice_is(s->tokens, "file"))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "tokens is '%s' and there is a tokenizer; wanted tokens 'file'",
                          s->tokens);
    if (checkpoint)
        status = basin_text_tokenizer_read(tokenizer, checkpoint, error);
    else if (data->tokenizer)
        status = copy_tokenizer(tokenizer, data->tokenizer, error);
    else if (from)
        status = basin_text_tokenizer_read(tokenizer, from, error);
    else
        status = make_tokenizer(tokenizer, s, data, basin_run_training(run)->watch, error);
    if (!status) s->vocabulary = basin_tokenizer_size(*tokenizer);
    return status;
}

static basin_status match_checkpoint(basin_text_settings *s, const basin_run *run,
                                     basin_error *error) {
    basin_text_settings saved = {0};
    const basin_training *training = basin_run_training(run);
    const basin_bundle *checkpoint = basin_run_checkpoint(run);
    basin_status status =
        checkpoint ? basin_text_settings_read(&saved, checkpoint, error) : BASIN_OK;
    s->shards = basin_shards_choose(s->shards, saved.shards, s->batch, training->ranks);
    if (status || !checkpoint) return status;
    status = basin_settings_match(&saved, s, basin_text_task.table, basin_bundle_path(checkpoint),
                                  error);
    if (!status && saved.epochs != s->epochs)
        basin_watch_note(training->watch,
                         "the run was to have %lld epochs; from here on the learning rate is that "
                         "of a run of %lld",
                         (long long)saved.epochs, (long long)s->epochs);
    return status;
}

/* Shapes are compared where weights are read; this is what shapes do not show. */
static basin_status match_from(const basin_text_settings *s, const basin_run *run,
                               basin_error *error) {
    static const char *const same[] = {"arch", "tokens", "context", "heads", "steps",
                                       "feed", "tied",   "bias",    NULL};
    basin_text_settings its;
    const basin_bundle *from = basin_run_from(run);
    basin_status status = from ? basin_text_settings_read(&its, from, error) : BASIN_OK;
    for (const char *const *name = same; from && *name && !status; name++) {
        char found[64], wanted[64];
        const basin_setting *entry = basin_setting_find(basin_text_task.table, *name);
        basin_setting_print(found, sizeof found, &its, entry);
        basin_setting_print(wanted, sizeof wanted, s, entry);
        if (strcmp(found, wanted) != 0)
            status = basin_fail(error, BASIN_BAD_SHAPE,
                                "%s: its %s is %s, asked for is %s; wanted the same, to begin with "
                                "its weights",
                                basin_bundle_path(from), *name, found, wanted);
    }
    return status;
}

static basin_status check_shards(const basin_text_settings *s, basin_error *error) {
    if (s->batch % s->shards == 0) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "shards is %lld, wanted a divisor of the batch, %lld",
                      (long long)s->shards, (long long)s->batch);
}

basin_status basin_text_start(basin_text_settings *settings, basin_tokenizer **tokenizer,
                              const basin_run *run, const basin_text_data *data,
                              basin_error *error) {
    *tokenizer = NULL;
    basin_status status = match_from(settings, run, error);
    if (!status) status = open_tokenizer(tokenizer, settings, run, data, error);
    if (!status) status = match_checkpoint(settings, run, error);
    if (!status) status = check_shards(settings, error);
    if (!status) return BASIN_OK;
    basin_tokenizer_free(*tokenizer);
    *tokenizer = NULL;
    return status;
}
