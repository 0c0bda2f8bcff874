"""The orders server on psycopg 3 and Flask. The protocol is three statements, and a map from what they say to HTTP answers.

Started by tests/languages: gunicorn --threads 64 --bind 127.0.0.1:0 orders:app, with libpq's environment variables.
"""
import json
import uuid

import flask
import psycopg
import psycopg_pool

ROUTE = "SELECT caller, function, action FROM route(%(headers)s, %(method)s, %(path)s)"
BEGIN = """SELECT outcome, response_status, response_body::text
  FROM idempotency_begin_request(%(caller)s, %(key)s, %(action)s, %(method)s, %(path)s, %(body)s)"""
PERFORM = """SELECT status, body::text, resource_id, one_time_secret, headers
  FROM perform(%(function)s, %(caller)s, %(path)s, %(headers)s, %(body)s, %(attempt)s)"""
COMPLETE = "SELECT idempotency_complete(%(caller)s, trim('\"' FROM %(key)s)::uuid, %(status)s, %(answer)s::jsonb, %(resource)s)::text"
SAVE_FINAL = """SELECT idempotency_save_final(%(caller)s, trim('\"' FROM %(key)s)::uuid, %(action)s,
  idempotency_fingerprint(%(method)s, %(path)s, %(body)s), %(status)s, %(answer)s::jsonb)::text"""
# Outcomes and SQLSTATEs of idempotency_begin_request.
REFUSED = {"reuse": (422, "idempotency_key_reuse"), "IK006": (422, "idempotency_key_expired"), "23503": (401, "unknown_principal"),
           "in_progress": (409, "request_in_progress"), "IK001": (409, "request_in_progress"),
           "22023": (400, "validation_failed", "invalid_format"), "IK007": (400, "validation_failed", "invalid_time")}
REPLAY = {"Idempotent-Replay": "true", "Cache-Control": "no-store"}

app = flask.Flask(__name__)
app.response_class.default_mimetype = None
app.add_url_rule("/health", view_func=lambda: {"status": "ok"})
pool = psycopg_pool.ConnectionPool("", min_size=4, max_size=32, kwargs={"options": "-c lock_timeout=5s"})


def respond(status, body, headers):
    response = flask.Response(body or "", status, {"Correlation-Id": flask.g.correlation_id, **headers})
    if body:
        response.content_type = "application/problem+json" if status >= 400 else "application/json"
        if "version" in json.loads(body):
            response.set_etag(str(json.loads(body)["version"]))
    return response


def problem(status, code, invalid=None, **members):
    errors = [{"pointer": "#header/Idempotency-Key", "code": invalid, "detail": "Send one UUID of version 7."}]
    document = {"title": code.replace("_", " ").capitalize(), "status": status, "code": code, "correlation_id": flask.g.correlation_id,
                **({"errors": errors} if invalid else {}), **members}
    headers = REPLAY if members.get("reason") else {"Retry-After": "1"} if code in ("request_in_progress", "service_unavailable") else {}
    return respond(status, json.dumps(document), headers)


def attempt(connection, request):
    """The request in one transaction: the pool commits it, and rolls it back when an exception passes."""
    def one(statement, **more):
        return connection.execute(statement, {**request, **more}).fetchone()
    request["caller"], request["function"], request["action"] = one(ROUTE)
    keyed = request["key"] and request["action"]
    if keyed:
        outcome, status, body = one(BEGIN)
        if outcome == "replay":  # without a body: it was a one-time secret, or 204
            return respond(status, body, REPLAY) if body or status == 204 else problem(409, "conflict", reason="one_time_secret")
        if outcome != "started":
            return problem(*REFUSED[outcome])
        request["started"] = request["attempt"]
    status, body, resource, secret, headers = one(PERFORM)
    if status >= 300:
        connection.rollback()  # effect and key; a final error is then stored by itself
    if keyed and status < 300:
        body = one(COMPLETE, status=status, answer=None if secret else body, resource=resource)[0] or body
    elif keyed and status in (400, 403, 404, 409, 410, 412, 413, 415, 422):
        body = one(SAVE_FINAL, status=status, answer=body)[0] or body
    return respond(status, body, headers)


@app.route("/<path:_>", methods=["GET", "POST", "PUT", "PATCH", "DELETE"], provide_automatic_options=False)
def serve(_):
    flask.g.correlation_id = flask.request.headers.get("Correlation-Id") or str(uuid.uuid4())
    headers = {name.lower(): value for name, value in flask.request.headers} | {"correlation-id": flask.g.correlation_id}
    request = {"method": flask.request.method, "path": flask.request.environ["RAW_URI"].partition("?")[0], "started": 0,
               "headers": json.dumps(headers), "key": headers.get("idempotency-key"), "body": flask.request.stream.read(2**20 + 1)}
    if len(request["body"]) > 2**20:
        return problem(413, "content_too_large")
    for request["attempt"] in range(1, 5):
        try:
            with pool.connection() as connection:
                return attempt(connection, request)
        except psycopg.Error as error:
            state = error.sqlstate or "08006"
            if state in REFUSED and request["started"] < request["attempt"]:
                return problem(*REFUSED[state])
            # Also after a COMMIT without an answer: begin tells whether it had happened. Without a key nobody knows.
            if state not in ("40001", "40P01", "55P03") and not (state.startswith(("08", "57")) and request["key"]):
                app.logger.error("%s: %s", request["path"], error)
                passing = state.startswith(("08", "53", "57", "25006"))
                return problem(503, "service_unavailable") if passing else problem(500, "internal_error")
    return problem(503, "service_unavailable")
