// Starts what is measured, and ends it.

import { execFile, spawn } from 'node:child_process';
import { openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

import { paths } from './install.mjs';

const READY_MS = 30_000;
const STOP_MS = 5_000;
const JOB_MS = 180_000;
const running = new Set();

/** The end of what a process said. */
const tail = (log) => readFileSync(log, 'utf8').trim().slice(-600);

/** Starts a server; `folder` gets what it says. */
export function start({ command: [program, ...args], env, ...more }, folder) {
  const log = join(folder, 'said.log');
  const file = openSync(log, 'w');
  // In a group of its own, so that all of it ends.
  const child = spawn(program, args, { stdio: ['ignore', file, file], env: { ...process.env, ...env }, cwd: folder, detached: true });
  const ended = new Promise((resolve) => {
    child.once('exit', resolve);
    child.once('error', resolve);
  });
  const group = (signal) => {
    try {
      process.kill(-child.pid, signal);
    } catch {
      // It ended.
    }
  };
  const server = {
    ...more,
    pid: child.pid,
    said: () => tail(log),
    end: () => group('SIGKILL'),
    async stop() {
      child.kill('SIGTERM');
      await Promise.race([ended, sleep(STOP_MS, undefined, { ref: false })]);
      group('SIGKILL');
      await ended;
      running.delete(server);
    },
    hasEnded: () => child.exitCode !== null || child.signalCode !== null,
  };
  running.add(server);
  return server;
}

/** Does a job; gives what was measured. */
export async function load(job) {
  const { stdout } = await promisify(execFile)(paths.load, [JSON.stringify(job)], { timeout: JOB_MS, maxBuffer: 1 << 20 }).catch((error) => {
    throw new Error((error.stderr || error.message).replace(/^Error: /, '').trim());
  });
  return JSON.parse(stdout);
}

/** Waits until a server gives the right answer. */
export async function ready(server, job) {
  const end = Date.now() + READY_MS;
  for (;;) {
    try {
      return await load({ ...job, connections: 1, window: { warm: 0, measured: 1 } });
    } catch (error) {
      if (server.hasEnded()) throw new Error(`it ended: ${server.said()}`);
      if (Date.now() > end) throw new Error(`${error.message} ${server.said()}`);
      await sleep(50);
    }
  }
}

process.on('exit', () => running.forEach((server) => server.end()));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));
