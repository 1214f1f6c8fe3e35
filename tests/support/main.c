/* The program of a test file that has none of its own; see test.h. */
#include "support/test.h"

int main(void) { return tests_run(NULL, NULL); }
