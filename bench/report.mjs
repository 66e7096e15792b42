// What was measured, as tables for a terminal and as a document.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { gateways, servers } from './contenders.mjs';
import { BENCH } from './install.mjs';

const number = (value, digits = 0) => value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
/** Microseconds, with a digit where there are few. */
const micros = (value) => number(value, value < 100 ? 1 : 0);
const millis = (value) => number(value / 1000, 1);
const mib = (bytes) => number(bytes / (1 << 20), 1);
const kib = (bytes) => number(bytes / 1024, 1);
const times = (value) => (Number.isFinite(value) ? `${number(value, value < 10 ? 2 : 0)}` : '');

/** Columns by the kind of a job: a title, and the cell of a result. `own` is dateline's result at the same point. */
const columns = {
  calls: (workload) => [
    [workload.column, ({ label }) => label],
    ['calls/s', ({ perSecond }) => number(perSecond)],
    ['p50 µs', ({ p50 }) => micros(p50)],
    ['p99 µs', ({ p99 }) => micros(p99)],
    ...(workload.results.some(({ contender }) => contender === 'direct')
      ? [['added to p50, µs', ({ p50, contender }, { direct }) => (contender === 'direct' ? '' : micros(p50 - direct.p50))]]
      : []),
    ['CPU µs/call', ({ worked }) => micros(worked)],
    ['peak MiB', ({ peak }) => mib(peak)],
    ['dateline ÷ it, calls/s', ({ perSecond }, { own }) => times(own?.perSecond / perSecond)],
  ],
  listens: () => [
    ['listens', ({ label }) => label],
    ['told, p50 ms', ({ p50 }) => millis(p50)],
    ['all told, ms', ({ last }) => millis(last)],
    ['KiB a listen', ({ each }) => kib(each)],
    ['it ÷ dateline, all told', ({ last }, { own }) => times(last / own?.last)],
  ],
  sessions: () => [
    ['sessions', ({ label }) => label],
    ['KiB a session', ({ each }) => kib(each)],
  ],
  start: () => [
    ['ms to the first answer', ({ p50 }) => millis(p50)],
    ['idle MiB', ({ idle }) => mib(idle)],
    ['it ÷ dateline, ms', ({ p50 }, { own }) => times(p50 / own?.p50)],
  ],
};
columns.pipe = columns.calls;

const title = ({ of }, contender) => (of === 'servers' ? servers : gateways)[contender].title;

/** A workload as rows of cells; the first row has the titles. */
function rows(workload) {
  const shown = columns[workload.kind](workload);
  const of = (name, { label }) => workload.results.find((other) => other.contender === name && other.label === label);
  const cells = workload.results.map((result) => [
    title(workload, result.contender),
    ...shown.map(([, cell]) => cell(result, { own: of('dateline', result), direct: of('direct', result) })),
  ]);
  return [[workload.of === 'servers' ? 'server' : 'gateway', ...shown.map(([name]) => name)], ...cells];
}

/** Who is left out of a workload, and why. */
const left = (workload) => Object.entries(workload.left).map(([name, reason]) => `${title(workload, name)} (${reason})`);

/** How many times as many calls dateline does as the others, with 16 connections or calls in flight: a row a workload. */
function summary(run, of) {
  const among = run.workloads.filter((workload) => workload.of === of && ['calls', 'pipe'].includes(workload.kind));
  const others = Object.keys(of === 'servers' ? servers : gateways).filter((name) => name !== 'dateline');
  const cells = among.map((workload) => {
    const at = (name) => workload.results.find(({ contender, label }) => contender === name && label === '16');
    return [workload.name, ...others.map((name) => times(at('dateline')?.perSecond / at(name)?.perSecond))];
  });
  return [[`dateline ÷ ${of === 'servers' ? 'server' : 'gateway'}`, ...others.map((name) => title({ of }, name))], ...cells];
}

/** Rows in columns of spaces. */
function aligned(all) {
  const widths = all[0].map((_, at) => Math.max(...all.map((row) => row[at].length)));
  return all.map((row) => row.map((cell, at) => (at ? cell.padStart(widths[at]) : cell.padEnd(widths[at]))).join('  '));
}

/** For a terminal. */
export function tables(run) {
  const each = run.workloads.map((workload) => {
    const out = left(workload);
    return [`${workload.name}: ${workload.title}`, ...aligned(rows(workload)), ...(out.length ? [`left out: ${out.join(', ')}`] : []), ''].join('\n');
  });
  const short = ['servers', 'gateways'].map((of) => summary(run, of)).filter((rows) => rows.length > 1);
  return [...each, ...short.map((rows) => ['Calls/s with 16 connections', ...aligned(rows), ''].join('\n'))].join('\n');
}

const pinned = (file, name) => new RegExp(`^${name}==(.*)$`, 'm').exec(readFileSync(join(BENCH, 'python', file), 'utf8'))[1];
const locked = (file, name) => new RegExp(`name = "${name}"\\nversion = "(.*)"`).exec(readFileSync(join(BENCH, file), 'utf8'))[1];

