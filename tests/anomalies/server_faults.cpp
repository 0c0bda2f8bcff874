// Makes the N-th call of a kind fail that the extension makes, as the settings anomaly.* say; and the N-th malloc of the server while the extension
// waits for it. Preloaded by the server of tests/anomalies/run, which links the extension so that each __wrap_X below stands in front of X.
//
// Left alone is what the server does by itself, before, after and between the extension's calls, and while it commits or rolls back: it turns an
// error there into the end of the session or of all sessions, with this extension and without it.
#include <cstdarg>
#include <cstdlib>
#include <new>

#include <openssl/evp.h>

#include "pg/server.hpp"

// Every program that starts the server loads this as well: it must not need the server's variables.
#pragma weak SPI_result

namespace {

enum Kind : int {
    allocation,        ///< a server function that takes memory raises 53200
    every_allocation,  ///< as allocation and operator_new, but from the N-th on all of them, also where an error is copied
    server_malloc,     ///< malloc gives the server no memory while it works for the extension
    operator_new,      ///< throws std::bad_alloc
    spi_error,         ///< an SPI function raises instead of doing its work
    spi_error_after,  ///< ... or once it is done
    spi_code,         ///< ... or returns a code of failure
    openssl           ///< a function of OpenSSL fails
};

constexpr config_enum_entry kinds[] = {{"allocation", allocation, false},
                                       {"every_allocation", every_allocation, false},
                                       {"server_malloc", server_malloc, false},
                                       {"operator_new", operator_new, false},
                                       {"spi_error", spi_error, false},
                                       {"spi_error_after", spi_error_after, false},
                                       {"spi_code", spi_code, false},
                                       {"openssl", openssl, false},
                                       {nullptr, 0, false}};

int kind = allocation;
int fail_at = 0;         ///< 0: nothing fails
int calls = 0;           ///< of this kind, since fail_at was set
int failed = 0;          ///< how many did; kept when fail_at becomes 0
int objects = 0;         ///< of C++ that were made and not yet deleted
bool in_server = false;  ///< the extension waits for the server

void count_anew(int wanted, void*) {
    calls = 0;
    failed = wanted == 0 ? failed : 0;
}

bool due(Kind of) {
    const bool lasting = kind == every_allocation && (of == allocation || of == operator_new);
    if (fail_at == 0 || (of != kind && !lasting)) {
        return false;
    }
    ++calls;
    const bool now = lasting ? calls >= fail_at : calls == fail_at;
    failed += now ? 1 : 0;
    return now;
}

void may_run_out_of_memory() {
    if (due(allocation)) {
        ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory"), errdetail("An anomaly.")));
    }
}

void may_raise(Kind when) {
    if (due(when)) {
        ereport(ERROR, (errcode(ERRCODE_DISK_FULL), errmsg("anomaly"), errdetail("A detail."), errhint("A hint.")));
    }
}

}  // namespace

extern "C" {

void* __libc_malloc(std::size_t);
void* __libc_realloc(void*, std::size_t);

void* malloc(std::size_t size) noexcept { return in_server && due(server_malloc) ? nullptr : __libc_malloc(size); }

void* realloc(void* memory, std::size_t size) noexcept {
    return in_server && due(server_malloc) ? nullptr : __libc_realloc(memory, size);
}

}  // extern "C"

void* operator new(std::size_t size) {
    void* const memory = due(operator_new) ? nullptr : std::malloc(size == 0 ? 1 : size);
    if (memory == nullptr) {
        throw std::bad_alloc();
    }
    ++objects;
    return memory;
}

