/* Using models of text: scores against the plain formula, by position and by part of the text;
 * generation that can be repeated, greedy where it should be, with the energies of tokens. */
#include <math.h>

#include "task/text/text_bench.h"

/* ---- scores ---- */

static basin_text_scores score(basin_text_model *model, const char *text,
                               basin_text_scoring scoring) {
    basin_text_scores scores;
    basin_text it = text_of(text);
    assert_ok(basin_text_score(&scores, model, &it, &scoring, &failure));
    return scores;
}

TEST_WITH(scores_add_up, folder_new, folder_remove) {
    BASIN_AT_EXIT(bench_close) bench b;
    bench_open(&b, state, "scores", "cpu");
    basin_text_model *model = bench_model(&b);
    BASIN_AT_EXIT(basin_text_scores_free)
    basin_text_scores s = score(model, VERSE, (basin_text_scoring){.part = BASIN_TEXT_ALL});
    int64_t tokens = (int64_t)strlen(VERSE);
    assert_int_equal(s.tokens, tokens - 1);
    assert_int_equal(s.bytes, tokens);
    assert_int_equal(s.windows, (tokens - 1 + 11) / 12);
    assert_int_equal(s.context, 12);
    assert_false(s.trained_on);
    double sum = 0;
    for (int64_t n = 0; n < s.context; n++) {
        int64_t count = s.windows - (n >= (tokens - 1) % 12 && (tokens - 1) % 12);
        sum += s.position_loss[n] * (double)count;
    }
    assert_true(fabs(sum / (double)s.tokens - s.loss) < 1e-9);
    assert_true(fabs(exp(s.loss) - s.perplexity) < 1e-9);
    assert_true(fabs(s.bits - s.loss / log(2)) < 1e-9);
    assert_true(s.accuracy > 0.1 && s.accuracy < 1);
    assert_true(isfinite(s.energy) && isfinite(s.descent) && s.rises >= 0 && s.rises <= 1);
    basin_text_close(model);
}

/* More before a token makes it less surprising, in a model that has learnt something. */
TEST_WITH(a_stride_gives_more_context, folder_new, folder_remove) {
    BASIN_AT_EXIT(bench_close) bench b;
    bench_open(&b, state, "stride", "cpu");
    b.s->dropout = 0;
    b.s->epoch_steps = 200;
    basin_text_model *model = bench_model(&b);
    BASIN_AT_EXIT(basin_text_scores_free)
    basin_text_scores whole = score(model, VERSE, (basin_text_scoring){.part = BASIN_TEXT_ALL});
    BASIN_AT_EXIT(basin_text_scores_free)
    basin_text_scores far =
        score(model, VERSE, (basin_text_scoring){.part = BASIN_TEXT_ALL, .stride = 3, .batch = 2});
    assert_int_equal(far.tokens, whole.tokens);
    assert_true(far.windows > 3 * whole.windows);
    assert_true(far.loss < whole.loss);
    /* Only the first window's first positions count. */
    assert_true(isfinite(far.position_loss[0]) && isfinite(far.position_loss[11]));
    BASIN_AT_EXIT(basin_text_scores_free)
    basin_text_scores some =
        score(model, VERSE, (basin_text_scoring){.part = BASIN_TEXT_ALL, .limit = 4});
    assert_int_equal(some.windows, 4);
    assert_int_equal(some.tokens, 4 * 12);
    basin_text_close(model);
}

TEST_WITH(a_model_knows_its_text, folder_new, folder_remove) {
    BASIN_AT_EXIT(bench_close) bench b;
    basin_text_scores s;
    bench_open(&b, state, "known", "cpu");
    bench_train(&b, -1, false);
    basin_text_model *model;
    assert_ok(basin_text_open(&model, b.out, b.training.backend, &failure));
    int64_t all = (int64_t)strlen(b.text), train = (int64_t)((double)all * 0.8 + 1e-6);
    s = score(model, b.text, (basin_text_scoring){0});
    assert_int_equal(s.part, BASIN_TEXT_VALIDATION);
    assert_int_equal(s.bytes, all - train);
    assert_false(s.trained_on);
    basin_text_scores_free(&s);
    s = score(model, b.text, (basin_text_scoring){.part = BASIN_TEXT_TRAIN});
    assert_int_equal(s.bytes, train);
    assert_true(s.trained_on);
    basin_text_scores_free(&s);
    s = score(model, VERSE, (basin_text_scoring){0});
    assert_int_equal(s.part, BASIN_TEXT_ALL);
    basin_text_scores_free(&s);
    basin_text verse = text_of(VERSE), cat = text_of("Cat");
    basin_text_scoring part = {.part = BASIN_TEXT_VALIDATION};
    assert_failure(basin_text_score(&s, model, &verse, &part, &failure), BASIN_BAD_VALUE,
                   "not the text that the model was trained on");
    part = (basin_text_scoring){.stride = 13};
    assert_failure(basin_text_score(&s, model, &verse, &part, &failure), BASIN_BAD_VALUE,
                   "stride is 13, wanted 1 to ");
    part.stride = 0;
    assert_failure(basin_text_score(&s, model, &cat, &part, &failure), BASIN_BAD_VALUE,
                   "the text: ");
    basin_text_close(model);
}

