// Statements without a kept plan, for what runs seldom.
// Called by the subjects schedule and partitions.
#include "pg/spi.hpp"

#include <array>

#include "pg/arguments.hpp"

namespace pg {

void require_success(int code) {
    if (code < 0) {
        elog(ERROR, "SPI failed: %s", SPI_result_code_string(code));
    }
}

Parameter::Parameter(std::string_view string) : type(TEXTOID), value(text_datum(string)) {}

std::optional<Datum> first_value(const char* sql, std::initializer_list<Parameter> parameters) {
    std::array<Datum, 4> values{};
    std::array<Oid, 4> types{};
    int count = 0;
    for (const Parameter& parameter : parameters) {
        values.at(count) = parameter.value;
        types.at(count++) = parameter.type;
    }
    bool is_null = false;
    bool found = false;
    const Datum value = call([&] {
        require_success(SPI_execute_with_args(sql, count, types.data(), values.data(), nullptr, false, 1));
        found = SPI_processed > 0 && SPI_tuptable != nullptr;
        return found ? SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &is_null) : Datum{};
    });
    return found && !is_null ? std::optional(value) : std::nullopt;
}

std::optional<std::string> first_text(const char* sql, std::initializer_list<Parameter> parameters) {
    const std::optional<Datum> value = first_value(sql, parameters);
    if (!value) {
        return std::nullopt;
    }
    const char* const string = call([&] { return TextDatumGetCString(*value); });
    return string;
}

void execute(const std::string& sql) {
    const char* const statement = sql.c_str();
    call([&] { require_success(SPI_execute(statement, false, 0)); });
}

std::string quoted_literal(const std::string& string) {
    const char* const plain = string.c_str();
    return call([&] { return quote_literal_cstr(plain); });
}

}  // namespace pg
