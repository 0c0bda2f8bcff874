// SPI as C++: a connection for the length of a scope.
// Used by every subject that runs SQL.
#pragma once

#include <exception>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

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

/// Raises an error for what SPI reports by its return code. To be called where the server's errors are caught, so inside pg::call.
/// @param code what an SPI function returned
void require_success(int code);

/// A parameter of first_value.
struct Parameter {
    Parameter(std::string_view string);
    Parameter(const std::string& string) : Parameter(std::string_view(string)) {}
    Parameter(const char* string) : Parameter(std::string_view(string)) {}
    static Parameter time(TimestampTz time) noexcept { return {TIMESTAMPTZOID, TimestampTzGetDatum(time)}; }

    Oid type;
    Datum value;

private:
    Parameter(Oid type_given, Datum value_given) noexcept : type(type_given), value(value_given) {}
};

/// Runs one statement with at most four parameters.
/// @return the first column of the first row; nothing when there is no row or it is NULL. It lives until the connection to SPI is closed
/// @throws ServerError
std::optional<Datum> first_value(const char* sql, std::initializer_list<Parameter> parameters);

/// As first_value, for a column of type text.
std::optional<std::string> first_text(const char* sql, std::initializer_list<Parameter> parameters);

/// Runs one statement that takes no parameters, such as one that defines something. Names in it must be quoted.
/// @throws ServerError
void execute(const std::string& sql);

/// A string as a literal of SQL.
[[nodiscard]] std::string quoted_literal(const std::string& string);

}  // namespace pg
