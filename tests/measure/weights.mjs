// What a message costs by its weight: sends each kind of thing whose size a peer decides in growing sizes (n, 2n, 4n) and
// says how the time of the server's processors grows with the bytes that are sent. Twice as much may take twice the time, and a little more
// for sorting; four times is a square, with which a small message holds a server up.
//
//   node tests/measure/weights.mjs --dateline target/debug/dateline [--only WORD] [--markdown]
//
// Linux only: it reads /proc, and counts what the server's threads ran, not what the machine was busy with besides.
// It ends with 1 where something is worse than it may be.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    dateline: { type: 'string', default: 'target/debug/dateline' },
    only: { type: 'string', default: '' },
    markdown: { type: 'boolean', default: false },
    // As the upstream of a gateway, this script answers a list with so many tools.
    upstream: { type: 'string' },
  },
});

const MODERN = '2026-07-28';
const BATCHES = '2025-03-26';
/** Twice the size may cost so much more. */
const LINEAR = 2.8;
/** A size is large enough to be measured where it takes a server so long, in milliseconds. */
const ENOUGH = 60;
/** No message is larger. */
const LARGEST = 12_000_000;

const many = (n, text) => Array.from({ length: n }, (_, at) => text(at)).join(',');
const members = (n, value = '0') => `{${many(n, (at) => `"m${at}":${value}`)}}`;

/** A message of the newest revision, with its params as text. */
function modern(method, params, named, meta = '') {
  const of = `"io.modelcontextprotocol/protocolVersion":"${MODERN}","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}`;
  const body = `{"jsonrpc":"2.0","id":1,"method":"${method}","params":{${params ? `${params},` : ''}"_meta":{${of}${meta}}}}`;
  const headers = { 'mcp-protocol-version': MODERN, 'mcp-method': method, ...(named ? { 'mcp-name': named } : {}) };
  return { body, headers };
}

const call = (tool, args) => modern('tools/call', `"name":"${tool}","arguments":${args}`, tool);
const asks = 'test_input_required_result_elicitation';
/** A request whose body is small, with headers that are not. */
const headed = (headers) => {
  const { body, headers: own } = modern('tools/list', '');
  return { body, headers: { ...own, ...headers } };
};
const uris = (n, uri) => `"notifications":{"resourceSubscriptions":[${many(n, (at) => `"${uri(at)}"`)}]}`;
const chain = (n) => Array.from({ length: n }, (_, at) => `test://${'a/'.repeat(at + 1)}`);

