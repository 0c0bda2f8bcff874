// What every test of the conformance suite has: a client of the server under test.
// The server must speak client/examples/openapi.yaml, and honour the header Demo-Behaviour.
#pragma once

#include "orders_client.hpp"

/// The address of the server and two of its principals come from the environment; see main.cpp.
class ConformanceTest : public ::testing::Test, protected OrdersClient {
protected:
    ConformanceTest();

    std::string other_principal;
};
