-- The operations of the orders API as functions: a request in, an answer out. They know nothing of keys.
-- Applied after orders_server/schema.sql, for the servers in python and node, which call perform inside the transaction of the request.

CREATE TYPE answer AS (status integer, body jsonb, resource_id uuid, one_time_secret boolean, headers jsonb);

-- Headers have lower-case names. The document is RFC 9457's.
CREATE FUNCTION problem(headers jsonb, status integer, code text, detail text, errors jsonb DEFAULT NULL) RETURNS answer
LANGUAGE sql STABLE AS $$
  SELECT (status, jsonb_strip_nulls(jsonb_build_object('type', 'about:blank', 'title', initcap(replace(code, '_', ' ')), 'status', status,
    'detail', detail, 'code', code, 'errors', errors, 'correlation_id', headers->>'correlation-id')), NULL, false, '{}')::answer
$$;

CREATE FUNCTION invalid(headers jsonb, pointers text[], detail text) RETURNS answer
LANGUAGE sql STABLE AS $$
  SELECT problem(headers, 400, 'validation_failed', detail,
    jsonb_agg(jsonb_build_object('pointer', pointer, 'code', 'invalid_value', 'detail', detail)))
  FROM unnest(pointers) AS pointer
$$;

CREATE FUNCTION object_of(headers jsonb, body bytea, OUT document json, OUT refusal answer)
LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF lower(coalesce(headers->>'content-type', '')) !~ '^application/json\s*(;|$)' THEN
    refusal := problem(headers, 415, 'unsupported_media_type', 'Send application/json.');
    RETURN;
  END IF;
  document := convert_from(body, 'UTF8')::json;
  IF json_typeof(document) <> 'object' THEN
    refusal := invalid(headers, '{#}', 'Must be an object.');
  END IF;
EXCEPTION WHEN data_exception THEN
  refusal := problem(headers, 400, 'invalid_json', 'The body is not JSON.');
END $$;

CREATE FUNCTION order_input(headers jsonb, body bytea, OUT sku text, OUT quantity integer, OUT refusal answer)
LANGUAGE plpgsql STABLE AS $$
DECLARE
  object record := object_of(headers, body);
  number numeric;
BEGIN
  refusal := object.refusal;
  IF refusal.status IS NOT NULL THEN
    RETURN;
  END IF;
  BEGIN
    IF json_typeof(object.document->'sku') = 'string' THEN
      sku := nullif(object.document->>'sku', '');
    END IF;
    IF json_typeof(object.document->'quantity') = 'number' THEN
      number := object.document->>'quantity';
    END IF;
  EXCEPTION WHEN data_exception THEN
    NULL; -- \u0000, or a number without end: what has no value is refused below
  END;
  IF number BETWEEN 1 AND 2147483647 AND number = trunc(number) THEN
    quantity := number;
  END IF;
  IF sku IS NULL OR quantity IS NULL THEN
    refusal := invalid(headers, array_remove(ARRAY[CASE WHEN sku IS NULL THEN '#/sku' END, CASE WHEN quantity IS NULL THEN '#/quantity' END], NULL),
      'An order has a sku, a text that is not empty, and a quantity, an integer above 0.');
  END IF;
END $$;

CREATE FUNCTION order_answer(status integer, made orders) RETURNS answer
LANGUAGE sql STABLE AS $$
  SELECT (status, jsonb_build_object('id', made.id, 'version', made.version, 'sku', made.sku, 'quantity', made.quantity), made.id, false, '{}')::answer
$$;

-- What the header Demo-Behaviour asks for, after the effect; no status when it asks for nothing more.
CREATE FUNCTION demo_behaviour(headers jsonb, attempt integer) RETURNS answer
LANGUAGE plpgsql AS $$
DECLARE
  name text := split_part(headers->>'demo-behaviour', '=', 1);
  value text := split_part(headers->>'demo-behaviour', '=', 2);
