// SPI as C++: a connection for the length of a scope.
// Used by every subject that runs SQL.
#pragma once

#include <exception>

#include "pg/boundary.hpp"

namespace pg {

/// A connection to SPI. Closed at the end of the scope, except when an exception leaves it: then the server's own clean-up at the end of the
/// failed (sub)transaction closes it, since a connection of a deeper function may lie on top.
class Spi {
public:
    /// @param options 0, or SPI_OPT_NONATOMIC for a procedure that commits
    explicit Spi(int options = 0) : exceptions_(std::uncaught_exceptions()) {
        call([&] { SPI_connect_ext(options); });
    }
    ~Spi() {
        if (std::uncaught_exceptions() == exceptions_) {
            SPI_finish();
        }
    }
    Spi(const Spi&) = delete;
    Spi& operator=(const Spi&) = delete;

private:
    int exceptions_;
};

}  // namespace pg