void operator delete(void* memory) noexcept {
    objects -= memory != nullptr ? 1 : 0;
    std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

extern "C" {

/// The last thing that the extension does when it is loaded is to define this one.
void __wrap_DefineCustomBoolVariable(const char* name, const char* short_text, const char* long_text, bool* value,
                                     bool boot, GucContext context, int flags, GucBoolCheckHook check,
                                     GucBoolAssignHook assign, GucShowHook show) {
    DefineCustomBoolVariable(name, short_text, long_text, value, boot, context, flags, check, assign, show);
    DefineCustomEnumVariable("anomaly.kind", "What fails.", nullptr, &kind, allocation, kinds, PGC_USERSET, 0, nullptr,
                             nullptr, nullptr);
    DefineCustomIntVariable("anomaly.fail_at", "Which call.", nullptr, &fail_at, 0, 0, INT_MAX, PGC_USERSET, 0, nullptr,
                            count_anew, nullptr);
    DefineCustomIntVariable("anomaly.failed", "How many did.", nullptr, &failed, 0, 0, INT_MAX, PGC_INTERNAL, 0,
                            nullptr, nullptr, nullptr);
    DefineCustomIntVariable("anomaly.objects", "How many objects of C++ live.", nullptr, &objects, 0, INT_MIN, INT_MAX,
                            PGC_INTERNAL, 0, nullptr, nullptr, nullptr);
}

// What takes memory, or does work that takes it.
#define MAY_RUN_OUT_OF_MEMORY(result, name, parameters, arguments) \
    result __wrap_##name parameters {                              \
        may_run_out_of_memory();                                   \
        return name arguments;                                     \
    }
MAY_RUN_OUT_OF_MEMORY(void*, palloc, (Size size), (size))
MAY_RUN_OUT_OF_MEMORY(void*, repalloc, (void* pointer, Size size), (pointer, size))
MAY_RUN_OUT_OF_MEMORY(void*, MemoryContextAlloc, (MemoryContext context, Size size), (context, size))
MAY_RUN_OUT_OF_MEMORY(varlena*, pg_detoast_datum_copy, (varlena * value), (value))
MAY_RUN_OUT_OF_MEMORY(varlena*, pg_detoast_datum_packed, (varlena * value), (value))
MAY_RUN_OUT_OF_MEMORY(text*, cstring_to_text_with_len, (const char* string, int size), (string, size))
MAY_RUN_OUT_OF_MEMORY(char*, text_to_cstring, (const text* value), (value))
MAY_RUN_OUT_OF_MEMORY(const char*, quote_identifier, (const char* name), (name))
MAY_RUN_OUT_OF_MEMORY(char*, quote_literal_cstr, (const char* string), (string))
MAY_RUN_OUT_OF_MEMORY(char*, pg_any_to_server, (const char* string, int size, int encoding), (string, size, encoding))
MAY_RUN_OUT_OF_MEMORY(char*, pg_server_to_any, (const char* string, int size, int encoding), (string, size, encoding))
MAY_RUN_OUT_OF_MEMORY(TupleDesc, CreateTemplateTupleDesc, (int columns), (columns))
MAY_RUN_OUT_OF_MEMORY(void, TupleDescInitEntry,
                      (TupleDesc descriptor, AttrNumber column, const char* name, Oid type, int32 modifier,
                       int dimensions),
                      (descriptor, column, name, type, modifier, dimensions))
MAY_RUN_OUT_OF_MEMORY(TupleDesc, BlessTupleDesc, (TupleDesc descriptor), (descriptor))
MAY_RUN_OUT_OF_MEMORY(HeapTuple, heap_form_tuple, (TupleDesc descriptor, Datum* values, bool* nulls),
                      (descriptor, values, nulls))
MAY_RUN_OUT_OF_MEMORY(Datum, HeapTupleHeaderGetDatum, (HeapTupleHeader tuple), (tuple))
MAY_RUN_OUT_OF_MEMORY(char*, get_database_name, (Oid database), (database))
MAY_RUN_OUT_OF_MEMORY(char*, get_namespace_name, (Oid schema), (schema))
MAY_RUN_OUT_OF_MEMORY(Oid, get_namespace_oid, (const char* name, bool missing_ok), (name, missing_ok))
MAY_RUN_OUT_OF_MEMORY(Oid, get_func_namespace, (Oid function), (function))
MAY_RUN_OUT_OF_MEMORY(Oid, get_relname_relid, (const char* name, Oid schema), (name, schema))
MAY_RUN_OUT_OF_MEMORY(char*, GetUserNameFromId, (Oid role, bool missing_ok), (role, missing_ok))
MAY_RUN_OUT_OF_MEMORY(LockAcquireResult, LockAcquire, (const LOCKTAG* tag, LOCKMODE mode, bool session, bool dont_wait),
                      (tag, mode, session, dont_wait))
MAY_RUN_OUT_OF_MEMORY(void, BeginInternalSubTransaction, (const char* name), (name))
MAY_RUN_OUT_OF_MEMORY(void, ReleaseCurrentSubTransaction, (), ())
MAY_RUN_OUT_OF_MEMORY(int, set_config_option,
                      (const char* name, const char* value, GucContext context, GucSource source, GucAction action,
                       bool change, int level, bool is_reload),
                      (name, value, context, source, action, change, level, is_reload))
MAY_RUN_OUT_OF_MEMORY(Datum, DirectFunctionCall2Coll, (PGFunction function, Oid collation, Datum first, Datum second),
                      (function, collation, first, second))

/// The extension calls this first when the server has raised an error.
ErrorData* __wrap_CopyErrorData() {
    in_server = false;
    may_run_out_of_memory();
    return CopyErrorData();
}

char* __wrap_psprintf(const char* format, ...) {
    may_run_out_of_memory();
    constexpr Size enough = 16 * 1024;
    char* const text = static_cast<char*>(palloc(enough));
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, enough, format, arguments);
    va_end(arguments);
    return text;
}

