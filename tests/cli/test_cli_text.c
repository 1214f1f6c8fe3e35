/* basin text: train, eval and generate as a user calls them, interrupts, and wrong usage. */
#include "cli/program.h"

#include <math.h>

static const char TINY[] = "--context 12 --dim 16 --heads 2 --steps 2 --batch 4 --epoch-steps 5 "
                           "--epochs 2 --rate 0.01";

static void write_text(void **state, const char *name, int verses) {
    char path[PATH_TEXT];
    FILE *file = fopen(folder_path(path, state, name), "wb");
    assert_non_null(file);
    for (int i = 0; i < verses; i++)
        fputs("the cat sat on the mat; the rat sat on the hat.\n", file);
    fclose(file);
}

TEST_WITH(trains_scores_and_writes, folder_new, folder_remove) {
    write_text(state, "t.txt", 12);
    const program *p = run_ok(state, "text train t.txt %s -o m.safetensors", TINY);
    assert_contains(p->out, "m.safetensors\n");
    assert_contains(p->out, "bytes             518\n"); /* a tenth was held out */
    assert_contains(p->out, "validation        loss ");
    assert_contains(p->err, "epoch 2: validation loss ");
    cJSON *tree = run_json(run(state, "text eval m.safetensors t.txt --json"));
    assert_string_equal(json_at(tree, "part")->valuestring, "validation");
    assert_false(cJSON_IsTrue(json_at(tree, "trained_on")));
    double loss = json_at(tree, "loss")->valuedouble;
    assert_true(fabs(exp(loss) - json_at(tree, "perplexity")->valuedouble) < 1e-9);
    assert_int_equal(cJSON_GetArraySize(json_at(tree, "position_loss")), 12);
    p = run(state, "text eval m.safetensors t.txt --part all");
    assert_contains(p->out, "it was trained on: this is no test");
    p = run_ok(state, "text generate m.safetensors -p 'the ' --tokens 30 --seed 3");
    assert_int_equal(strlen(p->out), 4 + 30 + 1);
    assert_true(!strncmp(p->out, "the ", 4));
    assert_contains(p->err, "30 tokens, ");
    char text[64];
    snprintf(text, sizeof text, "%.34s", p->out);
    tree = run_json(run(state, "text generate m.safetensors -p 'the ' --tokens 30 --seed 3 --json "
                               "--energies"));
    assert_string_equal(json_at(tree, "text")->valuestring, text);
    assert_int_equal(cJSON_GetArraySize(json_at(tree, "tokens")), 34);
    assert_int_equal(cJSON_GetArraySize(json_at(tree, "tokens.33.energy")), 3);
}

TEST_WITH(says_how_long_it_trained, folder_new, folder_remove) {
    write_text(state, "t.txt", 12);
    const program *p =
        run(state, "text train t.txt %s --epochs 1 --warmup 0 -o m.safetensors", TINY);
    assert_contains(p->out, "epochs            1\n");
    assert_null(strstr(p->err, "warmup"));
    p = run(state, "text train t.txt %s --epochs 1 --warmup 3 -o m.safetensors", TINY);
    assert_contains(p->err, "the run ends in its warmup: the learning rate rises to ");
    p = run(state, "text train t.txt %s --epochs 0 --restart -o m.safetensors", TINY);
    assert_contains(p->out, "not trained: epochs is 0");
    assert_null(strstr(p->out, "nan"));
}

TEST_WITH(shows_energies, folder_new, folder_remove) {
    write_text(state, "t.txt", 12);
    run_ok(state, "text train t.txt %s -o m.safetensors -q", TINY);
    const program *p = run_ok(state, "text generate m.safetensors -p 'cat;' --tokens 0 --energies");
    assert_contains(p->out, "energy: start");
    assert_contains(p->out, "     2 . 't'");
    run_ok(state, "text train t.txt %s --arch gpt -o g.safetensors -q", TINY);
    p = run_ok(state, "text generate g.safetensors -p cat --tokens 2 --energies");
    assert_contains(p->err, "a GPT has no energy");
}

TEST_WITH(prints_what_it_would_do, folder_new, folder_remove) {
    write_text(state, "t.txt", 12);
    cJSON *tree = run_json(run(state, "text train --preset rival-gpt --print-config"));
    assert_string_equal(json_at(tree, "settings.arch")->valuestring, "gpt");
    assert_int_equal(json_at(tree, "settings.hidden")->valueint, 1344);
    tree = run_json(run(state, "text train t.txt %s --print-config", TINY));
    assert_int_equal(json_at(tree, "estimate.steps")->valueint, 10);
    assert_true(json_at(tree, "estimate.parameters")->valueint > 1000);
}

