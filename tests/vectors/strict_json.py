# An independent reader of canonical JSON and the fingerprint: Python's json with the strict checks that it lacks.
# Used by tests/vectors/generate and tests/fuzz/differential; shares nothing with client/core.
import hashlib
import json
import sys

MAX_DEPTH = 1000
sys.setrecursionlimit(100_000)


class Refused(Exception):
    """The reason why a document has no canonical form."""


class Number(str):
    """A number as it was written."""


class Members(list):
    """The members of an object, names with values."""


def _members(pairs):
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise Refused("duplicate member name")
    return Members(pairs)


def _no_constant(text):
    raise ValueError(text)


def depth_of(text):
    """How many arrays and objects are open at once, at most, in a text that parses."""
    depth = deepest = 0
    in_string = escaped = False
    for c in text:
        if in_string:
            if escaped:
                escaped = False
            elif c == "\\":
                escaped = True
            elif c == '"':
                in_string = False
        elif c == '"':
            in_string = True
        elif c in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif c in "]}":
            depth -= 1
    return deepest


def read(document):
    try:
        text = document.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("invalid UTF-8") from None
    if depth_of(text) > MAX_DEPTH:
        raise Refused("nesting too deep")
    try:
        return json.loads(text, object_pairs_hook=_members, parse_int=Number, parse_float=Number, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise Refused("not JSON") from None


def number(text):
    """The text that ECMAScript's Number::toString gives the nearest double."""
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise Refused("number beyond the range of a double")
    if value == 0:
        return "0"
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(digits) - len(fraction) + int(exponent or 0)  # value = 0.digits * 10 ** point
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        layout = digits + "0" * (point - count)
    elif 0 < point <= 21:
        layout = digits[:point] + "." + digits[point:]
    elif -6 < point <= 0:
        layout = "0." + "0" * -point + digits
    else:
        layout = digits[0] + ("." + digits[1:] if count > 1 else "") + "e" + ("+" if point > 0 else "-") + str(abs(point - 1))
    return ("-" if value < 0 else "") + layout


SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def string(text):
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise Refused("lone surrogate")
    return '"' + "".join(SHORT.get(c) or (f"\\u{ord(c):04x}" if c < " " else c) for c in text) + '"'


def write(value):
    if isinstance(value, Members):
        for name, _ in value:
            string(name)
        ordered = sorted(value, key=lambda member: member[0].encode("utf-16-be"))
        return "{" + ",".join(string(name) + ":" + write(member) for name, member in ordered) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(write, value)) + "]"
    if isinstance(value, Number):
        return number(value)
    if isinstance(value, str):
        return string(value)
    return {None: "null", True: "true", False: "false"}[value]


def canonical(document):
    """The canonical bytes of a document, or Refused."""
    return write(read(document)).encode("utf-8")


def fingerprint(method, path, body):
    """The fingerprint, the canonical body or None, and the reason why there is none."""
    try:
        canonical_body, reason = (canonical(body), "none") if body else (b"", "none")
    except Refused as refused:
        canonical_body, reason = None, str(refused)
    covered = body if canonical_body is None else canonical_body
    head = f"{method.upper()}\n{path}\n".encode()
    return hashlib.sha256(head + covered).hexdigest(), canonical_body, reason
