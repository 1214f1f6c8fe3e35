/* The program of test_headers: that it compiles is the test. CMake writes the two files beside it
 * that include every header of src and include, see cmake/tests.cmake. */
int main(void) { return 0; }