/* A model is trained on, with its own settings and tokens. */
TEST_WITH(goes_on_from_a_model, folder_new, folder_remove) {
    write_text(state, "t.txt", 12);
    run_ok(state, "text train t.txt %s --tokens bytes -o m.safetensors -q", TINY);
    const program *p =
        run(state, "text train t.txt --from m.safetensors --epochs 1 -o n.safetensors "
                   "--json -q");
    cJSON *tree = run_json(p);
    assert_int_equal(json_at(tree, "steps")->valueint, 5);
    assert_error(run(state, "text train t.txt --from m.safetensors --dim 8 -o o.safetensors -q"), 1,
                 "m.safetensors: ");
}

/* An .npy file of token ids is trained on, scored and continued in ids. */
TEST_WITH(token_ids, folder_new, folder_remove) {
    char path[PATH_TEXT], header[129];
    int length = snprintf(header, sizeof header,
                          "\x93NUMPY\x01%c\x76%c{'descr': '<u2', 'fortran_order': False, "
                          "'shape': (600,), }",
                          0, 0);
    memset(header + length, ' ', 127 - (size_t)length);
    header[127] = '\n';
    FILE *file = fopen(folder_path(path, state, "ids.npy"), "wb");
    assert_non_null(file);
    fwrite(header, 1, 128, file);
    for (int i = 0; i < 600; i++) fwrite((unsigned char[]){(unsigned char)(i % 7), 1}, 1, 2, file);
    fclose(file);
    const program *p = run_ok(state, "text train ids.npy %s -o m.safetensors", TINY);
    assert_contains(p->out, "tokens            540\n");
    assert_null(strstr(p->out, "byte"));
    p = run_ok(state, "text eval m.safetensors ids.npy");
    assert_contains(p->out, "per token\n");
    p = run_ok(state, "text generate m.safetensors -p '257 258' --tokens 3 -q");
    assert_true(!strncmp(p->out, "257 258 ", 8));
    int first, second, third;
    assert_int_equal(sscanf(p->out + 8, "%d %d %d", &first, &second, &third), 3);
    assert_error(run(state, "text generate m.safetensors -p 'the' -q"), 1, "numbers of tokens");
    assert_error(run(state, "text train ids.npy --tokens bytes -q"), 1, "wanted 'ids'");
    assert_error(run(state, "text eval m.safetensors ids.npy ids.npy -q"), 1, "wanted it alone");
}

/* A file that says it is large, and one that unpacks to more than anyone has, are refused before
 * they take memory. */
TEST_WITH(texts_beyond_memory, folder_new, folder_remove) {
    char line[2 * PATH_TEXT];
    write_text(state, "t.txt", 12);
    run_ok(state, "text train t.txt %s -o m.safetensors -q", TINY);
    snprintf(line, sizeof line,
             "cd '%s' && truncate -s 1T sparse.txt && truncate -s 300M zeros && gzip zeros",
             (const char *)*state);
    if (system(line) != 0) skip(); /* a file system without sparse files */
    assert_error(run(state, "text eval m.safetensors sparse.txt -q"), 1,
                 "which training and scoring have no memory for");
    assert_error(run(state, "text eval m.safetensors zeros.gz -q"), 1,
                 "unpacks to more than 200 times its size");
}

TEST_WITH(wrong_usage, folder_new, folder_remove) {
    write_text(state, "t.txt", 12);
    write_text(state, "short.txt", 1);
    run_ok(state, "text train t.txt %s -o m.safetensors -q", TINY);
    assert_int_equal(run(state, "text train")->code, 2);
    assert_int_equal(run(state, "text train t.txt --preset huge")->code, 2);
    assert_error(run(state, "text train none.txt -q"), 1, "none.txt");
    assert_error(run(state, "text train . -q"), 1, ".: is a folder, needs files: ./*.txt");
    assert_error(run(state, "text train short.txt -o s.safetensors -q"), 1,
                 "wanted more than the context, 64");
    assert_error(run(state, "text train t.txt --arch gpt --feed ff1 -q"), 1, "feed");
    assert_error(run(state, "text train t.txt --vocabulary 300 -q"), 1, "vocabulary");
    assert_int_equal(run(state, "text train t.txt --tokens bpe -q")->code, 2);
    assert_error(run(state, "text generate m.safetensors -p 'The' -q"), 1, "the prompt: ");
    assert_error(run(state, "text generate t.txt -q"), 1, "t.txt");
    assert_error(run(state, "text eval m.safetensors none.txt -q"), 1, "none.txt");
    assert_error(run(state, "text eval m.safetensors short.txt --part train -q"), 1,
                 "not the text that the model was trained on");
    assert_int_equal(run(state, "text generate m.safetensors --temperature -1")->code, 2);
    assert_int_equal(run(state, "text generate m.safetensors --temperature 0 --seed 4")->code, 2);
}