/** What is sent to a server: where a size is decided, and a message of that size. */
const SENT = [
  ['members of params', (n) => modern('tools/list', members(n).slice(1, -1))],
  ['members of a message', (n) => ({ body: `{"jsonrpc":"2.0","id":1,"method":"ping",${members(n).slice(1)}`, legacy: true })],
  ['members with escaped names', (n) => modern('tools/list', `"x":${members(n)},${many(n, (at) => `"\\u006d${at}":0`)}`)],
  ['members of a tool’s arguments', (n) => call('echo', `{"message":"x",${members(n).slice(1)}`)],
  ['members of _meta', (n) => modern('tools/list', '', undefined, `,${members(n).slice(1, -1)}`)],
  ['elements of an array', (n) => call('echo', `{"message":[${many(n, () => '0')}]}`)],
  ['objects in an array', (n) => call('echo', `{"message":[${many(n, () => '{"a":[]}')}]}`)],
  ['numbers out of range, 100 levels deep', (n) => call('echo', `{"message":${'['.repeat(100)}${many(n, () => '1e400')}${']'.repeat(100)}}`)],
  ['levels of arrays', (n) => call('echo', `{"message":${'['.repeat(n)}${']'.repeat(n)}}`)],
  ['characters of a string', (n) => call('echo', `{"message":"${'x'.repeat(n)}"}`)],
  ['characters of a string, escaped', (n) => call('echo', `{"message":"${'\\u00e9'.repeat(n)}"}`)],
  ['characters of an id', (n) => ({ body: `{"jsonrpc":"2.0","id":"${'\\u0061'.repeat(n)}","method":"ping"}`, legacy: true })],
  ['characters of a method', (n) => ({ body: `{"jsonrpc":"2.0","id":1,"method":"${'x/'.repeat(n)}"}`, legacy: true })],
  ['characters of a tool’s name', (n) => ({ body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${'x'.repeat(n)}"}}`, legacy: true })],
  ['characters of a progress token', (n) => modern('tools/list', '', undefined, `,"progressToken":"${'x'.repeat(n)}"`)],
  ['members of the client’s capabilities', (n) => modern('tools/list', '', undefined, `,"io.modelcontextprotocol/clientInfo":${members(n)}`)],
  ['characters of a cursor', (n) => modern('tools/list', `"cursor":"${'A'.repeat(n)}"`)],
  ['characters of a request state', (n) => modern('tools/call', `"name":"${asks}","arguments":{},"requestState":"${'A'.repeat(n)}"`, asks)],
  ['answers that nobody asked for', (n) => modern('tools/call', `"name":"${asks}","arguments":{},"inputResponses":${members(n, '{}')}`, asks)],
  ['answers, kept in a request state', async (n) => {
    const state = await stated(n);
    return modern('tools/call', `"name":"${asks}","arguments":{},"requestState":"${state}","inputResponses":${members(n, '{}')}`, asks);
  }],
  ['arguments of a completion', (n) => modern('completion/complete', `"ref":{"type":"ref/resource","uri":"test://template/{id}/data"},"argument":{"name":"id","value":"1"},"context":{"arguments":${members(n, '""')}}`)],
  ['characters of a completion', (n) => modern('completion/complete', `"ref":{"type":"ref/resource","uri":"test://template/{id}/data"},"argument":{"name":"id","value":"${'x'.repeat(n)}"}`)],
  ['arguments of a prompt', (n) => ({ body: `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"test_simple_prompt","arguments":${members(n, '""')}}}`, legacy: true })],
  ['characters of a URI', (n) => ({ body: `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"test://template/${'a'.repeat(n)}/data"}}`, legacy: true })],
  ['URIs of a listen', (n) => modern('subscriptions/listen', uris(n, (at) => `test://${at}`))],
  ['URIs of a listen, below each other', (n) => modern('subscriptions/listen', uris(n, (at) => chain(n)[at])), 600],
  ['messages of a batch', (n) => ({ body: `[${many(n, (at) => `{"jsonrpc":"2.0","id":${at},"method":"ping"}`)}]`, legacy: true })],
  ['rubbish in a batch', (n) => ({ body: `[${many(n, () => '{}')}]`, legacy: true })],
  ['cancellations in a batch', (n) => ({ body: `[${many(n, (at) => `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${at}}}`)}]`, legacy: true })],
  ['headers', (n) => headed(Object.fromEntries(Array.from({ length: n }, (_, at) => [`x-${at}`, '1'])))],
  ['characters of a header', (n) => headed({ 'mcp-param-x': 'x'.repeat(n) })],
  ['media types in Accept', (n) => headed({ accept: `application/json, text/event-stream, ${many(n, (at) => `a/b${at};q=0.5`)}` })],
  ['characters of an event id', (n) => ({ get: true, headers: { 'last-event-id': 'x'.repeat(n) }, legacy: true })],
];

/** What a server answers to a gateway: where it decides a size. */
const ANSWERED = [
  'tools of a server',
  'tools of a server, all of one name',
  'members of a tool',
  'properties of a schema',
  'templates of a server',
  'pieces of an event that a server sends',
  'events that a server sends before its answer',
];

if (values.upstream) await play(...values.upstream.split(':'));

/** Plays a server whose list has a size. */
async function play(kind, size) {
  const n = Number(size);
  const schema = { type: 'object' };
  const fields = () => Object.fromEntries(Array.from({ length: n }, (_, at) => [`m${at}`, { type: 'string' }]));
  const tools = {
    0: () => Array.from({ length: n }, (_, at) => ({ name: `t${at}`, inputSchema: schema })),
    1: () => Array.from({ length: n }, () => ({ name: 't', inputSchema: schema })),
    2: () => [{ name: 't', inputSchema: schema, ...fields() }],
    3: () => [{ name: 't', inputSchema: { ...schema, properties: fields() } }],
    4: () => [{ name: 't', inputSchema: schema }],
  }[kind]();
  const resourceTemplates = kind === '4' ? Array.from({ length: n }, (_, at) => ({ name: `t${at}`, uriTemplate: `t${at}://{a}/{b}` })) : [];
  const results = {
    initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {}, resources: {} }, serverInfo: { name: 'u', version: '1' } },
    'tools/list': { tools },
    'resources/templates/list': { resourceTemplates },
    'resources/list': { resources: [] },
  };
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, method } = JSON.parse(line);
    if (id === undefined) continue;
    const result = results[method];
    const answer = result ? { result } : { error: { code: -32601, message: 'no' } };
    process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...answer })}\n`);
  }
  process.exit();
}

const work = mkdtempSync(join(tmpdir(), 'weights-'));
const children = new Set();
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(work, { recursive: true, force: true });
});

/** Starts dateline; gives it with its address. */
async function start(...args) {
  const child = spawn(values.dateline, [...args, '--listen', '127.0.0.1:0'], { stdio: ['ignore', 'ignore', 'pipe'] });
  children.add(child);
  for await (const line of createInterface({ input: child.stderr })) {
    const url = /http:\S+/.exec(line);
    if (url) {
      child.stderr.resume();
      return { child, url: url[0] };
    }
  }
  throw new Error('dateline did not start');
}

/** How long its threads ran, in milliseconds. */
function ran(pid) {
  const one = (task) => Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]);
  return readdirSync(`/proc/${pid}/task`).reduce((sum, task) => sum + one(task), 0) / 1e6;
}

/** Sends a message; gives the status and the answer, or the first part of a stream. */
function send(url, { body, headers = {}, get = false }) {
  return new Promise((resolve, reject) => {
    const json = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    const sent = request(url, { method: get ? 'GET' : 'POST', headers: { ...json, ...headers } }, (answer) => {
      let text = '';
      const done = () => resolve({ status: answer.statusCode, text, headers: answer.headers });
      answer.on('data', (part) => {
        text += part;
        if (answer.headers['content-type']?.startsWith('text/event-stream') && text.includes('\n\n')) {
          done();
          answer.destroy();
        }
      });
      answer.on('end', done).on('error', done);
      if (get && answer.statusCode === 200) {
        done();
        answer.destroy();
      }
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

let server;
let session;

async function opened() {
  if (server) return;
  server = await start('demo');
  const params = { protocolVersion: BATCHES, capabilities: {}, clientInfo: { name: 'weights', version: '1' } };
  const { headers } = await send(server.url, { body: JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params }) });
  session = { 'mcp-session-id': headers['mcp-session-id'] };
  await send(server.url, { body: '{"jsonrpc":"2.0","method":"notifications/initialized"}', headers: session });
}

/** A request state that keeps n answers. */
async function stated(n) {
  const asked = modern('tools/call', `"name":"${asks}","arguments":{},"inputResponses":${members(n, '{"action":"decline"}')}`, asks);
  const { text } = await send(server.url, asked);
  return /"requestState":"([^"]*)"/.exec(text)?.[1] ?? '';
}

/** What one size costs, and how it was answered. */
async function cost(make, n) {
  await opened();
  const message = await make(n);
  if (message.legacy) message.headers = { ...message.headers, ...session };
  const before = ran(server.child.pid);
  const answer = await send(server.url, message).catch((error) => ({ status: error.code, text: '' }));
  const said = /"message":"((?:[^"\\]|\\.){1,200})/.exec(answer.text)?.[1];
  return { n, took: ran(server.child.pid) - before, weight: (message.body ?? '').length, said, status: answer.status };
}

/** Plays a server on HTTP that answers a list by an event stream: one event in n pieces, or n events before it. */
async function streamed(kind, n) {
  const results = {
    initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'u', version: '1' } },
    'tools/list': { tools: [{ name: 't', description: kind === 5 ? 'x'.repeat(n * 16) : '', inputSchema: { type: 'object' } }] },
  };
  const played = createServer(async (asked, answer) => {
    let body = '';
    for await (const part of asked) body += part;
    const { id, method } = body ? JSON.parse(body) : {};
    if (id === undefined) return answer.writeHead(asked.method === 'POST' ? 202 : 405).end();
    const said = results[method] ? { result: results[method] } : { error: { code: -32601, message: 'no' } };
    const message = JSON.stringify({ jsonrpc: '2.0', id, ...said });
    if (method !== 'tools/list') return answer.writeHead(200, { 'content-type': 'application/json' }).end(message);
    answer.writeHead(200, { 'content-type': 'text/event-stream' });
    const log = 'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}\n\n';
    const stream = kind === 6 ? `${log.repeat(n)}data: ${message}\n\n` : `data: ${message}\n\n`;
    const each = kind === 6 ? 16384 : 16;
    for (let at = 0; at < stream.length; at += each) {
      if (!answer.write(stream.slice(at, at + each))) await once(answer, 'drain');
    }
    answer.end();
  });
  played.listen(0, '127.0.0.1');
  await once(played, 'listening');
  return played;
}

/** What a list of one size costs a gateway, from its start until the list is there. */
async function merged(kind, n) {
  const config = join(work, 'config.json');
  const args = [fileURLToPath(import.meta.url), '--upstream', `${kind}:${n}`];
  const played = kind >= 5 ? await streamed(kind, n) : undefined;
  const u = played ? { url: `http://127.0.0.1:${played.address().port}/mcp` } : { command: process.execPath, args };
  writeFileSync(config, JSON.stringify({ mcpServers: { u } }), { mode: 0o600 });
  const { child, url } = await start('serve', '--config', config);
  const list = modern(kind === 4 ? 'resources/templates/list' : 'tools/list', '');
  const { status, text } = await send(url, list);
  const took = ran(child.pid);
  child.kill('SIGKILL');
  children.delete(child);
  played?.closeAllConnections();
  played?.close();
  const weight = kind === 6 ? n * 90 : text.length;
  return { n, took, weight, status, said: /"message":"([^"]{1,200})/.exec(text)?.[1] };
}

