// Checks that are counted, waits that end, and processes that are ended.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

const CHECK_MS = 30_000;
const START_MS = 30_000;
const STOP_MS = 10_000;
const RUN_MS = 10 * 60_000;

/** The path to the binary, which is all that most scripts here need to know. */
export const datelineOption = () => scriptOptions().dateline;

/** That path as `dateline`, and `more` options in the form of parseArgs. */
export function scriptOptions(more = {}) {
  const script = process.argv[1].split('/').pop();
  try {
    const { values } = parseArgs({ options: { dateline: { type: 'string' }, ...more } });
    const { dateline } = values;
    if (dateline && existsSync(dateline)) return { ...values, dateline: resolve(dateline) };
    console.error(dateline ? `${dateline} does not exist: build it first` : 'where is the binary?');
  } catch (error) {
    console.error(error.message);
  }
  const rest = Object.entries(more).map(([name, { default: value }]) => ` [--${name} ${value}]`);
  console.error(`usage: node ${script} --dateline PATH_TO_BINARY${rest.join('')}`);
  process.exit(2);
}

export class Checks {
  passed = 0;
  failed = 0;

  constructor() {
    // What a client throws outside of any call still counts, and the run still ends with its line.
    process.on('uncaughtException', (error) => this.check('nothing unexpected', () => Promise.reject(error)));
  }

  /** Runs one check and prints its line. What it returns is returned; undefined when it failed. */
  async check(name, run, ms = CHECK_MS) {
    try {
      const value = await within(ms, run());
      this.passed += 1;
      console.log(`ok   ${name}`);
      return value;
    } catch (error) {
      this.failed += 1;
      const lines = String(error?.message ?? error).split('\n').map((line) => line.trim()).filter(Boolean);
      console.log(`FAIL ${name}: ${lines.join(' | ').slice(0, 600)}`);
    }
  }

  /** The last line, and the exit. */
  finish(title) {
    console.log(`${title}: ${this.passed} passed, ${this.failed} failed`);
    process.exit(this.failed === 0 && this.passed > 0 ? 0 : 1);
  }
}

export async function within(ms, promise, what = 'no answer') {
  const limit = new AbortController();
  const timeout = sleep(ms, undefined, { signal: limit.signal }).then(() => {
    throw new Error(`${what} within ${ms / 1000} s`);
  });
  timeout.catch(() => {});
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    limit.abort();
  }
}

export async function until(what, condition, ms = 5_000) {
  for (const end = Date.now() + ms; Date.now() < end; await sleep(20)) if (await condition()) return;
  throw new Error(`${what}: not within ${ms / 1000} s`);
}

/** Fails unless the promise is rejected; gives the error. */
export async function rejection(promise) {
  const [outcome] = await Promise.allSettled([promise]);
  assert.equal(outcome.status, 'rejected', `expected an error, got ${JSON.stringify(outcome.value)}`);
  return outcome.reason;
}

/** Progress so far, as seen by a client: it grows, and its total is `total`. */
export function assertProgress(seen, total) {
  // The last one may be missing: both official clients forget the call as they read its result, before they hand out a
  // notification that stood right before it.
  // server-everything asks for roots at its start, also while a call runs; answering that is a round of input, which the
  // 2.x client reports as progress of its own making.
  seen = seen.filter((p) => !p.message?.startsWith('Fulfilling input required'));
  assert.ok(seen.length >= total - 1, `${seen.length} of ${total} notifications arrived`);
  assert.deepEqual(seen.map((p) => p.progress), [...seen.keys()].map((i) => i + 1));
  assert.deepEqual([...new Set(seen.map((p) => p.total))], [total]);
}

/** Aborts a call after its first progress: the call must end at once. */
export async function cancelled(call) {
  const abort = new AbortController();
  let first;
  const started = new Promise((resolve) => (first = resolve));
  const running = rejection(call({ signal: abort.signal, onprogress: first }));
  const failed = running.then((error) => Promise.reject(error));
  failed.catch(() => {}); // after the abort it is what we want
  await within(10_000, Promise.race([started, failed]), 'no progress');
  abort.abort('no longer wanted');
  await within(5_000, running, 'the call did not end');
}

const children = new Set();

/** A process that ends with the run at the latest. */
export function own(child) {
  children.add(child);
  child.once('exit', () => children.delete(child));
  return child;
}

/** Starts a server and waits until it says that it serves: `ready` is what it prints then. */
export async function launch(command, args, { ready, env }) {
  const child = own(spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'] }));
  let output = '';
  const match = new Promise((resolve, reject) => {
    const read = (chunk) => {
      output = (output + chunk).slice(-20_000);
      const found = ready.exec(output);
      if (found) resolve(found);
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.on('error', reject);
    child.on('exit', (code, signal) => reject(new Error(`it ended with ${code ?? signal} before it served`)));
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const server = {
    pid: child.pid,
    output: () => output,
    async kill() {
      child.kill('SIGKILL');
      await within(STOP_MS, ended);
    },
    async stop(signal = 'SIGTERM') {
      assert.ok(child.kill(signal), `it had ended before, with ${child.exitCode ?? child.signalCode}`);
      try {
        await within(STOP_MS, ended, `it did not end at ${signal}`);
      } finally {
        child.kill('SIGKILL');
      }
      assert.equal(child.signalCode, null, `${signal} was not handled`);
    },
  };
  try {
    server.match = await within(START_MS, match);
    return server;
  } catch (error) {
    child.kill('SIGKILL');
    throw new Error(`${error.message}: ${output.slice(-500)}`);
  }
}

/** Starts dateline and waits for the URL that it prints once it serves. */
export async function start(binary, args, env) {
  const server = await launch(binary, args, { ready: /http:\/\/127\.0\.0\.1:\d+\/mcp/, env });
  return Object.assign(server, { url: server.match[0] });
}

/** A port that was free a moment ago, for a server that cannot tell which it took. */
export async function freePort() {
  const socket = createServer().listen(0, '127.0.0.1');
  await once(socket, 'listening');
  const { port } = socket.address();
  socket.close();
  await once(socket, 'close');
  return port;
}

/** The processes that have `mark` in their arguments, this one excepted: [id, arguments]. */
export function processes(mark) {
  const own = String(process.pid);
  const all = existsSync('/proc/self/cmdline') // where it exists no `ps` is needed
    ? readdirSync('/proc').filter((id) => /^\d+$/.test(id)).map((id) => [id, argumentsOf(id)])
    : execFileSync('ps', ['-Aww', '-o', 'pid=,args='], { encoding: 'utf8' })
        .split('\n')
        .map((line) => /^\s*(\d+)\s+(.*)$/.exec(line)?.slice(1) ?? ['', '']);
  return all.filter(([id, args]) => id !== own && args.includes(mark));
}

function argumentsOf(id) {
  try {
    return readFileSync(`/proc/${id}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return ''; // it ended meanwhile
  }
}

/** Whatever happens, nothing that was started stays. `mark` finds what the children started. */
export function endAllAtExit(mark) {
  const end = () => {
    for (const child of children) child.kill('SIGTERM');
    for (const [id] of mark ? processes(mark) : []) {
      try {
        process.kill(Number(id), 'SIGTERM');
      } catch {
        // it ended meanwhile
      }
    }
  };
  process.on('exit', end);
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));
  setTimeout(() => {
    console.log(`FAIL the run took more than ${RUN_MS / 60_000} minutes`);
    process.exit(1);
  }, RUN_MS).unref();
}
