# Tests of client/core beside the unit tests: vectors, the C interface, the tool, differential tests and fuzz targets.
# Included by CMakeLists.txt. Label unit: make check. Label slow: minutes.
add_test(NAME vectors.are_what_generate_writes COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/vectors/generate --check)
set_tests_properties(vectors.are_what_generate_writes PROPERTIES LABELS unit)

add_executable(c_interface_test unit/c_interface_test.c)
set_target_properties(c_interface_test PROPERTIES C_STANDARD 99 C_EXTENSIONS OFF LINKER_LANGUAGE CXX)
target_link_libraries(c_interface_test PRIVATE idempotency)
add_test(NAME c_interface.used_from_c COMMAND c_interface_test)
add_test(NAME tool.agrees_with_the_vectors
  COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/vectors/check_tool $<TARGET_FILE:idempotency-fingerprint>)
set_tests_properties(c_interface.used_from_c tool.agrees_with_the_vectors PROPERTIES LABELS unit)

# Against others: with the strict reader and Node's recorded answers in make check, with Node itself in the slow tests.
add_executable(canonicalise_lines fuzz/canonicalise_lines.cpp)
target_link_libraries(canonicalise_lines PRIVATE idempotency_core)
set(differential ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/differential $<TARGET_FILE:canonicalise_lines>)
set(with_node ${differential} --package ${CMAKE_CURRENT_BINARY_DIR}/npm)
add_test(NAME canonical_json.differential COMMAND ${differential})
set_tests_properties(canonical_json.differential PROPERTIES LABELS unit)
add_test(NAME slow.differential_documents COMMAND ${with_node} --documents 200000 --mutations 0 --numbers 0)
add_test(NAME slow.differential_mutations COMMAND ${with_node} --documents 0 --mutations 400000 --numbers 0 --seed 2)
add_test(NAME slow.differential_numbers COMMAND ${with_node} --documents 0 --mutations 0 --numbers 10000000 --seed 3)
set_tests_properties(slow.differential_documents slow.differential_mutations slow.differential_numbers PROPERTIES
  LABELS slow TIMEOUT 1800)

foreach(lines 10000000 100000000)
  add_test(NAME slow.number_sequence_${lines} COMMAND unit_tests --gtest_filter=CanonicalNumber.FollowsThePublishedSequence)
  set_tests_properties(slow.number_sequence_${lines} PROPERTIES LABELS slow ENVIRONMENT IDEMPOTENCY_NUMBER_LINES=${lines} TIMEOUT 600)
endforeach()

# The canonicaliser builds where there are no exceptions: that it compiles is the test.
add_library(canonical_json_without_exceptions OBJECT ../client/core/canonical_json.cpp
  ../client/core/canonical_json_parser.cpp ../client/core/canonical_number.cpp)
target_include_directories(canonical_json_without_exceptions PRIVATE ../client)
target_compile_options(canonical_json_without_exceptions PRIVATE -fno-exceptions)

# make bench
find_package(simdjson QUIET)
if(simdjson_FOUND)
  add_executable(canonical_json_bench EXCLUDE_FROM_ALL bench/canonical_json_bench.cpp)
  target_link_libraries(canonical_json_bench PRIVATE idempotency_core simdjson::simdjson nlohmann_json::nlohmann_json)
endif()
