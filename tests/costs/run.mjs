// What a call costs, counted where noise cannot reach: instructions, allocations and system calls of the main paths, by
// valgrind's callgrind, against the numbers of costs.json. More than 5 % above is a failure, more than 5 % below is said, so that
// the number can be lowered.
//
//   node tests/costs/run.mjs --dateline target/debug/dateline [--only WORD] [--write]
//
// Every path runs twice, with some calls and with three times as many; a call costs the difference, so that what a start
// costs does not count. --write writes the numbers down. They hold for a compiler and a kind of processor: elsewhere nothing is
// compared, and that is said.
//
// Debug binaries, as the other tests have them: what is counted is whether a change adds work. docs/performance.md has times.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    dateline: { type: 'string', default: 'target/debug/dateline' },
    only: { type: 'string', default: '' },
    write: { type: 'boolean', default: false },
  },
});
const dateline = resolve(values.dateline);
const FILE = join(fileURLToPath(new URL('.', import.meta.url)), 'costs.json');
/** How far from its number a cost may be, in parts of it. */
const ROOM = 0.05;
/** Costs of few pieces may differ by so many: a buffer more or less; system calls also by how often a thread slept meanwhile. */
const PIECES = { instructions: 0, allocations: 3, 'system calls': 8 };
const FEW = 60;
const MANY = 3 * FEW;
const MODERN = '2026-07-28';
const LEGACY = '2025-11-25';
/** No run takes longer. */
const RUN_MS = 120_000;

const ALLOCATORS = /^_*(__rust_alloc|__rust_alloc_zeroed|__rust_realloc|__rustc::__rust_alloc|__rustc::__rust_alloc_zeroed|__rustc::__rust_realloc)/;
const SYSTEM = new Set(['read', 'write', 'readv', 'writev', 'recv', 'send', 'epoll_wait', 'syscall', 'sendmsg', 'recvmsg']);

const META = {
  'io.modelcontextprotocol/protocolVersion': MODERN,
  'io.modelcontextprotocol/clientInfo': { name: 'costs', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** A message of a call of `tool` or of a list, and the headers that mirror it. */
function modern(id, method, params) {
  const body = JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta: META } });
  const named = params.name ? { 'mcp-name': params.name } : {};
  return { body, headers: { 'mcp-protocol-version': MODERN, 'mcp-method': method, ...named } };
}
const legacy = (id, method, params) => ({ body: JSON.stringify({ jsonrpc: '2.0', id, method, params }), headers: {} });
const opening = legacy(0, 'initialize', {
  protocolVersion: LEGACY, capabilities: {}, clientInfo: { name: 'costs', version: '1' },
});
const opened = { body: JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }), headers: {} };

const add = { name: 'add', arguments: { a: 40, b: 2 } };
const sum = (result) => assert.equal(result.content?.[0]?.text, '{"sum":42}');
const listed = (result) => assert.ok(result.tools?.length > 5);

const running = new Set();
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')));

/** The program under callgrind, and its children as they are. */
function start(args, out) {
  const options = ['--tool=callgrind', '--trace-children=no', `--callgrind-out-file=${out}`, `--log-file=${out}.log`, dateline];
  const env = { ...process.env, DATELINE_LOG: 'info' };
  const child = spawn('valgrind', [...options, ...args], { env, stdio: ['pipe', 'pipe', 'pipe'] });
  running.add(child);
  return child.once('exit', () => running.delete(child));
}

/** Calls over standard streams, one after the other. */
async function pipe(args, path, calls, out) {
  const child = start(args, out);
  child.stderr.resume();
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const say = (message) => child.stdin.write(`${message.body}\n`);
  const answer = async (id) => {
    for (;;) {
      const { value, done } = await lines.next();
      assert.ok(!done, 'it ended before it answered');
      const message = JSON.parse(value);
      if (message.id === id) return message.result ?? assert.fail(value);
    }
  };
  if (path.legacy) {
    say(opening);
    await answer(0);
    say(opened);
  }
  for (let id = 1; id <= calls; id++) {
    say((path.legacy ? legacy : modern)(id, path.method, path.params));
    path.check(await answer(id));
  }
  child.stdin.end();
  await once(child, 'exit');
}

/** The result of a call in a body: JSON, or an event stream where the answer took its time. */
function answered(text, id) {
  if (text.startsWith('{')) return JSON.parse(text).result;
  const events = text.split('\n').filter((line) => line.startsWith('data:') && line.length > 6);
  return events.map((line) => JSON.parse(line.slice(5))).find((message) => message.id === id)?.result;
}

