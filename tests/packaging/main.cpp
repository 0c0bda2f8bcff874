// A program of somebody who uses the installed library.
// Built with CMake and with pkg-config by tests/install and tests/packages.
#include <idempotency/operations.hpp>

int main() {
    idempotency::Pool pool("", 1);
    const idempotency::Stage stage(pool, {});
    const idempotency::Problem problem{404, "not_found", "Not found", "No.", {}, {}};
    return stage.refuse({"GET", "/", {}, ""}, problem).status == 404 && idempotency::parse_key("x") == std::nullopt ? 0
                                                                                                                    : 1;
}