// SPI raises before it does its work or after it, or returns a code.
#define MAY_FAIL_IN_SPI(name, parameters, arguments) \
    int __wrap_##name parameters {                   \
        may_raise(spi_error);                        \
        if (due(spi_code)) {                         \
            return SPI_ERROR_ARGUMENT;               \
        }                                            \
        in_server = true;                            \
        const int code = name arguments;             \
        in_server = false;                           \
        may_raise(spi_error_after);                  \
        return code;                                 \
    }
MAY_FAIL_IN_SPI(SPI_execute, (const char* sql, bool read_only, long limit), (sql, read_only, limit))
MAY_FAIL_IN_SPI(SPI_execute_plan, (SPIPlanPtr plan, Datum* values, const char* nulls, bool read_only, long limit),
                (plan, values, nulls, read_only, limit))
MAY_FAIL_IN_SPI(SPI_execute_with_args,
                (const char* sql, int count, Oid* types, Datum* values, const char* nulls, bool read_only, long limit),
                (sql, count, types, values, nulls, read_only, limit))
MAY_FAIL_IN_SPI(SPI_keepplan, (SPIPlanPtr plan), (plan))

SPIPlanPtr __wrap_SPI_prepare(const char* sql, int count, Oid* types) {
    may_raise(spi_error);
    if (due(spi_code)) {
        SPI_result = SPI_ERROR_ARGUMENT;
        return nullptr;
    }
    in_server = true;
    SPIPlanPtr const plan = SPI_prepare(sql, count, types);
    in_server = false;
    may_raise(spi_error_after);
    return plan;
}

// These never return a code of failure.
#define MAY_RAISE_IN_SPI(result, name, parameters, arguments) \
    result __wrap_##name parameters {                         \
        may_raise(spi_error);                                 \
        return name arguments;                                \
    }
MAY_RAISE_IN_SPI(int, SPI_connect_ext, (int options), (options))
MAY_RAISE_IN_SPI(void, SPI_commit, (), ())
MAY_RAISE_IN_SPI(Datum, SPI_getbinval, (HeapTuple row, TupleDesc descriptor, int column, bool* is_null),
                 (row, descriptor, column, is_null))
MAY_RAISE_IN_SPI(char*, SPI_getvalue, (HeapTuple row, TupleDesc descriptor, int column), (row, descriptor, column))

// OpenSSL returns null or 0.
EVP_MD* __wrap_EVP_MD_fetch(OSSL_LIB_CTX* library, const char* name, const char* properties) {
    return due(openssl) ? nullptr : EVP_MD_fetch(library, name, properties);
}
EVP_MD_CTX* __wrap_EVP_MD_CTX_new() { return due(openssl) ? nullptr : EVP_MD_CTX_new(); }
int __wrap_EVP_DigestInit_ex2(EVP_MD_CTX* context, const EVP_MD* type, const OSSL_PARAM* parameters) {
    return due(openssl) ? 0 : EVP_DigestInit_ex2(context, type, parameters);
}
int __wrap_EVP_DigestUpdate(EVP_MD_CTX* context, const void* data, std::size_t size) {
    return due(openssl) ? 0 : EVP_DigestUpdate(context, data, size);
}
int __wrap_EVP_DigestFinal_ex(EVP_MD_CTX* context, unsigned char* digest, unsigned int* size) {
    return due(openssl) ? 0 : EVP_DigestFinal_ex(context, digest, size);
}

}  // extern "C"