/** The median of three. */
async function measured(once, n) {
  const all = [await once(n), await once(n), await once(n)];
  return all.sort((a, b) => a.took - b.took)[1];
}

/** Grows a size until it is worth measuring, and measures it, twice it, and four times it. */
async function grown(once, first, most = Infinity) {
  let n = first;
  let one = await once(n);
  while (one.took < ENOUGH && one.weight < LARGEST / 8 && n * 8 <= most && typeof one.status === 'number' && one.status < 400) {
    n *= 2;
    one = await once(n);
  }
  return [await measured(once, n), await measured(once, 2 * n), await measured(once, 4 * n)];
}

const rows = [];
let worse = 0;

async function row(name, once, first, most) {
  if (!name.includes(values.only)) return;
  const sizes = await grown(once, first, most);
  const [one, , four] = sizes;
  // By what is sent, which may grow faster than what is counted.
  const doublings = Math.log2(Math.max(four.weight, 1) / Math.max(one.weight, 1)) || 2;
  const ratio = (four.took / Math.max(one.took, 1)) ** (1 / doublings);
  const refused = sizes.find(({ status }) => status !== 200 && status !== 202);
  // What costs next to nothing shows nothing by its ratio.
  const bad = four.took > ENOUGH && ratio > LINEAR;
  if (bad) worse += 1;
  const verdict = bad ? 'WORSE' : refused ? `refused: ${refused.status} ${refused.said ?? ''}` : 'linear';
  rows.push([name, sizes.map(({ n }) => n).join(', '), sizes.map(({ took }) => Math.round(took)).join(', '), ratio.toFixed(1), verdict]);
  const [, ...shown] = rows.at(-1);
  console.log(`${name.padEnd(44)} ${shown[0].padEnd(26)} ${shown[1].padEnd(20)} ${shown[2].padEnd(5)} ${shown[3].trim()}`);
}

console.log(`${'size of'.padEnd(44)} ${'n'.padEnd(26)} ${'ms of a processor'.padEnd(20)} x2    verdict`);
for (const [name, make, first = 1000] of SENT) await row(name, (n) => cost(make, n), name.startsWith('headers') || name.startsWith('levels') ? 25 : first, name.endsWith('each other') ? 2400 : Infinity);
for (const [kind, name] of ANSWERED.entries()) {
  if (!name.includes(values.only)) continue;
  // Without what a start costs.
  const { took: began } = await measured((n) => merged(kind, n), 1);
  const once = async (n) => merged(kind, n).then((cost) => ({ ...cost, took: Math.max(cost.took - began, 0) }));
  await row(name, once, 1000, 160_000);
}

if (values.markdown) {
  console.log('\n| what a peer decides | n | ms | for twice as much | |\n|---|---|---|---|---|');
  for (const cells of rows) console.log(`| ${cells.map((cell) => cell.trim()).join(' | ')} |`);
}
console.log(worse ? `\n${worse} worse than linear` : '\nnothing is worse than linear');
process.exit(worse ? 1 : 0);
