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

foreach(lines 10000000 100000000)
  add_test(NAME slow.number_sequence_${lines} COMMAND unit_tests --gtest_filter=CanonicalNumber.FollowsThePublishedSequence)
  set_tests_properties(slow.number_sequence_${lines} PROPERTIES LABELS slow ENVIRONMENT IDEMPOTENCY_NUMBER_LINES=${lines} TIMEOUT 600)
endforeach()
