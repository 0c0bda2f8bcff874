/* The C interface, used from C: what a binding of another language sees.
 * Run by ctest as a program of its own. */
#include <idempotency/idempotency.h>
#include <stdio.h>
#include <string.h>

static int failed = 0;

static void expect(int holds, const char *what) {
    printf("%s %s\n", holds ? "ok" : "not ok", what);
    failed += !holds;
}

static void canonical_form(void) {
    const char document[] = "{\"b\":1.0,\"a\":\"\\u0041\"}";
    char *canonical = NULL;
    size_t size = 0;
    size_t offset = 99;
    expect(idempotency_canonical_json(document, strlen(document), 0, &canonical, &size, &offset) == IDEMPOTENCY_OK, "canonical form");
    expect(size == 15 && canonical != NULL && strcmp(canonical, "{\"a\":\"A\",\"b\":1}") == 0 && offset == 0, "canonical text");
    idempotency_free(canonical);
    idempotency_free(NULL);

    expect(idempotency_canonical_json("[1 2]", 5, 0, &canonical, &size, &offset) == IDEMPOTENCY_NOT_JSON, "not JSON");
    expect(canonical == NULL && size == 0 && offset == 3, "nothing but the offset of an error");
    expect(idempotency_canonical_json(NULL, 0, 0, &canonical, &size, NULL) == IDEMPOTENCY_NOT_JSON, "empty document");
    expect(idempotency_canonical_json("-0", 2, IDEMPOTENCY_EXACT_NUMBERS, &canonical, &size, NULL) == IDEMPOTENCY_NUMBER_NOT_EXACT,
           "exact numbers");
}

static void every_reason(void) {
    static const struct {
        const char *document;
        idempotency_result result;
        const char *text;
    } cases[] = {
        {"x", IDEMPOTENCY_NOT_JSON, "not JSON"},
        {"{\"a\":1,\"a\":1}", IDEMPOTENCY_DUPLICATE_MEMBER, "duplicate member name"},
        {"\"\xff\"", IDEMPOTENCY_INVALID_UTF8, "invalid UTF-8"},
        {"\"\\ud800\"", IDEMPOTENCY_LONE_SURROGATE, "lone surrogate"},
        {"1e400", IDEMPOTENCY_NUMBER_OUT_OF_RANGE, "number beyond the range of a double"},
    };
    char deep[1001];
    char *canonical = NULL;
    size_t size = 0;
    size_t i;
    for (i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        const idempotency_result result =
            idempotency_canonical_json(cases[i].document, strlen(cases[i].document), 0, &canonical, &size, NULL);
        expect(result == cases[i].result && strcmp(idempotency_result_text(result), cases[i].text) == 0, cases[i].text);
    }
    memset(deep, '[', sizeof deep);
    expect(idempotency_canonical_json(deep, sizeof deep, 0, &canonical, &size, NULL) == IDEMPOTENCY_NESTING_TOO_DEEP, "nesting too deep");
    expect(strcmp(idempotency_result_text((idempotency_result)12345), "unknown result") == 0, "unknown result");
}

static void fingerprints(void) {
    unsigned char one[IDEMPOTENCY_FINGERPRINT_SIZE] = {0};
    unsigned char other[IDEMPOTENCY_FINGERPRINT_SIZE] = {0};
    idempotency_result body = IDEMPOTENCY_OUT_OF_MEMORY;
    expect(idempotency_fingerprint("post", "/a", "{\"b\":2,\"a\":1}", 13, 0, one, &body) == IDEMPOTENCY_OK && body == IDEMPOTENCY_OK,
           "fingerprint");
    expect(idempotency_fingerprint("POST", "/a", "{\"a\":1,\"b\":2.0}", 15, 0, other, NULL) == IDEMPOTENCY_OK &&
               memcmp(one, other, sizeof one) == 0,
           "one fingerprint for two spellings");
    expect(idempotency_fingerprint("POST", "/a", NULL, 0, 0, other, &body) == IDEMPOTENCY_OK && memcmp(one, other, sizeof one) != 0,
           "no body");
    expect(idempotency_fingerprint("POST", "/a", "x", 1, 0, other, &body) == IDEMPOTENCY_OK && body == IDEMPOTENCY_NOT_JSON, "raw bytes");
    expect(idempotency_fingerprint_keyed("key", 3, "POST", "/a", "{\"a\":1,\"b\":2}", 13, 0, other, &body) == IDEMPOTENCY_OK &&
               memcmp(one, other, sizeof one) != 0,
           "keyed fingerprint");
}

static void keys(void) {
    const char value[] = " \"01890A5D-AC96-7B7C-8F89-37C3D0A6C0FF\" ";
    char key[IDEMPOTENCY_KEY_TEXT_SIZE];
    expect(idempotency_parse_key(value, strlen(value), key) == 1 && strcmp(key, "01890a5d-ac96-7b7c-8f89-37c3d0a6c0ff") == 0, "key");
    expect(idempotency_parse_key(value, strlen(value), NULL) == 1, "key checked only");
    expect(idempotency_parse_key("no", 2, key) == 0 && idempotency_parse_key(NULL, 0, key) == 0, "no key");
}

static void wrong_arguments(void) {
    unsigned char value[IDEMPOTENCY_FINGERPRINT_SIZE];
    char *canonical = NULL;
    size_t size = 0;
    expect(idempotency_canonical_json(NULL, 1, 0, &canonical, &size, NULL) == IDEMPOTENCY_INVALID_ARGUMENT, "null document");
    expect(idempotency_canonical_json("1", 1, 0, NULL, &size, NULL) == IDEMPOTENCY_INVALID_ARGUMENT, "null answer");
    expect(idempotency_canonical_json("1", 1, 2, &canonical, &size, NULL) == IDEMPOTENCY_INVALID_ARGUMENT, "unknown flag");
    expect(idempotency_fingerprint(NULL, "/", NULL, 0, 0, value, NULL) == IDEMPOTENCY_INVALID_ARGUMENT, "null method");
    expect(idempotency_fingerprint("POST", NULL, NULL, 0, 0, value, NULL) == IDEMPOTENCY_INVALID_ARGUMENT, "null path");
    expect(idempotency_fingerprint("POST", "/", NULL, 1, 0, value, NULL) == IDEMPOTENCY_INVALID_ARGUMENT, "null body");
    expect(idempotency_fingerprint("POST", "/", NULL, 0, 0, NULL, NULL) == IDEMPOTENCY_INVALID_ARGUMENT, "null fingerprint");
    expect(idempotency_fingerprint_keyed(NULL, 1, "POST", "/", NULL, 0, 0, value, NULL) == IDEMPOTENCY_INVALID_ARGUMENT, "null HMAC key");
}

int main(void) {
    canonical_form();
    every_reason();
    fingerprints();
    keys();
    wrong_arguments();
    return failed != 0;
}