BEGIN
  IF name = 'sleep' AND value ~ '^\d{1,4}$' THEN
    PERFORM pg_sleep(value::integer / 1000.0);
  ELSIF name = 'status' AND value ~ '^[45]\d\d$' THEN
    RETURN problem(headers, value::integer, 'demo_status', 'Demo-Behaviour asked for this status.');
  ELSIF name = 'status' AND value ~ '^[23]\d\d$' THEN
    RETURN (value::integer, NULL, NULL, false, '{}')::answer;
  ELSIF name = 'error' AND (value IN ('40001', '40P01', '55P03') OR value = 'once' AND attempt = 1) THEN
    RAISE EXCEPTION 'demo' USING ERRCODE = replace(value, 'once', '40001');
  ELSIF name <> '' AND name || '=' || value <> 'error=once' THEN
    RETURN invalid(headers, '{#header/Demo-Behaviour}', 'Use sleep=MS, status=NNN, error=40001, error=40P01, error=55P03 or error=once.');
  END IF;
  RETURN NULL;
END $$;

CREATE FUNCTION create_order(caller uuid, order_id text, headers jsonb, body bytea, attempt integer) RETURNS answer
LANGUAGE plpgsql AS $$
DECLARE
  input record := order_input(headers, body);
  made orders;
  behaviour answer;
BEGIN
  IF (input.refusal).status IS NOT NULL THEN
    RETURN input.refusal;
  ELSIF input.sku = 'SOLD-OUT' THEN
    RETURN problem(headers, 409, 'sold_out', 'This sku is sold out.');
  END IF;
  INSERT INTO orders (principal_id, sku, quantity) VALUES (caller, input.sku, input.quantity) RETURNING * INTO made;
  behaviour := demo_behaviour(headers, attempt);
  RETURN CASE WHEN behaviour.status IS NULL THEN order_answer(201, made) ELSE behaviour END;
END $$;

-- If-Match as RFC 9110 section 13.1.1 has it: "*", or a list in which weak tags never match.
CREATE FUNCTION replace_order(caller uuid, order_id text, headers jsonb, body bytea, attempt integer) RETURNS answer
LANGUAGE plpgsql AS $$
DECLARE
  input record := order_input(headers, body);
  if_match text := headers->>'if-match';
  made orders;
BEGIN
  IF (input.refusal).status IS NOT NULL THEN
    RETURN input.refusal;
  ELSIF if_match IS NULL THEN
    RETURN problem(headers, 428, 'precondition_required', 'Send If-Match with the order''s ETag.');
  ELSIF if_match !~ '^(\*|[\s,]*(W/)?"[^"]*"(\s*,\s*((W/)?"[^"]*")?)*\s*)$' THEN
    RETURN invalid(headers, '{#header/If-Match}', 'Must be an ETag such as "1".');
  END IF;
  SELECT * INTO made FROM orders WHERE id::text = lower(order_id) AND principal_id = caller FOR UPDATE;
  IF made.id IS NULL THEN
    RETURN problem(headers, 404, 'not_found', 'There is no such order of yours.');
  ELSIF if_match <> '*' AND NOT EXISTS (
    SELECT FROM regexp_matches(if_match, '(W/)?"([^"]*)"', 'g') AS tag WHERE tag[1] IS NULL AND tag[2] = made.version::text) THEN
    RETURN problem(headers, 412, 'precondition_failed', 'The order has another version.');
  END IF;
  UPDATE orders SET sku = input.sku, quantity = input.quantity, version = version + 1 WHERE id = made.id RETURNING * INTO made;
  RETURN order_answer(200, made);
END $$;

CREATE FUNCTION delete_order(caller uuid, order_id text, headers jsonb, body bytea, attempt integer) RETURNS answer
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM orders WHERE id::text = lower(order_id) AND principal_id = caller;
  RETURN CASE WHEN FOUND THEN (204, NULL, NULL, false, '{}')::answer ELSE problem(headers, 404, 'not_found', 'There is no such order of yours.') END;
END $$;

CREATE FUNCTION list_orders(caller uuid, order_id text, headers jsonb, body bytea, attempt integer) RETURNS answer
LANGUAGE sql STABLE AS $$
  SELECT (200, jsonb_build_object('orders', coalesce(jsonb_agg((order_answer(200, one)).body ORDER BY created_at, id), '[]')), NULL, false, '{}')::answer
  FROM orders AS one WHERE principal_id = caller
