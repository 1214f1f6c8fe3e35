/* Training models of text: they learn a verse by heart, a run that is cut ends with the same bytes,
 * models begin with others, and what cannot be trained is refused. */
#include <math.h>

#include "task/text/text_bench.h"

/* Both models know seven equal verses after 300 steps; a text without structure has log 22 = 3.1.
 */
static void check_learns(void **state, const char *arch, const char *feed) {
    BASIN_AT_EXIT(bench_close) bench b;
    bench_open(&b, state, arch, "cpu");
    b.s->arch = arch;
    b.s->feed = feed;
    b.s->dropout = 0;
    b.s->context = 24;
    b.s->dim = 32;
    b.s->epochs = 6;
    b.s->epoch_steps = 50;
    basin_outcome o = bench_train(&b, -1, false);
    assert_int_equal(o.steps, 300);
    double loss = basin_score_get(&o.best, "validation_loss");
    if (!(loss < 0.5)) fail_msg("%s %s: validation loss %g", arch, feed, loss);
    assert_true(fabs(basin_score_get(&o.best, "validation_bits") - loss / log(2)) < 1e-12);
}

TEST_WITH(training_learns, folder_new, folder_remove) {
    check_learns(state, "gpt", "ff2w");
    check_learns(state, "nrgpt", "ff1");
    check_learns(state, "nrgpt", "ff2");
    check_learns(state, "nrgpt", "ff2w");
}

static void check_resume(void **state, const char *arch, const char *optimiser) {
    static const int64_t stops[] = {1, 4, 7};
    BASIN_AT_EXIT(bench_close) bench whole, cut;
    char name[40];
    bench_open(&whole, state, arch, "cpu");
    snprintf(name, sizeof name, "%s-cut", arch);
    bench_open(&cut, state, name, "cpu");
    whole.s->arch = cut.s->arch = arch;
    whole.s->optimiser = cut.s->optimiser = optimiser;
    whole.training.log_every = cut.training.log_every = 3;
    basin_outcome a = bench_train(&whole, -1, false);
    for (int i = 0; i < 3; i++) {
        basin_outcome o = bench_train(&cut, stops[i], i > 0);
        assert_true(o.stopped);
        assert_int_equal(o.steps, stops[i]);
    }
    basin_outcome o = bench_train(&cut, -1, true);
    assert_true(o.resumed && !o.stopped && o.loss == a.loss);
    same_file(whole.out, cut.out);
    char *one = timeless(whole.log), *two = timeless(cut.log);
    assert_non_null(strstr(one, "\"epoch\":3,\"validation_loss\":"));
    assert_string_equal(one, two);
    free(one);
    free(two);
    assert_true(bench_train(&cut, -1, true).finished_before);
}

TEST_WITH(a_cut_run_ends_with_the_same_bytes, folder_new, folder_remove) {
    check_resume(state, "nrgpt", "adamw");
    check_resume(state, "gpt", "lion");
}

/* Without dropout, which each shard draws by itself, shards are the same batch up to rounding. */
TEST_WITH(shards_are_one_batch, folder_new, folder_remove) {
    double loss[3];
    for (int i = 0; i < 3; i++) {
        bench b;
        char name[20];
        snprintf(name, sizeof name, "shards%d", i);
        bench_open(&b, state, name, "ref");
        b.s->dropout = 0;
        b.s->epochs = 1;
        b.s->shards = i + 1;
        loss[i] = bench_train(&b, -1, false).loss;
        bench_close(&b);
    }
    assert_true(loss[1] != loss[0]);
    assert_true(fabs(loss[1] - loss[0]) < 1e-9 && fabs(loss[2] - loss[0]) < 1e-9);
    bench b;
    bench_open(&b, state, "shards", "cpu");
    b.s->shards = 4;
    bench_refused(&b, BASIN_BAD_VALUE, "shards is 4, wanted a divisor of the batch, 6");
    bench_close(&b);
}

