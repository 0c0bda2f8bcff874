// The conformance suite: a client's view of the orders contract, for any server that speaks it.
// Started by tests/conformance/run for our server, and by hand for another one.
#include <cstdlib>
#include <iostream>

#include "conformance_test.hpp"

namespace {

std::string environment(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
}

std::string principal_of(bool other) {
    const std::string both = environment("CONFORMANCE_PRINCIPALS");
    const std::size_t comma = both.find(',');
    return comma == std::string::npos ? "" : other ? both.substr(comma + 1) : both.substr(0, comma);
}

}  // namespace

ConformanceTest::ConformanceTest()
    : OrdersClient(environment("CONFORMANCE_URL"), principal_of(false)), other_principal(principal_of(true)) {}

int main(int argc, char** argv) {
    ::testing::InitGoogleTest(&argc, argv);
    if (argc > 1 || environment("CONFORMANCE_URL").empty() || principal_of(true).empty()) {
        std::cerr
            << "usage: CONFORMANCE_URL=http://HOST:PORT CONFORMANCE_PRINCIPALS=UUID,UUID conformance_tests"
               " [options of GoogleTest]\n"
               "The server at that address must speak client/examples/openapi.yaml with the header Demo-Behaviour,"
               " and know both principals.\n";
        return 2;
    }
    return RUN_ALL_TESTS();
}
