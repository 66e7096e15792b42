// Measures each workload in rounds: in each round every contender once, in another order each time.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, release, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { freePort } from '../tests/peers/harness.mjs';
import { gateways, names, servers } from './contenders.mjs';
import { NODE, ROOT, TARGET, install } from './install.mjs';
import { load, ready, start } from './processes.mjs';
import { document, tables } from './report.mjs';
import { compared, without, workloads } from './workloads.mjs';

const USAGE = 'usage: bench/run [--quick] [--only NAME,…] [--rounds N] [--json] [--write]';
const LONG = { rounds: 3, starts: 10, window: { warm: 500, measured: 2000 } };
const QUICK = { rounds: 1, starts: 3, window: { warm: 80, measured: 350 } };

function options() {
  const fail = (why) => {
    console.error(`${why}\n${USAGE}`);
    process.exit(2);
  };
  let values;
  try {
    ({ values } = parseArgs({
      options: {
        quick: { type: 'boolean', default: false },
        only: { type: 'string' },
        rounds: { type: 'string' },
        json: { type: 'boolean', default: false },
        write: { type: 'boolean', default: false },
      },
    }));
  } catch (error) {
    fail(error.message);
  }
  const only = values.only?.split(',') ?? [];
  const known = new Set([...names, ...workloads.map(({ name }) => name)]);
  const unknown = only.find((name) => !known.has(name));
  if (unknown) fail(`there is no ${unknown}; there are ${[...known].join(', ')}`);
  if (values.write && only.length) fail('--write needs all workloads: without --only');
  const rounds = Number(values.rounds ?? (values.quick ? QUICK : LONG).rounds);
  if (!(Number.isInteger(rounds) && rounds > 0)) fail('--rounds is a number above 0');
  const chosen = (all) => {
    const some = all.filter((name) => only.includes(name));
    return some.length ? some : all;
  };
  return {
    ...values,
    ...(values.quick ? QUICK : LONG),
    rounds,
    workloads: chosen(workloads.map(({ name }) => name)),
    contenders: chosen(names),
  };
}

const work = mkdtempSync(join(tmpdir(), 'bench-'));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));
let folders = 0;
function folder() {
  const path = join(work, String((folders += 1)));
  mkdirSync(path);
  return path;
}

/** What a contender is started with, and, for a gateway, what is started behind it. */
async function prepared(workload, contender) {
  const port = await freePort();
  if (workload.of === 'servers') return { spec: servers[contender].http(port, workload.start) };
  const behind = workload.stdio
    ? { command: servers.dateline.stdio() }
    : servers.dateline.http(await freePort(), { only: workload.only });
  const home = folder();
  if (contender === 'direct') return { spec: behind };
  const spec = gateways[contender].front(port, home, workload.stdio ? behind : { address: behind.address, path: behind.path });
  return { spec, behind: workload.stdio ? undefined : behind };
}

/** A job, with the names that a contender gives to tools. */
function named(job, tools) {
  const tool = job.ask?.tool;
  return tool ? { ...job, ask: { ...job.ask, tool: tools[tool] ?? tool } } : job;
}

async function started(workload, contender, options) {
  const [{ job }] = workload.points;
  const of = { ...job, tool: 'echo', times: options.starts, without: without(workload) };
  if (!workload.http) return [await load({ ...of, command: servers[contender].stdio() })];
  const { spec } = await prepared(workload, contender);
  const { command, address, path, tools } = spec;
  return [await load({ ...of, command, address, path, tool: tools.echo ?? 'echo' })];
}

