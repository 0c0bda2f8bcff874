// The orders server on pg and Express. The protocol is three statements, and a map from what they say to HTTP answers.
// Started by tests/languages: node orders.mjs, with libpq's environment variables; prints where it listens.
import { randomUUID } from 'node:crypto';
import express from 'express';
import pg from 'pg';

const ROUTE = 'SELECT caller, function AS name, action FROM route($1, $2, $3)';
const BEGIN = `SELECT outcome, response_status AS status, response_body::text AS body
  FROM idempotency_begin_request($1, $2, $3, $4, $5, $6)`;
const PERFORM = 'SELECT status, body::text, resource_id AS resource, one_time_secret AS secret, headers FROM perform($1, $2, $3, $4, $5, $6)';
const COMPLETE = `SELECT idempotency_complete($1, trim('"' FROM $2)::uuid, $3, $4::jsonb, $5)::text AS stored`;
const SAVE_FINAL = `SELECT idempotency_save_final($1, trim('"' FROM $2)::uuid, $3,
  idempotency_fingerprint($4, $5, $6), $7, $8::jsonb)::text AS stored`;
// Outcomes and SQLSTATEs of idempotency_begin_request.
const REFUSED = { reuse: [422, 'idempotency_key_reuse'], IK006: [422, 'idempotency_key_expired'], 23503: [401, 'unknown_principal'],
  in_progress: [409, 'request_in_progress'], IK001: [409, 'request_in_progress'],
  22023: [400, 'validation_failed', 'invalid_format'], IK007: [400, 'validation_failed', 'invalid_time'] };
const REPLAY = { 'Idempotent-Replay': 'true', 'Cache-Control': 'no-store' };
const pool = new pg.Pool({ max: 32, options: '-c lock_timeout=5s' });
// A lost connection is an event as well, which would end the process: of an idle one the pool's, of one in use the client's.
const lose = (error) => console.error(error.message);
pool.on('error', lose).on('connect', (client) => client.on('error', lose));

function problem(status, code, invalid, reason) {
  const errors = invalid && [{ pointer: '#header/Idempotency-Key', code: invalid, detail: 'Send one UUID of version 7.' }];
  const again = ['request_in_progress', 'service_unavailable'].includes(code) ? { 'Retry-After': '1' } : {};
  return { status, problem: { title: code.replaceAll('_', ' '), status, code, errors, reason }, headers: reason ? REPLAY : again };
}

/** The request inside a transaction: what it returns may be committed, what it throws must not. */
async function attempt(one, request, number) {
  const { method, path, headers, body, key } = request;
  const { caller, name, action } = await one(ROUTE, [headers, method, path]);
  if (key && action) {
    const { outcome, ...stored } = await one(BEGIN, [caller, key, action, method, path, body]);
    const secret = !stored.body && stored.status !== 204;
    if (outcome === 'replay') return secret ? problem(409, 'conflict', undefined, 'one_time_secret') : { ...stored, headers: REPLAY };
    if (outcome !== 'started') return problem(...REFUSED[outcome]);
    request.started = number;
  }
  const { status, secret, resource, ...answer } = await one(PERFORM, [name, caller, path, headers, body, number]);
  if (status >= 300) await one('ROLLBACK AND CHAIN'); // effect and key; a final error is then stored by itself
  const store = key && action && (status < 300 ? () => one(COMPLETE, [caller, key, status, secret ? null : answer.body, resource])
    : [400, 403, 404, 409, 410, 412, 413, 415, 422].includes(status) && (() => one(SAVE_FINAL, [caller, key, action, method, path, body, status, answer.body])));
  return { ...answer, status, body: (store && (await store()).stored) || answer.body };
}

async function serve(request) {
  for (let number = 1; number <= 4; number++) {
    let client, lost;
    try {
      client = await pool.connect();
      const one = async (text, values) => (await client.query(text, values)).rows[0];
      await one('BEGIN');
      const answer = await attempt(one, request, number);
      await one('COMMIT');
      return answer;
    } catch (error) {
      const state = /^[0-9A-Z]{5}$/.test(error.code) ? error.code : '08006';
      await client?.query('ROLLBACK').catch((failure) => { lost = failure; });
      if (state in REFUSED && request.started !== number) return problem(...REFUSED[state]);
      // Also after a COMMIT without an answer: begin tells whether it had happened. Without a key nobody knows.
      if (['40001', '40P01', '55P03'].includes(state) || (/^(08|57)/.test(state) && request.key)) continue;
      console.error(`${request.path}: ${error.message}`);
      return /^(08|53|57|25006)/.test(state) ? problem(503, 'service_unavailable') : problem(500, 'internal_error');
    } finally {
      client?.release(lost);
    }
  }
  return problem(503, 'service_unavailable');
}

function send(request, response, answer) {
  const id = request.headers['correlation-id'];
  const body = answer.problem ? JSON.stringify({ ...answer.problem, correlation_id: id }) : answer.body;
  const version = body && JSON.parse(body).version;
  response.status(answer.status).set({ 'Correlation-Id': id, ...answer.headers, ...(version && { ETag: `"${version}"` }) });
  if (!body) return response.end();
  // Bytes: their media type stays as it is.
  response.set('Content-Type', answer.status >= 400 ? 'application/problem+json' : 'application/json').send(Buffer.from(body));
}

const app = express().disable('x-powered-by').disable('etag');
app.get('/health', (request, response) => response.json({ status: 'ok' }));
app.use((request, response, next) => { request.headers['correlation-id'] ??= randomUUID(); next(); });
app.use(express.raw({ type: () => true, limit: 2 ** 20, inflate: false }));
app.use(async (request, response) => send(request, response, await serve({
  method: request.method, path: request.originalUrl.split('?')[0], headers: JSON.stringify(request.headers),
  body: Buffer.isBuffer(request.body) ? request.body : null, key: request.headers['idempotency-key'] })));
app.use((error, request, response, next) => send(request, response,
  error.status === 413 ? problem(413, 'content_too_large') : problem(500, 'internal_error')));
const server = app.listen(0, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${server.address().port}`));
