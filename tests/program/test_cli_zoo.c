/* basin zoo: the table and the sections of docs/zoo.md, which list the models of the library. */
#include "program/program.h"

#include "basin/zoo.h"

/* The page lists the models of the library, in its order, and README as many. */
TEST(lists_all_models) {
    cJSON *tree = run_json(run(state, "zoo list --json"));
    const cJSON *model, *models = json_at(tree, "models");
    const program *p = run_ok(state, "zoo list");
    static char readme[1 << 17];
    char words[200];
    int count = 0;
    cJSON_ArrayForEach(model, models) {
        const basin_zoo_model *row = basin_zoo_at(count++);
        assert_non_null(row);
        assert_string_equal(json_at(model, "model")->valuestring, row->name);
        assert_string_equal(json_at(model, "reference")->valuestring, row->reference);
        assert_contains(p->out, row->reference);
    }
    assert_null(basin_zoo_at(count));
    snprintf(words, sizeof words, "%d models", count);
    slurp(readme, sizeof readme, BASIN_SOURCE "/README.md");
    assert_contains(readme, words);
    model = cJSON_GetArrayItem(models, 2);
    assert_string_equal(json_at(model, "descends")->valuestring, "always");
    assert_string_equal(json_at(model, "skew_of_a_step")->valuestring, "0");
}

TEST(shows_each_model) {
    const basin_zoo_model *row;
    for (int i = 0; (row = basin_zoo_at(i)); i++)
        assert_contains(run_ok(state, "zoo list %s", row->name)->out, "src/engine/energy/");
    assert_contains(run_ok(state, "zoo list hyperset")->out, "straight through the norms");
}

TEST(wrong_usage) {
    assert_error(run(state, "zoo list unicorn"), 2, "no model 'unicorn' in the zoo");
    assert_error(run(state, "zoo list crate --json"), 2, "--json");
}

int main(void) { return tests_run(folder_new, program_teardown); }