/** One round of a workload with a contender: what was measured at each point. */
async function round(workload, contender, options) {
  if (workload.starts) return started(workload, contender, options);
  if (workload.points[0].job.kind === 'pipe') {
    const command = servers[contender].stdio();
    const results = [];
    for (const { job } of workload.points) results.push(await load({ ...job, command, window: options.window }));
    return results;
  }
  const { spec, behind } = await prepared(workload, contender);
  const up = [];
  try {
    const { address, path, tools } = spec;
    const [{ job: first }] = workload.points;
    const probe = { kind: 'calls', era: first.era ?? (workload.start?.sessions ? 'legacy' : 'modern'), ask: first.ask ?? { method: 'call', tool: 'echo', bytes: 100 } };
    const at = ({ pid }) => ({ address, path, pid, without: without(workload) });
    if (behind) {
      const { address, path } = behind;
      const server = start(behind, folder());
      up.push(server);
      const era = workload.only;
      await ready(server, { ...probe, era, server: { address, path, pid: server.pid } });
    }
    const server = start(spec, folder());
    up.push(server);
    await ready(server, { ...named(probe, tools), server: at(server) });
    const results = [];
    for (const { job } of workload.points) {
      const full = { ...named(job, tools), server: at(server), ...(job.kind === 'calls' ? { window: options.window } : {}) };
      results.push(await load(full).catch((error) => {
        throw new Error(`${error.message} ${server.said()}`);
      }));
    }
    return results;
  } finally {
    for (const server of up.reverse()) await server.stop();
  }
}

/** The medians of what was measured in the rounds. */
function medians(rounds) {
  const middle = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
  return Object.fromEntries(Object.keys(rounds[0]).map((key) => [key, middle(rounds.map((round) => round[key]))]));
}

async function measured(workload, options, missing) {
  const { measured, left } = compared(workload, missing);
  const contenders = measured.filter((name) => options.contenders.includes(name));
  const rounds = Object.fromEntries(contenders.map((name) => [name, []]));
  console.error(`${workload.name}: ${contenders.join(', ') || 'nobody'}`);
  for (let at = 0; at < options.rounds; at++) {
    const order = contenders.map((_, place) => contenders[(place + at) % contenders.length]);
    for (const contender of order) {
      try {
        rounds[contender].push(await round(workload, contender, options));
      } catch (error) {
        throw new Error(`${contender}, ${workload.name}: ${error.message}`);
      }
    }
  }
  const results = contenders.flatMap((contender) =>
    workload.points.map(({ label }, at) => {
      const all = rounds[contender].map((points) => points[at]);
      return { contender, label, ...medians(all), rounds: all };
    }));
  const { name, title, of, column, points } = workload;
  return { name, title, of, column, kind: points[0].job.kind, results, left };
}

const said = (...command) => execFileSync(command[0], command.slice(1), { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim();
/** The version that a program prints; a program that is not there has none. */
function version(...command) {
  try {
    return said(...command).split('\n')[0];
  } catch {
    return 'not there';
  }
}

const machine = () => ({
  processor: cpus()[0]?.model ?? 'unknown',
  cores: cpus().length,
  memory: totalmem(),
  kernel: release().split('-')[0],
  // What else wants the processors.
  load: loadavg()[0],
  rustc: version('rustc', '--version'),
  node: version(NODE(), '--version'),
  python: version(process.env.PYTHON ?? 'python3', '--version'),
  nginx: version('bash', '-c', 'nginx -v 2>&1'),
  dateline: version('git', '-C', ROOT, 'rev-parse', '--short', 'HEAD'),
  date: new Date().toISOString().slice(0, 10),
});

const chosen = options();
const missing = await install(chosen.contenders);
for (const [name, reason] of Object.entries(missing)) console.error(`${name} is left out: ${reason}`);
const began = Date.now();
const run = { machine: machine(), quick: chosen.quick, rounds: chosen.rounds, window: chosen.window, starts: chosen.starts, missing, workloads: [] };
try {
  for (const workload of workloads) {
    if (chosen.workloads.includes(workload.name)) run.workloads.push(await measured(workload, chosen, missing));
  }
} catch (error) {
  console.error(`bench: ${error.message}`);
  process.exit(1);
}
run.seconds = Math.round((Date.now() - began) / 1000);
const json = JSON.stringify(run, null, 1);
writeFileSync(join(TARGET, 'results.json'), `${json}\n`);
console.log(chosen.json ? json : tables(run));
if (chosen.write) writeFileSync(join(ROOT, 'docs/performance.md'), document(run));
console.error(`measured in ${run.seconds} s; ${join(TARGET, 'results.json')}`);
process.exit(0);
