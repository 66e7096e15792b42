// What idle sessions cost: opens sessions of Streamable HTTP, each with a GET stream, and says how much memory and how
// many open files the server has for each, and what is left when the clients vanished.
//
//   node tests/measure/sessions.mjs --dateline target/release/dateline [--sessions 2000] [--revision 2025-11-25]
//
// Linux only: it reads /proc. Memory is the resident set; what the allocator keeps for later counts, too.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    dateline: { type: 'string', default: 'target/release/dateline' },
    sessions: { type: 'string', default: '2000' },
    revision: { type: 'string', default: '2025-11-25' },
  },
});
const count = Number(values.sessions);

const server = spawn(values.dateline, ['demo', '--listen', '127.0.0.1:0'], { stdio: ['ignore', 'ignore', 'pipe'] });
process.on('exit', () => server.kill('SIGKILL'));
const [line] = await once(createInterface({ input: server.stderr }), 'line');
const url = /http:\S+/.exec(line)[0];

const resident = () => Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))[1]);
const files = () => readdirSync(`/proc/${server.pid}/fd`).length;
const threads = () => Number(/Threads:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))[1]);
const state = () => ({ resident: resident(), files: files(), threads: threads() });

/** One exchange; resolves to the response once its head is there. */
function ask(method, headers, body, agent) {
  return new Promise((resolve, reject) => {
    const asked = request(url, { method, agent, headers: { accept: 'application/json, text/event-stream', ...headers } }, resolve);
    asked.on('error', reject);
    asked.end(body);
  });
}

const drained = (response) => new Promise((resolve) => response.resume().on('end', resolve));
const keep = new Agent({ keepAlive: true, maxSockets: 4 });
const json = { 'content-type': 'application/json' };
const params = { protocolVersion: values.revision, capabilities: {}, clientInfo: { name: 'measure', version: '1' } };

async function open() {
  const answer = await ask('POST', json, JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }), keep);
  await drained(answer);
  const session = { 'mcp-session-id': answer.headers['mcp-session-id'] };
  const initialized = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' });
  await drained(await ask('POST', { ...json, ...session }, initialized, keep));
  const stream = await ask('GET', session, undefined, new Agent());
  if (stream.statusCode !== 200) throw new Error(`the stream was answered with ${stream.statusCode}`);
  stream.on('error', () => {}).resume();
  return stream;
}

// One to warm up: what the first session makes stays for all.
(await open()).destroy();
const before = state();
const streams = [];
while (streams.length < count) streams.push(...(await Promise.all(Array.from({ length: Math.min(50, count - streams.length) }, open))));
const during = state();
for (const stream of streams) stream.destroy();
const deadline = Date.now() + 30_000;
while (files() > before.files && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 100));
const after = state();

const show = (when, { resident, files, threads }) => console.log(`${when.padEnd(28)} ${String(resident).padStart(7)} KiB ${String(files).padStart(6)} files ${threads} threads`);
show('before', before);
show(`with ${count} sessions`, during);
show('after the clients vanished', after);
console.log(`${((during.resident - before.resident) / count).toFixed(1)} KiB a session`);
server.kill('SIGTERM');
