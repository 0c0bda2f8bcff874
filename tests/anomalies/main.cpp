// Runs the tests and prints a line each, with how often it made something fail.
// Called by tests/anomalies/run.
#include <gtest/gtest.h>

#include <iostream>

namespace {

class Lines final : public ::testing::EmptyTestEventListener {
    void OnTestPartResult(const ::testing::TestPartResult& part) override {
        if (part.failed() && ++shown_ <= most_shown) {
            std::cout << part.file_name() << ':' << part.line_number() << ": " << part.message() << '\n';
        }
    }
    void OnTestEnd(const ::testing::TestInfo& test) override {
        const ::testing::TestResult& result = *test.result();
        std::cout << (result.Passed() ? "ok " : "not ok ") << test.name();
        for (int i = 0; i < result.test_property_count(); ++i) {
            const ::testing::TestProperty& property = result.GetTestProperty(i);
            std::cout << (i == 0 ? ": " : ", ") << property.key() << ' ' << property.value();
        }
        std::cout << " (" << result.elapsed_time() << " ms)" << std::endl;
        shown_ = 0;
    }

    static constexpr int most_shown = 5;
    int shown_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    ::testing::InitGoogleTest(&argc, argv);
    ::testing::TestEventListeners& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new Lines);
    return RUN_ALL_TESTS();
}
