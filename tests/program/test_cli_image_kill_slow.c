/* Killed at ten random moments, a training run resumes each time and ends as an uninterrupted one.
 */
#include "program/kill.h"

TEST(ten_kills) { survive_pictures(state, 60, 10); }

int main(void) { return tests_run(folder_new, program_teardown); }
