// The operations table: reading it, and finding the operation of a request.
// Run by ctest.
#include "idempotency/operations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

using idempotency::Operations;

namespace {

/// A file with some text, removed at the end.
class File {
public:
    explicit File(const std::string& text) : path_(std::filesystem::temp_directory_path() / "operations.XXXXXX") {
        close(mkstemp(path_.data()));
        std::ofstream(path_) << text;
    }
    ~File() { std::filesystem::remove(path_); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    [[nodiscard]] const std::string& path() const noexcept { return path_; }

private:
    std::string path_;
};

std::string error_of(const std::string& text) {
    const File file(text);
    try {
        (void)Operations::load(file.path());
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST(Operations, AreReadFromWhatTheToolWrites) {
    const File file(R"({"operations": [
        {"action": "orders.create", "method": "POST", "path": "/orders", "keyed": true, "key_required": true,
         "etag_statuses": [200, 201], "body_limit": 65536},
        {"action": "orders.list", "method": "GET", "path": "/orders", "keyed": false}]})");
    const Operations operations = Operations::load(file.path());
    ASSERT_EQ(operations.entries().size(), 2U);
    const idempotency::Operation& create = operations.match("POST", "/orders?dry_run=1")->operation;
    EXPECT_EQ(create.action, "orders.create");
    EXPECT_TRUE(create.keyed);
    EXPECT_TRUE(create.key_required);
    EXPECT_THAT(create.etag_statuses, ::testing::ElementsAre(200, 201));
    EXPECT_EQ(create.body_limit, 65536U);
    const idempotency::Operation& list = operations.match("GET", "/orders")->operation;
    EXPECT_FALSE(list.keyed);
    EXPECT_EQ(list.body_limit, idempotency::Operation().body_limit);
}

TEST(Operations, MatchSegmentBySegmentAndPreferPlainOnes) {
    const auto entry = [](const char* method, const char* path) {
        return Operations::Entry{method, path, {.action = path}};
    };
    const Operations operations({entry("GET", "/{a}/{b}"), entry("GET", "/orders/{id}"), entry("GET", "/orders/latest"),
                                 entry("GET", "/{a}/latest"), entry("PUT", "/orders/{id}"), entry("GET", "/")});
    const auto matched = [&](const char* method, const char* path) {
        const Operations::Entry* const found = operations.match(method, path);
        return found == nullptr ? "none" : found->path;
    };
    EXPECT_EQ(matched("GET", "/orders/7"), "/orders/{id}");
    EXPECT_EQ(matched("GET", "/orders/latest"), "/orders/latest");
    EXPECT_EQ(matched("GET", "/users/latest"), "/{a}/latest");
    EXPECT_EQ(matched("GET", "/users/7#x"), "/{a}/{b}");
    EXPECT_EQ(matched("PUT", "/orders/a%2Fb?c=/d/e"), "/orders/{id}");
    EXPECT_EQ(matched("GET", "/"), "/");
    for (const char* path : {"", "orders/7", "/orders", "/orders/", "/orders/7/", "/orders/7/8", "//"}) {
        EXPECT_EQ(matched("GET", path), "none") << path;
    }
    EXPECT_EQ(matched("get", "/orders/7"), "none");
    EXPECT_EQ(matched("DELETE", "/orders/7"), "none");
}

TEST(Operations, ErrorsNameTheFileAndTheEntry) {
    EXPECT_THAT(error_of(""), ::testing::HasSubstr("is no operations table"));
    EXPECT_THAT(error_of("[]"), ::testing::HasSubstr("is no operations table"));
    EXPECT_THAT(error_of(R"({"operations": [{"action": "a", "method": "GET", "path": "/", "keyed": false}, {}]})"),
                ::testing::HasSubstr("operation 2: "));
    EXPECT_THAT(error_of(R"({"operations": [{"action": "a", "method": "GET", "path": "x", "keyed": false}]})"),
                ::testing::HasSubstr("operation 1: path must begin with a slash"));
    EXPECT_THROW((void)Operations::load("/no/such/file"), std::runtime_error);
}