TEST_WITH(a_run_goes_on_with_its_own_text_alone, folder_new, folder_remove) {
    BASIN_AT_EXIT(bench_close) bench b;
    bench_open(&b, state, "own", "cpu");
    bench_train(&b, 3, false);
    b.training.resume = true;
    b.data.hold_out = 0.3;
    bench_refused(&b, BASIN_BAD_VALUE, "wanted the same text");
    b.data.hold_out = 0.2;
    b.text[0] = 'T';
    bench_refused(&b, BASIN_BAD_VALUE, "wanted the same text");
    b.text[0] = 't';
    b.s->rate = 0.5;
    bench_refused(&b, BASIN_BAD_VALUE, "its run has rate 0.01, asked for is 0.5");
}

TEST_WITH(a_model_begins_with_another, folder_new, folder_remove) {
    BASIN_AT_EXIT(bench_close) bench first, next;
    char from[PATH_TEXT];
    bench_open(&first, state, "first", "cpu");
    bench_train(&first, -1, false);
    bench_open(&next, state, "next", "cpu");
    next.training.from = strcpy(from, first.out);
    next.s->epochs = 1;
    next.s->rate = next.s->rate_first = next.s->rate_last = 0;
    /* A text of fewer characters than the model knows. */
    next.data.train = text_of("a cat ate a rat, a rat ate a cat; that is that; a cat ate a hat.");
    next.data.hold_out = 0;
    bench_train(&next, -1, false);
    basin_text_model *a, *b;
    assert_ok(basin_text_open(&a, first.out, first.training.backend, &failure));
    assert_ok(basin_text_open(&b, next.out, next.training.backend, &failure));
    assert_int_equal(a->vocabulary.count, b->vocabulary.count);
    basin_tensor x, y;
    assert_ok(basin_store_read(a->store, "h", &x, &failure));
    assert_ok(basin_store_read(b->store, "h", &y, &failure));
    assert_memory_equal(x.data, y.data, basin_tensor_bytes(&x));
    basin_tensor_free(&x);
    basin_tensor_free(&y);
    basin_text_close(a);
    basin_text_close(b);
    next.training.restart = true;
    next.s->steps = 3;
    bench_refused(&next, BASIN_BAD_SHAPE, "its steps is 2, asked for is 3");
    assert_ok(basin_text_fit(next.settings, first.out, &failure));
    assert_int_equal(next.s->steps, 2);
}

/* After one epoch and after three: what has no rate stays, the rest moves. */
TEST_WITH(vectors_may_stay, folder_new, folder_remove) {
    static const char *const names[] = {"tok", "pos", "w1"};
    basin_tensor found[2][3];
    for (int i = 0; i < 2; i++) {
        bench b;
        bench_open(&b, state, "stay", "cpu");
        b.s->embedding_rate = 0;
        b.s->optimiser = i ? "lion" : "sgd";
        b.s->epochs = i ? 3 : 1;
        basin_text_model *model = bench_model(&b);
        for (int k = 0; k < 3; k++)
            assert_ok(basin_store_read(model->store, names[k], &found[i][k], &failure));
        basin_text_close(model);
        bench_close(&b);
    }
    for (int k = 0; k < 3; k++) {
        bool same = true;
        for (int64_t n = 0; n < basin_shape_count(found[0][k].shape); n++)
            same = same && basin_tensor_at(&found[0][k], n) == basin_tensor_at(&found[1][k], n);
        assert_int_equal(same, k < 2);
        basin_tensor_free(&found[0][k]);
        basin_tensor_free(&found[1][k]);
    }
}