/** Calls over HTTP on one connection, one after the other. */
async function http(args, path, calls, out) {
  const child = start([...args, '--listen', '127.0.0.1:0'], out);
  let said = '';
  const url = await new Promise((found, failed) => {
    child.stderr.on('data', (chunk) => {
      said += chunk;
      const at = /http:\/\/\S+/.exec(said);
      // A gateway says so of the server behind it.
      if (at && (args[0] !== 'serve' || said.includes('dateline: up'))) found(new URL(at[0]));
    });
    child.once('exit', () => failed(new Error(`it ended before it served: ${said.slice(-500)}`)));
  });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  let session = {};
  const post = (message) =>
    new Promise((found, failed) => {
      const headers = {
        'content-type': 'application/json', accept: 'application/json, text/event-stream',
        'content-length': Buffer.byteLength(message.body), ...session, ...message.headers,
      };
      const sent = request(url, { method: 'POST', agent, headers }, (answer) => {
        let text = '';
        answer.setEncoding('utf8').on('data', (chunk) => (text += chunk)).on('end', () => found({ answer, text }));
      });
      sent.on('error', failed).end(message.body);
    });
  if (path.legacy) {
    const { answer } = await post(opening);
    session = { 'mcp-session-id': answer.headers['mcp-session-id'], 'mcp-protocol-version': LEGACY };
    await post(opened);
  }
  for (let id = 1; id <= calls; id++) {
    const { text } = await post((path.legacy ? legacy : modern)(id, path.method, path.params));
    path.check(answered(text, id) ?? assert.fail(text));
  }
  agent.destroy();
  child.kill('SIGTERM');
  await once(child, 'exit');
}

const dir = mkdtempSync(join(tmpdir(), 'dateline-costs-'));
process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
const config = (name, args) => {
  const file = join(dir, `${name}.json`);
  writeFileSync(file, JSON.stringify({ mcpServers: { demo: { command: dateline, args: ['demo', '--stdio', ...args] } } }));
  return ['--config', file];
};

const PATHS = {
  'stdio, modern call': { run: pipe, args: ['demo', '--stdio'], method: 'tools/call', params: add, check: sum },
  'stdio, call of a session': { run: pipe, args: ['demo', '--stdio'], legacy: true, method: 'tools/call', params: add, check: sum },
  'http, modern call': { run: http, args: ['demo'], method: 'tools/call', params: add, check: sum },
  'http, call of a session': { run: http, args: ['demo'], legacy: true, method: 'tools/call', params: add, check: sum },
  'http, modern list of tools': { run: http, args: ['demo'], method: 'tools/list', params: {}, check: listed },
  'gateway, modern call to a modern server': {
    run: http, args: ['serve', ...config('modern', [])], method: 'tools/call', params: add, check: sum,
  },
  'gateway, modern call to a legacy server': {
    run: http, args: ['serve', ...config('legacy', ['--era', 'legacy'])], method: 'tools/call', params: add, check: sum,
  },
};

/** What callgrind counted in a run. */
function counted(file) {
  const names = new Map();
  const counts = { instructions: 0, allocations: 0, 'system calls': 0 };
  let called;
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    const named = /^(c?fn)=\((\d+)\)(?: (.*))?$/.exec(line);
    if (named) {
      if (named[3]) names.set(named[2], named[3]);
      if (named[1] === 'cfn') called = names.get(named[2]) ?? '';
    } else if (line.startsWith('calls=')) {
      const times = Number(/^calls=(\d+)/.exec(line)[1]);
      if (ALLOCATORS.test(called)) counts.allocations += times;
      else if (SYSTEM.has(called.replace(/'\d+$/, ''))) counts['system calls'] += times;
    } else if (line.startsWith('totals:')) counts.instructions = Number(line.split(/\s+/)[1]);
  }
  assert.ok(counts.instructions > 0, `${file} has no totals`);
  return counts;
}

async function run(path, calls, name) {
  const out = join(dir, `${name.replace(/\W+/g, '-')}-${calls}.out`);
  const late = new Promise((_, fail) => setTimeout(fail, RUN_MS, new Error(`${name}: no end within ${RUN_MS / 1000} s`)).unref());
  await Promise.race([path.run(path.args, path, calls, out), late]);
  return counted(out);
}

async function cost(name, path) {
  const [few, many] = await Promise.all([run(path, FEW, name), run(path, MANY, name)]);
  const each = Object.entries(many).map(([what, count]) => [what, Math.round((count - few[what]) / (MANY - FEW))]);
  return Object.fromEntries(each);
}

const compiler = `${execFileSync('rustc', ['--version'], { encoding: 'utf8' }).trim()}, ${process.arch}`;
const known = JSON.parse(readFileSync(FILE, 'utf8'));
const compared = known.compiler === compiler;
if (!compared && !values.write) console.log(`nothing is compared: costs.json is of ${known.compiler}, this is ${compiler}`);
const now = {};
let worse = 0;
for (const [name, path] of Object.entries(PATHS).filter(([name]) => name.includes(values.only))) {
  now[name] = await cost(name, path);
  for (const [what, count] of Object.entries(now[name])) {
    const due = known.costs[name]?.[what];
    const change = due ? count / due - 1 : 0;
    const differs = compared && due !== undefined && Math.abs(count - due) > PIECES[what] && Math.abs(change) > ROOM;
    const missing = compared && due === undefined && !values.write;
    const more = differs && count > due;
    worse += (more && !values.write) || missing ? 1 : 0;
    const shown = differs ? `, ${more ? 'MORE' : 'less'} than ${due} (${(100 * change).toFixed(1)} %)` : missing ? ', which costs.json lacks' : '';
    console.log(`${name}: ${count} ${what}${shown}`);
  }
}
if (values.write) {
  const costs = values.only ? { ...known.costs, ...now } : now;
  writeFileSync(FILE, `${JSON.stringify({ compiler, costs }, null, 2)}\n`);
  console.log(`written to ${FILE}`);
}
console.log(worse ? `costs: ${worse} are more than they may be` : 'costs: none is more than it may be');
process.exit(worse ? 1 : 0);
