// The orders server on pg and Express. The protocol is three statements, and a map from what they say to HTTP answers.
// Started by tests/languages: node orders.mjs, with libpq's environment variables; prints where it listens.
import { randomUUID } from 'node:crypto';
import express from 'express';
import pg from 'pg';

const ROUTE = 'SELECT caller, function, action, (refusal).status, (refusal).body::text, allow FROM route($1, $2, $3)';
const BEGIN = `SELECT outcome, response_status AS status, response_body::text AS body
  FROM idempotency_begin_request($1, $2, $3, $4, $5, $6)`;
const PERFORM = 'SELECT status, body::text, resource_id, one_time_secret FROM perform($1, $2, $3, $4, $5, $6)';
const COMPLETE = `SELECT idempotency_complete($1, trim('"' FROM $2)::uuid, $3, $4::jsonb, $5)::text AS body`;
const SAVE_FINAL = `SELECT idempotency_save_final($1, trim('"' FROM $2)::uuid, $3,
  idempotency_fingerprint($4, $5, $6), $7, $8::jsonb)::text AS body`;
const FINAL = [400, 403, 404, 409, 410, 412, 413, 415, 422];
const RETRIED = ['40001', '40P01', '55P03'];
const REFUSED = { // outcomes and SQLSTATEs of idempotency_begin_request
  reuse: [422, 'idempotency_key_reuse'], IK006: [422, 'idempotency_key_expired'], 23503: [401, 'unknown_principal'],
  in_progress: [409, 'request_in_progress'], IK001: [409, 'request_in_progress'],
  22023: [400, 'validation_failed', 'invalid_format'], IK007: [400, 'validation_failed', 'invalid_time'],
};
const REPLAY = { 'Idempotent-Replay': 'true', 'Cache-Control': 'no-store' };
const pool = new pg.Pool({ max: 32, options: '-c lock_timeout=5s' });
pool.on('error', (error) => console.error(error.message)); // of an idle connection; the pool makes another

function problem(status, code, invalid, members = {}, headers = {}) {
  const errors = invalid && [{ pointer: '#header/Idempotency-Key', code: invalid, detail: 'Send one UUID of version 7.' }];
  const again = ['request_in_progress', 'service_unavailable'].includes(code) ? { 'Retry-After': '1' } : {};
  return { status, body: { title: code.replaceAll('_', ' '), status, code, errors, ...members }, headers: { ...again, ...headers } };
}

/** The request inside one transaction; what it answers is committed, what it throws is not. */
async function attempt(one, request, number) {
  const { method, path, headers, body, key } = request;
  const { caller, function: name, action, allow, ...refusal } = await one(ROUTE, [headers, method, path]);
  if (refusal.status) return { ...refusal, headers: allow ? { Allow: allow } : {} };
  const keyed = key && action;
  if (keyed) {
    const { outcome, ...stored } = await one(BEGIN, [caller, key, action, method, path, body]);
    // A 2xx without its body was a secret, unless it has none.
    if (outcome === 'replay' && !stored.body && stored.status !== 204) return problem(409, 'conflict', undefined, { reason: 'one_time_secret' }, REPLAY);
    if (outcome === 'replay') return { ...stored, headers: REPLAY };
    if (outcome !== 'started') return problem(...REFUSED[outcome]);
    request.started = true;
  }
  const answer = await one(PERFORM, [name, caller, path, headers, body, number]);
  const { status, one_time_secret: secret, resource_id: resource } = answer;
  if (status >= 300) await one('ROLLBACK'); // effect and key; a final error is then stored by itself
  if (keyed && status < 300) answer.body = (await one(COMPLETE, [caller, key, status, secret ? null : answer.body, resource])).body ?? answer.body;
  else if (keyed && FINAL.includes(status)) answer.body = (await one(SAVE_FINAL, [caller, key, action, method, path, body, status, answer.body])).body;
  return answer;
}

async function serve(request) {
  for (let number = 1; number <= 4; number++) {
    const client = await pool.connect().catch((error) => error);
    let broken = client instanceof Error ? client : undefined;
    request.started = false;
    try {
      if (broken) throw broken;
      const one = async (text, values) => (await client.query(text, values)).rows[0];
      await one('BEGIN');
      const answer = await attempt(one, request, number);
      await one('COMMIT');
      return answer;
    } catch (error) {
      const state = error.code?.length === 5 ? error.code : '08006';
      if (!broken) await client.query('ROLLBACK').catch((lost) => { broken = lost; });
      if (state in REFUSED && !request.started) return problem(...REFUSED[state]);
      // Also after a COMMIT without an answer: begin tells whether it had happened. Without a key nobody knows.
      if (RETRIED.includes(state) || (/^(08|57)/.test(state) && request.key)) continue;
      console.error(`${request.path}: ${error.message}`);
      return /^(08|53|57|25006)/.test(state) ? problem(503, 'service_unavailable') : problem(500, 'internal_error');
    } finally {
      if (!(client instanceof Error)) client.release(broken);
    }
  }
  return problem(503, 'service_unavailable');
}

function send(request, response, { status, body, headers = {} }) {
  const text = typeof body === 'object' && body ? JSON.stringify({ ...body, correlation_id: request.headers['correlation-id'] }) : body;
  const version = text && JSON.parse(text).version;
  response.status(status).set({ 'Correlation-Id': request.headers['correlation-id'], ...headers, ...(version && { ETag: `"${version}"` }) });
  // Bytes, so that nothing is added to the media type.
  if (text) response.set('Content-Type', status >= 400 ? 'application/problem+json' : 'application/json').end(text);
  else response.end();
}

const app = express().disable('x-powered-by');
app.get('/health', (request, response) => response.json({ status: 'ok' }));
app.use((request, response, next) => { request.headers['correlation-id'] ??= randomUUID(); next(); });
app.use(express.raw({ type: () => true, limit: 2 ** 20, inflate: false }));
app.use(async (request, response) => send(request, response, await serve({
  method: request.method, path: request.originalUrl.split('?')[0], headers: JSON.stringify(request.headers),
  body: Buffer.isBuffer(request.body) ? request.body : null, key: request.headers['idempotency-key'] })));
app.use((error, request, response, next) => send(request, response,
  error.status === 413 ? problem(413, 'content_too_large') : problem(500, 'internal_error')));
const server = app.listen(0, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${server.address().port}`));