/* ---- generation ---- */

enum { MOST = 400 };

typedef struct page {
    char text[MOST * 4];
    size_t length;
    int given, tokens, steps, stop_after;
    double surprise[MOST], first[MOST], last[MOST];
} page;

static bool keep(void *context, const basin_text_token *t) {
    page *p = context;
    assert_int_equal(t->place, p->tokens);
    memcpy(p->text + p->length, t->text, t->length);
    p->length += t->length;
    p->given += t->given;
    p->surprise[p->tokens] = t->surprise;
    p->steps = (int)t->steps;
    p->first[p->tokens] = t->steps ? t->energy[0] + t->energy[1] : 0;
    p->last[p->tokens] = t->steps ? t->energy[2 * t->steps] + t->energy[2 * t->steps + 1] : 0;
    return ++p->tokens != p->stop_after;
}

static basin_text_generated generate(page *p, basin_text_model *model, const char *prompt,
                                     basin_text_generation wish) {
    basin_text_generated result;
    *p = (page){.stop_after = p->stop_after};
    basin_text start = text_of(prompt);
    wish.tell = keep;
    wish.context = p;
    assert_ok(basin_text_generate(&result, model, &start, &wish, &failure));
    return result;
}

/* A file may say anything of the text: parts beyond its end would be read, where it is this one. */
TEST(a_model_may_lie_about_its_text) {
    static const char *const train[] = {"18", "0", "20", "-1", "21", "1e300", "-1e300", "null"};
    for (int i = 0; i < 8; i++) {
        basin_bundle *bundle;
        char text[200];
        snprintf(text, sizeof text, "{\"hash\":\"%016d\",\"bytes\":20,\"train\":%s}", 7, train[i]);
        assert_ok(basin_bundle_new(&bundle, &failure));
        assert_ok(basin_bundle_meta_set(bundle, "basin.text", text, &failure));
        basin_text_origin origin = basin_text_origin_read(bundle);
        assert_int_equal(origin.length, i < 3 ? 20 : 0);
        assert_int_equal(origin.train, i < 3 ? strtoll(train[i], NULL, 10) : 0);
        basin_bundle_free(bundle);
    }
}

TEST_WITH(a_seed_repeats_a_text, folder_new, folder_remove) {
    BASIN_AT_EXIT(bench_close) bench b;
    page one = {0}, two = {0}, other = {0};
    bench_open(&b, state, "repeat", "cpu");
    basin_text_model *model = bench_model(&b);
    basin_text_generation wish = {.tokens = 60, .temperature = 1, .seed = 7};
    basin_text_generated r = generate(&one, model, "the ", wish);
    generate(&two, model, "the ", wish);
    wish.seed = 8;
    generate(&other, model, "the ", wish);
    assert_int_equal(r.prompt, 4);
    assert_int_equal(r.tokens, 60);
    assert_int_equal(one.given, 4);
    assert_int_equal(one.tokens, 64);
    assert_true(isnan(one.surprise[0]) && isfinite(one.surprise[1]));
    assert_string_equal(one.text, two.text);
    assert_string_not_equal(one.text, other.text);
    basin_text_close(model);
}

/* Temperature 0, one candidate, and a very low temperature are the same. */
TEST_WITH(one_candidate_is_greedy, folder_new, folder_remove) {
    BASIN_AT_EXIT(bench_close) bench b;
    page cold = {0}, one = {0}, low = {0};
    bench_open(&b, state, "greedy", "cpu");
    b.s->arch = "gpt";
    b.s->epochs = 20;
    basin_text_model *model = bench_model(&b);
    generate(&cold, model, "a rat", (basin_text_generation){.tokens = 40});
    generate(&one, model, "a rat",
             (basin_text_generation){.tokens = 40, .temperature = 3, .top_k = 1, .seed = 4});
    generate(&low, model, "a rat",
             (basin_text_generation){.tokens = 40, .temperature = 1e-6, .seed = 9});
    assert_string_equal(cold.text, one.text);
    assert_string_equal(cold.text, low.text);
    basin_text_close(model);
}

/* What generation says of a token is what scoring says: windows of all lengths, filled up or not,
 * give the same numbers. */
