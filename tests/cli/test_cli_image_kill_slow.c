/* Killed at ten random moments, a training run resumes each time and ends as an uninterrupted one.
 */
#include "cli/image_kill.h"

static void ten_kills(void **state) { survive(state, 60, 10, 200); }

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(ten_kills)};
    return cmocka_run_group_tests(tests, folder_new, program_teardown);
}