/** What is compared, in which version. */
function versions({ machine }) {
  const { dependencies } = JSON.parse(readFileSync(join(BENCH, 'package.json'), 'utf8'));
  return [
    ['dateline', `revision ${machine.dateline}`],
    ['bare hyper', `hyper ${locked('Cargo.lock', 'hyper')}`],
    ['rmcp', locked('Cargo.lock', 'rmcp')],
    ['TypeScript SDK', `@modelcontextprotocol/server ${dependencies['@modelcontextprotocol/server']}, node ${dependencies['@modelcontextprotocol/node']}`],
    ['nginx', machine.nginx.replace('nginx version: ', '')],
    ['mcp-proxy (crates.io)', '0.6.0, with the feature protocol-2026-07-28 and without the default ones'],
    ['mcp-proxy (npm)', dependencies['mcp-proxy']],
    ['supergateway (npm)', dependencies.supergateway],
    ['mcp-proxy (PyPI)', pinned('requirements-mcp-proxy.txt', 'mcp-proxy')],
    ['FastMCP (PyPI)', pinned('requirements-fastmcp.txt', 'fastmcp')],
  ];
}

const table = ([head, ...rest]) =>
  [head, head.map((_, at) => (at ? '--:' : '---')), ...rest].map((row) => `| ${row.join(' | ')} |`).join('\n');

/** docs/performance.md. */
export function document(run) {
  const { machine, quick, rounds, window, starts, seconds } = run;
  const usual = rounds === (quick ? 1 : 3);
  const command = `bench/run${quick ? ' --quick' : ''}${usual ? '' : ` --rounds ${rounds}`} --write`;
  const workloads = run.workloads.map((workload) => {
    const out = left(workload);
    return `### ${workload.title}\n\n\`${workload.name}\`\n\n${table(rows(workload))}\n${out.length ? `\nLeft out: ${out.join('; ')}.\n` : ''}`;
  });
  return `# Performance

This document is made by \`${command}\`; do not edit it.

dateline is compared with other servers and gateways in one run on one machine. **On a noisy machine only the ratios of one run
count**: numbers of two runs, or of two machines, must not be compared.

## The run

| | |
|---|---|
| Date | ${machine.date} |
| Command | \`${command}\`, ${Math.round(seconds / 60) || 1} min |
| Machine | ${machine.processor}, ${machine.cores} cores, ${number(machine.memory / 2 ** 30)} GiB, Linux ${machine.kernel} |
| Load when it began | ${number(machine.load, 1)} processes wanted one of the ${machine.cores} cores: a quiet machine has about 0 |
| Compilers and runtimes | ${machine.rustc}; Node ${machine.node}; ${machine.python} |
| Rounds | ${rounds}; in each round every contender once, in another order |
| Window | ${window.measured} ms for each row, after ${window.warm} ms that are not counted; ${starts} starts |

${quick ? 'This is a quick run: each row is one short window. It shows orders of magnitude, and differences below a fifth say nothing.\n' : 'Each number is the median of the rounds.\n'}
| contender | version |
|---|---|
${versions(run).map((row) => `| ${row.join(' | ')} |`).join('\n')}
${Object.keys(run.missing).length ? `\nNot installed, and so left out: ${Object.entries(run.missing).map(([name, reason]) => `${name} (${reason})`).join('; ')}.\n` : ''}
## In short

How many times as many calls a second dateline does as the others, with 16 connections (on standard streams 16 calls in flight).
A number above 1 says that dateline is faster.

${table(summary(run, 'servers'))}

${table(summary(run, 'gateways'))}

## How it is measured

- The client, \`bench/load\`, is the same for all. It runs on one thread and sends the next request on a connection when the
  answer to the one before is there. It checks each answer: its id, its text, its notifications. A wrong answer ends the run.
- All servers have the same tools with the same schemas. The echo gives its text back. No server has a path for the benchmark.
- Everything in Rust is built in release mode with thin LTO and four codegen units, and runs on its own default runtime. The
  servers allocate by the system's allocator; the program \`dateline\` by jemalloc, as it is shipped.
- *bare hyper* reads a call and echoes it, and does and checks nothing else: the least that a server on HTTP costs.
- Behind each gateway is the same server, the echo by dateline. \`none\` is this server without a gateway.
- *CPU* is the user and system time of the server's processes for each call, from \`/proc\`. *Peak* is the sum of the most memory
  that each of them had. The server behind a gateway is not counted.
- *calls/s* is what this machine does with the client and the server on the same cores. The client's share is the same for
  all, so ratios between fast servers are smaller than they are without it.
- A session costs what the resident memory grew by with 1,000 sessions, divided by 1,000. So does a listen.
- Each connection of a legacy client has a session of its own. Some gateways start a program for each session or request; the
  others share one.

## How to repeat it

\`\`\`sh
${command}
\`\`\`

It needs Linux, cargo with a C compiler, Node 20 or newer with npm, Python 3.10 to 3.13 with venv, and nginx. It builds and
installs all that it compares, in the versions that the lock files in \`bench/\` name. \`bench/run --only call-100,rmcp,dateline\`
measures one workload with two servers. What was measured in each round is in \`target/bench/results.json\`.

## Servers

${workloads.filter((_, at) => run.workloads[at].of === 'servers').join('\n')}
## Gateways

${workloads.filter((_, at) => run.workloads[at].of === 'gateways').join('\n')}`;
}
