/* The C interface: canonical JSON, fingerprint and key for bindings of other languages. Plain C; no exception crosses it.
 * Called by programs outside of C++; implemented in c_interface.cpp. Every function may be called from any thread. */
#ifndef IDEMPOTENCY_IDEMPOTENCY_H
#define IDEMPOTENCY_IDEMPOTENCY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The outcome of a call, and why a document has no canonical form. The numbers never change. */
typedef enum idempotency_result {
    IDEMPOTENCY_OK = 0,                  /**< it worked */
    IDEMPOTENCY_NOT_JSON = 1,            /**< does not parse (RFC 8259) */
    IDEMPOTENCY_DUPLICATE_MEMBER = 2,    /**< two members of one object have the same name, compared unescaped */
    IDEMPOTENCY_INVALID_UTF8 = 3,        /**< bytes that are not UTF-8 */
    IDEMPOTENCY_LONE_SURROGATE = 4,      /**< an escaped surrogate without its partner */
    IDEMPOTENCY_NUMBER_OUT_OF_RANGE = 5, /**< a number beyond the range of a double */
    IDEMPOTENCY_NUMBER_NOT_EXACT = 6,    /**< only with IDEMPOTENCY_EXACT_NUMBERS */
    IDEMPOTENCY_NESTING_TOO_DEEP = 7,    /**< more than 1000 open arrays and objects */
    IDEMPOTENCY_OUT_OF_MEMORY = 100,     /**< memory for the answer could not be had */
    IDEMPOTENCY_CRYPTO_FAILED = 101,     /**< OpenSSL did not compute the hash */
    IDEMPOTENCY_INVALID_ARGUMENT = 102   /**< a null pointer where a value is needed, or a flag that is not known */
} idempotency_result;

/** Flag: a number whose canonical text has another decimal value (9007199254740993), and -0, has no canonical form. */
#define IDEMPOTENCY_EXACT_NUMBERS 1u

/** The size of a fingerprint in bytes. */
#define IDEMPOTENCY_FINGERPRINT_SIZE 32

/** The size of a key's text with its terminating zero, in bytes. */
#define IDEMPOTENCY_KEY_TEXT_SIZE 37

/** A short English text for a result, lower case; never null. The text is static. */
const char *idempotency_result_text(idempotency_result result);

/**
 * The canonical form of a JSON document (RFC 8785).
 *
 * @param document       UTF-8, not terminated; may be null when size is 0
 * @param size           of the document in bytes
 * @param flags          0 or IDEMPOTENCY_EXACT_NUMBERS
 * @param canonical      receives the canonical form, terminated by a zero that is not counted; free it with
 *                       idempotency_free(). Null unless the result is IDEMPOTENCY_OK.
 * @param canonical_size receives its size in bytes
 * @param error_offset   receives the byte offset of what has no canonical form, else 0; may be null
 * @return IDEMPOTENCY_OK, or why there is no canonical form
 */
idempotency_result idempotency_canonical_json(const char *document, size_t size, unsigned flags, char **canonical,
                                              size_t *canonical_size, size_t *error_offset);

/** Frees what idempotency_canonical_json() returned. Null is allowed. */
void idempotency_free(char *canonical);

/**
 * The fingerprint of a request: SHA-256 over the upper-case method, LF, path, LF, canonical body; the raw bytes of a body
 * without canonical form; nothing for an empty one.
 *
 * @param method      terminated, any case, e.g. "POST"
 * @param path        terminated, escaped, as sent, without query, e.g. "/api/v1/orders"
 * @param body        may be null when body_size is 0
 * @param body_size   in bytes
 * @param flags       0 or IDEMPOTENCY_EXACT_NUMBERS
 * @param fingerprint receives IDEMPOTENCY_FINGERPRINT_SIZE bytes; unchanged unless the result is IDEMPOTENCY_OK
 * @param body_result receives IDEMPOTENCY_OK, or why the raw bytes were used; may be null
 * @return IDEMPOTENCY_OK also when the raw bytes were used; IDEMPOTENCY_OUT_OF_MEMORY, IDEMPOTENCY_CRYPTO_FAILED, or
 *         IDEMPOTENCY_INVALID_ARGUMENT
 */
idempotency_result idempotency_fingerprint(const char *method, const char *path, const void *body, size_t body_size,
                                           unsigned flags, unsigned char *fingerprint, idempotency_result *body_result);

/** The same with HMAC-SHA-256 (RFC 2104) under hmac_key, of hmac_key_size bytes, in place of SHA-256. */
idempotency_result idempotency_fingerprint_keyed(const void *hmac_key, size_t hmac_key_size, const char *method,
                                                 const char *path, const void *body, size_t body_size, unsigned flags,
                                                 unsigned char *fingerprint, idempotency_result *body_result);

/**
 * Reads the value of an Idempotency-Key header: a UUIDv7, bare or quoted, in any case.
 *
 * @param value      the value as sent; may be null when value_size is 0
 * @param value_size in bytes
 * @param key        receives the key's text in lower case, IDEMPOTENCY_KEY_TEXT_SIZE bytes; may be null
 * @return 1 when it is a key, else 0
 */
int idempotency_parse_key(const char *value, size_t value_size, char *key);

#ifdef __cplusplus
}
#endif

#endif
