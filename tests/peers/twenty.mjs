// A measurement, not a test: how soon are the tools of seventeen healthy servers listed, when three more are broken? One of those
// never answers, one ends at once, one prints a banner and half a line.
//
//   node twenty.mjs --dateline PATH_TO_BINARY
//
// Three starts, of which the first finds cold caches. For each it prints how many ms after the start of `dateline serve` its URL
// was there, all seventeen were up by its own account, a list was first answered (and of how many of them), and a list had the
// tools of all; after the last one what `dateline status` says. Exit code 1 when a healthy one is missing for a minute.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { get } from 'node:http';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { ERAS } from './clients.mjs';
import { MEMORY, PYTHON, environment, writeConfig } from './config.mjs';
import { datelineOption, endAllAtExit, start } from './harness.mjs';

const [, Modern] = ERAS;
const WAIT_MS = 60_000;

const dateline = datelineOption();
const dir = mkdtempSync(join(tmpdir(), 'dateline-twenty-'));
endAllAtExit(dir);
process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
const env = environment(dir);

const node = (script) => ({ command: process.execPath, args: ['-e', script, dir] });
const broken = {
  silent: node('process.stdin.resume()'),
  gone: node('console.error("no licence key is set"); process.exitCode = 3'),
  banner: node('process.stdout.write("Welcome to banner 1.0\\n{\\"jsonrpc\\": \\"2."); process.stdin.resume()'),
};
const healthy = Object.fromEntries(
  Array.from({ length: 17 }, (_, i) => {
    const kinds = [
      ['memory', { command: process.execPath, args: [MEMORY, dir], env: { MEMORY_FILE_PATH: join(dir, `memory${i}.jsonl`) } }],
      ['time', { command: PYTHON.legacy, args: ['-X', `mark=${dir}`, '-m', 'mcp_server_time', '--local-timezone', 'UTC'] }],
      ['demo', { command: dateline, args: ['demo', '--stdio'] }],
    ];
    const [kind, server] = kinds[i % kinds.length];
    return [`${kind}${i + 1}`, server];
  }),
);
const config = writeConfig(join(dir, 'mcp.json'), { ...broken, ...healthy });

/** Those whose tools are there: every tool stands on several servers, and so bears the name of its own. */
const shown = (tools) => Object.keys(healthy).filter((server) => tools.some(({ name }) => name.startsWith(`${server}_`)));

/** How many of them are up, asked in the way of `dateline status`, without the cost of a process. */
function up() {
  return new Promise((resolve, reject) => {
    const socketPath = join(env.XDG_RUNTIME_DIR, 'dateline', 'admin.sock');
    const request = get({ socketPath, path: '/v1/status', timeout: 5_000 }, async (response) => {
      const { servers } = JSON.parse((await response.toArray()).join(''));
      resolve(servers.filter(({ name, state }) => name in healthy && state === 'up').length);
    });
    request.on('error', reject).on('timeout', () => request.destroy(new Error('no answer of the admin socket')));
  });
}

async function measure(run) {
  const began = performance.now();
  const ms = () => `${Math.round(performance.now() - began)} ms`;
  const server = await start(dateline, ['serve', '--config', config, '--listen', '127.0.0.1:0'], env);
  const url = ms();
  const allUp = (async () => {
    while ((await up()) < Object.keys(healthy).length && performance.now() - began < WAIT_MS) await sleep(20);
    return ms();
  })().catch((error) => error.message);
  const peer = await Modern.connect({ url: server.url });
  let first;
  for (;;) {
    const tools = await peer.tools();
    const there = shown(tools);
    first ??= `${ms()}, of ${there.length}`;
    if (there.length === Object.keys(healthy).length) {
      const listed = ms();
      const line = { URL: url, 'all up': await allUp, 'first list': first, 'list of all': `${listed}, ${tools.length} tools` };
      console.log(`start ${run}: ${Object.entries(line).map((pair) => pair.join(' ')).join('; ')}`);
      return { server, peer };
    }
    if (performance.now() - began > WAIT_MS) {
      const missing = Object.keys(healthy).filter((name) => !there.includes(name));
      console.log(`start ${run}: still missing after ${ms()}: ${missing}`);
      process.exit(1);
    }
    await sleep(20);
  }
}

console.log(`${availableParallelism()} processors, load ${loadavg()[0].toFixed(1)}`);
for (const run of [1, 2, 3]) {
  const { server, peer } = await measure(run);
  if (run === 3) {
    await sleep(5_000); // what is broken shows how
    console.log(execFileSync(dateline, ['status'], { env, encoding: 'utf8', timeout: 10_000 }).trimEnd());
  }
  await peer.close();
  await server.stop();
}
process.exit(0);