$$;

CREATE FUNCTION create_token(caller uuid, order_id text, headers jsonb, body bytea, attempt integer) RETURNS answer
LANGUAGE plpgsql AS $$
DECLARE
  secret text := replace(gen_random_uuid()::text || gen_random_uuid(), '-', '');
  made tokens;
BEGIN
  INSERT INTO tokens (principal_id, secret_sha256) VALUES (caller, sha256(secret::bytea)) RETURNING * INTO made;
  RETURN (201, jsonb_build_object('id', made.id, 'secret', secret), made.id, true, '{}')::answer;
END $$;

CREATE FUNCTION create_note(caller uuid, order_id text, headers jsonb, body bytea, attempt integer) RETURNS answer
LANGUAGE plpgsql AS $$
DECLARE
  object record := object_of(headers, body);
  made notes;
BEGIN
  IF (object.refusal).status IS NOT NULL THEN
    RETURN object.refusal;
  ELSIF json_typeof(object.document->'text') IS DISTINCT FROM 'string' THEN
    RETURN invalid(headers, '{#/text}', 'Must be a text.');
  END IF;
  INSERT INTO notes (principal_id, text) VALUES (caller, object.document->>'text') RETURNING * INTO made;
  RETURN (201, jsonb_build_object('id', made.id, 'text', made.text), made.id, false, '{}')::answer;
END $$;

-- What to perform, and for whom. Who is not known, or asks for what there is not, is refused; that has no action, so no key counts.
CREATE FUNCTION route(headers jsonb, method text, path text, OUT caller uuid, OUT function text, OUT action text)
LANGUAGE plpgsql STABLE AS $$
BEGIN
  SELECT id INTO caller FROM principals WHERE id::text = lower(substring(headers->>'authorization' FROM '(?i)^bearer +(\S+)$'));
  SELECT o.function, o.action INTO function, action FROM operations AS o
  WHERE caller IS NOT NULL AND route.path ~ o.path AND route.method = ANY (o.methods);
  function := coalesce(function, 'refuse');
END $$;

CREATE TABLE operations (path text, methods text[], function text, action text);
INSERT INTO operations VALUES
  ('^/(health|metrics)$', '{GET,HEAD}', 'refuse', NULL),
  ('^/api/v1/orders$', '{GET,HEAD}', 'list_orders', NULL),
  ('^/api/v1/orders$', '{POST}', 'create_order', 'orders.create'),
  ('^/api/v1/orders/[^/]+$', '{PUT}', 'replace_order', 'orders.replace'),
  ('^/api/v1/orders/[^/]+$', '{DELETE}', 'delete_order', 'orders.delete'),
  ('^/api/v1/tokens$', '{POST}', 'create_token', 'tokens.create'),
  ('^/api/v1/notes$', '{POST}', 'create_note', NULL);

CREATE FUNCTION refuse(caller uuid, path text, headers jsonb) RETURNS answer
LANGUAGE plpgsql STABLE AS $$
DECLARE
  allow text := (SELECT string_agg(array_to_string(methods, ', '), ', ') FROM operations AS o WHERE refuse.path ~ o.path);
  refusal answer := problem(headers, 405, 'method_not_allowed', 'This path has no such method.');
BEGIN
  IF caller IS NULL THEN
    RETURN problem(headers, 401, 'unauthorized', 'Send Authorization: Bearer with the id of a principal.');
  ELSIF allow IS NULL THEN
    RETURN problem(headers, 404, 'not_found', 'There is nothing at this path.');
  END IF;
  refusal.headers := jsonb_build_object('Allow', allow);
  RETURN refusal;
END $$;

CREATE FUNCTION perform(function text, caller uuid, path text, headers jsonb, body bytea, attempt integer) RETURNS answer
LANGUAGE plpgsql AS $$
DECLARE
  answer answer;
BEGIN
  IF function = 'refuse' THEN
    RETURN refuse(caller, path, headers);
  END IF;
  EXECUTE format('SELECT * FROM %I($1, $2, $3, $4, $5)', function) INTO answer
    USING caller, substring(path FROM '[^/]*$'), headers, body, attempt;
  RETURN answer;
END $$;
