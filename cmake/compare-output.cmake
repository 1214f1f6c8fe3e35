# Runs PROGRAM (under LAUNCHER, if that is not empty), writes what it prints to ACTUAL and fails
# unless that equals the file EXPECTED.
separate_arguments(launcher UNIX_COMMAND "${LAUNCHER}")
execute_process(COMMAND ${launcher} ${PROGRAM} OUTPUT_FILE ${ACTUAL} RESULT_VARIABLE result)
if(NOT result EQUAL 0)
    message(FATAL_ERROR "${PROGRAM} ended with ${result}")
endif()
if(NOT EXISTS ${EXPECTED})
    message(FATAL_ERROR "${EXPECTED} is missing; the program's output is in ${ACTUAL}")
endif()
execute_process(COMMAND diff -u ${EXPECTED} ${ACTUAL} RESULT_VARIABLE result)
if(NOT result EQUAL 0)
    message(FATAL_ERROR "the output is not that of ${EXPECTED}")
endif()
