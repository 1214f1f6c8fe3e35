# A user's project: USER_LANGUAGE, C or CXX, is all it knows.
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES ${USER_LANGUAGE})
set(CMAKE_CXX_STANDARD 20) # for the first example, which names the fields it sets
find_package(Basin ${BASIN_VERSION} EXACT REQUIRED COMPONENTS shared static tasks tasks_static)
set_source_files_properties(
    00_first_program.c user.c tasks.c PROPERTIES LANGUAGE ${USER_LANGUAGE})

function(add_program name source library)
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE ${library})
endfunction()
add_program(first 00_first_program.c basin::basin)
add_program(user_shared user.c basin::basin)
add_program(user_static user.c basin::static)
add_program(tasks_shared tasks.c basin::tasks)
add_program(tasks_static tasks.c basin::tasks_static)