TEST_WITH(wrong_input_is_refused, folder_new, folder_remove) {
    BASIN_AT_EXIT(bench_close) bench b;
    bench_open(&b, state, "wrong", "cpu");
    b.data.train.length = 10;
    bench_refused(&b, BASIN_BAD_VALUE,
                  "the training text has 8 tokens, wanted more than the "
                  "context, 12");
    b.data.train.length = 0;
    bench_refused(&b, BASIN_BAD_VALUE, "no text to train on");
    b.data.train.length = strlen(b.text);
    b.data.validation = text_of("a \xc3\xa9");
    bench_refused(&b, BASIN_BAD_VALUE, "wanted one of the two");
    b.data.hold_out = 0;
    bench_refused(&b, BASIN_BAD_VALUE, "the validation text: ");
    b.data.validation = (basin_text){0};
    b.s->patience = 2;
    bench_refused(&b, BASIN_BAD_VALUE, "patience is 2 without a validation text");
    b.s->patience = 0;
    b.s->tokens = "ids";
    bench_refused(&b, BASIN_BAD_VALUE, "byte 0 is no digit, wanted the numbers of tokens");
    b.s->tokens = "characters";
    b.s->arch = "gpt";
    b.s->heads = 3;
    bench_refused(&b, BASIN_BAD_VALUE, "heads is 3, wanted a divisor of dim, 16");
    b.s->heads = 2;
    b.training.memory = 1000;
    bench_refused(&b, BASIN_NO_MEMORY, "more shards, or recompute");
}

/* Bytes have 256 tokens whatever the text, and a model of them can be written and opened. */
TEST_WITH(models_of_bytes, folder_new, folder_remove) {
    BASIN_AT_EXIT(bench_close) bench b;
    basin_text_model *model;
    bench_open(&b, state, "bytes", "cpu");
    b.s->tokens = "bytes";
    bench_train(&b, -1, false);
    assert_ok(basin_text_open(&model, b.out, b.training.backend, &failure));
    assert_int_equal(model->vocabulary.count, 256);
    char value[40];
    assert_ok(basin_settings_get(value, sizeof value, basin_text_about(model).settings,
                                 "vocabulary", &failure));
    assert_string_equal(value, "256");
    basin_text_close(model);
}

/* Numbers of tokens train the model that the characters they stand for train. */
TEST_WITH(models_of_numbers, folder_new, folder_remove) {
    BASIN_AT_EXIT(bench_close) bench b, ids;
    int32_t id[sizeof b.text];
    char prompt[40];
    bench_open(&b, state, "letters", "cpu");
    basin_text_model *letters = bench_model(&b), *numbers;
    basin_text_corpus corpus;
    assert_ok(basin_text_corpus_new(&corpus, &letters->vocabulary, &b.data.train, "it", &failure));
    memcpy(id, corpus.id, (size_t)corpus.count * sizeof *id);
    basin_text_corpus_free(&corpus);
    bench_open(&ids, state, "numbers", "cpu");
    ids.data.train = (basin_text){.id = id, .length = b.data.train.length};
    bench_train(&ids, -1, false);
    assert_ok(basin_text_open(&numbers, ids.out, ids.training.backend, &failure));
    assert_int_equal(numbers->vocabulary.tokens, BASIN_TEXT_IDS);
    assert_int_equal(numbers->vocabulary.count, letters->vocabulary.count);
    basin_text_scores x, y;
    basin_text_scoring all = {.part = BASIN_TEXT_ALL}, held = {0};
    assert_ok(basin_text_score(&x, letters, &b.data.train, &all, &failure));
    assert_ok(basin_text_score(&y, numbers, &ids.data.train, &all, &failure));
    assert_true(x.loss == y.loss && isfinite(x.bits) && isnan(y.bits));
    basin_text_scores_free(&y);
    assert_ok(basin_text_score(&y, numbers, &ids.data.train, &held, &failure));
    assert_int_equal(y.part, BASIN_TEXT_VALIDATION);
    basin_text_scores_free(&x);
    basin_text_scores_free(&y);
    snprintf(prompt, sizeof prompt, "3 %lld", (long long)numbers->vocabulary.count);
    basin_text beyond = text_of(prompt), given = text_of("3, 4\n"), none = {0};
    basin_text_generation wish = {.tokens = 1};
    assert_ok(basin_text_generate(NULL, numbers, &given, &wish, &failure));
    assert_failure(basin_text_generate(NULL, numbers, &beyond, &wish, &failure), BASIN_BAD_VALUE,
                   "the prompt: token 1 is ");
    assert_int_equal(basin_text_generate(NULL, numbers, &none, &wish, &failure), BASIN_BAD_VALUE);
    assert_failure(basin_text_score(&x, letters, &ids.data.train, &all, &failure), BASIN_BAD_VALUE,
                   "is numbers of tokens, wanted a text");
    basin_text_close(letters);
    basin_text_close(numbers);
}