TEST_WITH(surprises_are_losses, folder_new, folder_remove) {
    static const char *const backends[] = {"ref", "cpu"};
    for (int i = 0; i < 2; i++) {
        bench b;
        page p = {0};
        bench_open(&b, state, "surprise", backends[i]);
        b.s->context = 40;
        basin_text_model *model = bench_model(&b);
        generate(&p, model, "the cat", (basin_text_generation){.tokens = 30, .temperature = 1});
        for (int tokens = 12; tokens <= 37; tokens += 25) {
            char text[40] = {0};
            double sum = 0;
            memcpy(text, p.text, (size_t)tokens);
            basin_text_scores s = score(model, text, (basin_text_scoring){.part = BASIN_TEXT_ALL});
            for (int n = 1; n < tokens; n++) sum += p.surprise[n];
            assert_true(fabs(sum / (tokens - 1) - s.loss) < (i ? 1e-4 : 1e-10));
            basin_text_scores_free(&s);
        }
        basin_text_close(model);
        bench_close(&b);
    }
}

/* Tokens have the same energies whether they are given or were generated. */
TEST_WITH(energies_of_tokens, folder_new, folder_remove) {
    BASIN_AT_EXIT(bench_close) bench b;
    page made = {0}, given = {0};
    bench_open(&b, state, "energies", "ref");
    b.s->context = 40;
    basin_text_model *model = bench_model(&b);
    generate(&made, model, "the ",
             (basin_text_generation){.tokens = 20, .temperature = 1, .energies = true});
    assert_int_equal(made.steps, 2);
    assert_int_equal(made.tokens, 24);
    generate(&given, model, made.text, (basin_text_generation){.energies = true});
    assert_int_equal(given.given, 24);
    for (int n = 0; n < 24; n++) {
        assert_true(fabs(made.first[n] - given.first[n]) < 1e-9);
        assert_true(fabs(made.last[n] - given.last[n]) < 1e-9);
        assert_true(made.last[n] != made.first[n]);
    }
    BASIN_AT_EXIT(basin_text_scores_free)
    basin_text_scores s = score(model, made.text, (basin_text_scoring){.part = BASIN_TEXT_ALL});
    double end = 0;
    for (int n = 0; n < 23; n++) end += made.last[n] / 23;
    assert_true(fabs(s.energy - end) < 1e-9);
    basin_text_close(model);
}

TEST_WITH(long_prompts_are_cropped, folder_new, folder_remove) {
    BASIN_AT_EXIT(bench_close) bench b;
    basin_error error = {0};
    page p = {0};
    bench_open(&b, state, "long", "cpu");
    basin_text_model *model = bench_model(&b);
    basin_text_generated r = generate(&p, model, "the cat sat on the mat",
                                      (basin_text_generation){.tokens = 3, .watch = &b.watch});
    assert_int_equal(r.prompt, 22);
    assert_int_equal(r.cropped, 10);
    assert_int_equal(p.tokens, 25);
    assert_true(isnan(p.surprise[9]) && isnan(p.surprise[10]) && isfinite(p.surprise[11]));
    assert_string_equal(b.note, "the prompt has 22 tokens, of which the model sees the last 12");
    p.stop_after = 8;
    r = generate(&p, model, "the", (basin_text_generation){.tokens = 100, .temperature = 1});
    assert_int_equal(r.tokens, 5);
    basin_text a = text_of("a"), unknown = text_of("A");
    basin_text_generation wish = {.tokens = 5, .temperature = -1};
    assert_int_equal(basin_text_generate(NULL, model, &a, &wish, &error), BASIN_BAD_VALUE);
    assert_string_equal(error.text, "temperature is -1, wanted 0 or more");
    wish.temperature = 1;
    assert_int_equal(basin_text_generate(NULL, model, &unknown, &wish, &error), BASIN_BAD_VALUE);
    assert_non_null(strstr(error.text, "the prompt: "));
    must(basin_text_generate(NULL, model, NULL, &wish, &error), &error);
    basin_text_close(model);
}

TEST_WITH(a_gpt_has_no_energies, folder_new, folder_remove) {
    BASIN_AT_EXIT(bench_close) bench b;
    bench_open(&b, state, "gpt", "cpu");
    b.s->arch = "gpt";
    basin_text_model *model = bench_model(&b);
    assert_false(basin_text_about(model).energies);
    basin_text a = text_of("a");
    basin_text_generation wish = {.energies = true};
    assert_int_equal(basin_text_generate(NULL, model, &a, &wish, &failure), BASIN_UNSUPPORTED);
    BASIN_AT_EXIT(basin_text_scores_free)
    basin_text_scores s = score(model, VERSE, (basin_text_scoring){.part = BASIN_TEXT_ALL});
    assert_true(isnan(s.energy));
    basin_text_close(model);
}