/* The same model as files of earlier versions have it; `tokens` in its settings. */
static void write_earlier(const char *path, const char *tokens, const char *tokenizer) {
    BASIN_AT_EXIT(free_bundle) basin_bundle *from, *to;
    assert_ok(basin_bundle_read(&from, path, &failure));
    assert_ok(basin_bundle_new(&to, &failure));
    for (size_t i = 0; i < basin_bundle_count(from); i++) {
        basin_tensor copy = *basin_bundle_at(from, i);
        copy = basin_tensor_borrow(copy.data, copy.dtype, copy.shape);
        assert_ok(basin_bundle_add(to, basin_bundle_name(from, i), &copy, &failure));
    }
    for (size_t i = 0; i < basin_bundle_meta_count(from); i++) {
        const char *key = basin_bundle_meta_key(from, i), *value = basin_bundle_meta_value(from, i);
        char config[4000], *at;
        snprintf(config, sizeof config, "%s", value);
        if ((at = strstr(config, "\"tokens\":\"characters\"")))
            snprintf(at, sizeof config - (size_t)(at - config), "\"tokens\":\"%s\"%s", tokens,
                     value + (at - config) + strlen("\"tokens\":\"characters\""));
        if (strcmp(key, "basin.characters") != 0)
            assert_ok(basin_bundle_meta_set(to, key, config, &failure));
    }
    assert_ok(basin_bundle_meta_set(to, "basin.tokenizer", tokenizer, &failure));
    assert_ok(basin_bundle_write(path, to, &failure));
}

TEST_WITH(earlier_models_open, folder_new, folder_remove) {
    static const char vocabulary[] =
        "{\"version\":\"1.0\",\"model\":{\"type\":\"BPE\",\"vocab\":{\" \":0,\"a\":1,\"c\":2,"
        "\"t\":3,\"\\u00e9\":4},\"merges\":[]}}";
    BASIN_AT_EXIT(bench_close) bench b;
    basin_text_model *model;
    bench_open(&b, state, "earlier", "cpu");
    b.data.train = text_of("cat t\xc3\xa9 tat aca cat tac cat act tat \xc3\xa9t\xc3\xa9 cat");
    b.data.hold_out = 0;
    bench_train(&b, -1, false);
    write_earlier(b.out, "characters", vocabulary);
    assert_ok(basin_text_open(&model, b.out, b.training.backend, &failure));
    assert_int_equal(model->vocabulary.count, 5);
    assert_int_equal(model->vocabulary.point[4], 0xe9);
    basin_text_close(model);
    write_earlier(b.out, "characters", "{\"model\":{\"vocab\":{\"ab\":0,\"c\":1}}}");
    assert_int_equal(basin_text_open(&model, b.out, b.training.backend, &failure), BASIN_BAD_FILE);
    write_earlier(b.out, "bpe", vocabulary);
    assert_failure(basin_text_open(&model, b.out, b.training.backend, &failure), BASIN_BAD_FILE,
                   "bpe");
}

/* For the 65 characters of tiny Shakespeare, counted by hand. */
TEST(presets_have_their_sizes) {
    static const struct {
        const char *preset;
        int64_t parameters;
    } row[] = {{"default", 238914},        {"small", 238914},         {"small-gpt", 238208},
               {"ten-million", 9739842},   {"two-million", 2363202},  {"rival-gpt", 9860352},
               {"published-32", 22914},    {"published-128", 263490}, {"published-384", 2363202},
               {"published-768", 10329666}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        basin_settings *settings;
        basin_text_graph graph;
        assert_ok(basin_settings_new(&settings, "text", row[i].preset, &failure));
        assert_ok(basin_settings_check(settings, &failure));
        basin_text_settings *s = settings->values;
        s->vocabulary = 65;
        assert_ok(basin_text_graph_new(&graph, s, 1, 1, (basin_text_wish){0}, &failure));
        assert_int_equal(basin_params_total(&graph.params), row[i].parameters);
        basin_text_graph_free(&graph);
        basin_settings_free(settings);
    }
}
