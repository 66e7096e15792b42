// Runs the official conformance suite against a server and reads the results itself.
//
//   node run.mjs --url URL (--set REVISION | --all REVISION | --scenarios NAME,... --at REVISION) [--label NAME] [--json FILE]
//
// --set    the frozen requirements of that revision: what is scored is what the suite's own requirements file says
// --all    every scenario that exists at that revision, all of them counted as scored, and a warning counted as a failure
// --scenarios  these, at this revision, also those of extensions, which belong to none; a warning or a check that was skipped
//          is counted as a failure
//
// Exit code: 0 all scored scenarios passed, 1 one failed or the suite did not run, 2 usage.
//
// The suite's summary hides warnings, and a scenario that threw leaves no result at all, so the summary is not believed:
// a scored scenario passes when its checks.json is there, has a success that says something, and no failure.

import { spawn } from 'node:child_process';
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { node22 } from '../node22.mjs';

const MODULES = join(dirname(fileURLToPath(import.meta.url)), 'node_modules');
const SUITE = join(MODULES, '@modelcontextprotocol', 'conformance');
const LIMIT_MS = 20 * 60_000; // a scenario has a limit of 30 s in the suite; this one is for the suite itself

function usage(message) {
  const runs = '(--set REVISION | --all REVISION | --scenarios NAME,... --at REVISION)';
  console.error(`${message}\nusage: node run.mjs --url URL ${runs} [--label NAME] [--json FILE]`);
  process.exit(2);
}

function options() {
  const option = { type: 'string' };
  try {
    const names = ['url', 'set', 'all', 'scenarios', 'at', 'label', 'json'];
    const { values } = parseArgs({ options: Object.fromEntries(names.map((name) => [name, option])) });
    const runs = [values.set, values.all, values.scenarios].filter(Boolean);
    if (!values.url || runs.length !== 1) usage('give --url, and one of --set, --all and --scenarios');
    if (!values.scenarios !== !values.at) usage('--scenarios and --at go together');
    if (!existsSync(SUITE)) usage('the suite is not installed: run tests/setup.sh');
    if (values.set && !existsSync(requirementsFile(values.set))) usage(`the suite has no requirements for ${values.set}`);
    return values;
  } catch (error) {
    usage(error.message);
  }
}

const requirementsFile = (revision) => join(SUITE, 'requirements', `${revision}.yaml`);

/** What is scored, from the suite's own file and by the suite's own parser: a map of scenario to null or the reason why not. */
function requirements(revision) {
  const { parse } = createRequire(join(SUITE, 'package.json'))('yaml');
  const set = parse(readFileSync(requirementsFile(revision), 'utf8'));
  const server = (set.not_scored ?? []).filter((entry) => entry.leg === 'server');
  return new Map([...set.server.map((name) => [name, null]), ...server.map((entry) => [entry.scenario, entry.reason])]);
}

function node() {
  try {
    return node22();
  } catch (error) {
    usage(error.message);
  }
}

/** Runs the suite; resolves to its exit code, or null when it did not start or was stopped. */
function suite(args, log) {
  const out = openSync(log, 'w');
  // The suite cannot be imported by Node 20.
  const child = spawn(node(), [join(SUITE, 'dist', 'index.js'), ...args], { stdio: ['ignore', out, out] });
  closeSync(out);
  const stop = () => child.kill('SIGKILL');
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, stop);
  const limit = setTimeout(stop, LIMIT_MS);
  return new Promise((resolve) => child.on('error', () => resolve(null)).on('exit', resolve)).finally(() => {
    clearTimeout(limit);
    for (const signal of ['SIGINT', 'SIGTERM']) process.off(signal, stop);
  });
}

/** The results that were written: a map of scenario to its checks, or null where a scenario began and left none. */
function results(dir) {
  const found = new Map();
  for (const name of readdirSync(dir)) {
    const scenario = /^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(name)?.[1];
    if (!scenario) continue;
    const file = join(dir, name, 'checks.json');
    found.set(scenario, existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : null);
  }
  return found;
}

function judge(scored, found) {
  const report = {
    scenarios: { scored: 0, passed: 0 },
    checks: { passed: 0, failed: 0, warnings: 0, skipped: 0, info: 0 },
    failures: [],
    unscoredFailures: [],
    warnings: [],
    skipped: [],
  };
  const kinds = { SUCCESS: 'passed', FAILURE: 'failed', WARNING: 'warnings', SKIPPED: 'skipped', INFO: 'info' };
  for (const scenario of new Set([...scored.keys(), ...found.keys()])) {
    const checks = found.get(scenario) ?? [];
    const reason = scored.get(scenario) ?? null;
    const entry = (check, message) => ({ scenario, check, message, ...(reason && { reason }) });
    const entries = (status) =>
      checks.filter((c) => c.status === status).map((c) => entry(c.id, c.errorMessage ?? c.description));
    for (const check of checks) report.checks[kinds[check.status]] += 1;

    const failures = entries('FAILURE');
    if (!found.get(scenario)) failures.push(entry('-', 'left no result: it did not run or it threw'));
    // What is not scored may skip everything; what is scored must have shown something. wire-schema-valid shows nothing by
    // itself: it also succeeds where no message was exchanged.
    else if (!reason && failures.length === 0 && !checks.some((c) => c.status === 'SUCCESS' && c.id !== 'wire-schema-valid')) {
      failures.push(entry('-', 'nothing was checked'));
    }
    report.warnings.push(...entries('WARNING'));
    report.skipped.push(...entries('SKIPPED'));
    (reason ? report.unscoredFailures : report.failures).push(...failures);
    if (!reason) {
      report.scenarios.scored += 1;
      report.scenarios.passed += failures.length === 0 ? 1 : 0;
    }
  }
  return report;
}

function print(report) {
  const { scenarios, checks, label, set, seconds, suite } = report;
  console.log(
    `suite ${[label, set].filter(Boolean).join(' ')}: ${scenarios.passed} of ${scenarios.scored} scored scenarios passed` +
      ` (conformance ${suite}, ${seconds} s)`,
  );
  const numbers = Object.entries(checks).map(([kind, n]) => `${n} ${kind}`);
  const unscored = report.unscoredFailures.length;
  console.log(`  checks: ${numbers.join(', ')}${unscored ? ` (${unscored} of the failures unscored)` : ''}`);
  const list = (kind, entries) => {
    for (const { scenario, check, message, reason } of entries) {
      const text = String(message).replace(/\s+/g, ' ');
      const short = text.length > 300 ? `${text.slice(0, 300)}…` : text;
      console.log(`  ${kind}: ${scenario} ${check}${reason ? ` (${reason})` : ''}: ${short}`);
    }
  };
  list('FAILED', report.failures);
  list('warning', report.warnings);
  // An extension that is not there fails by the dozen: a line for each scenario; the messages are in the JSON.
  for (const scenario of new Set(report.unscoredFailures.map((entry) => entry.scenario))) {
    const entries = report.unscoredFailures.filter((entry) => entry.scenario === scenario);
    console.log(`  unscored: ${scenario} (${entries[0].reason}): ${entries.map((entry) => entry.check).join(', ')}`);
  }
}

const given = options();
const dir = mkdtempSync(join(tmpdir(), 'dateline-suite-'));
const log = join(dir, 'suite.log');
const scenarios = given.scenarios?.split(',');
const selections = scenarios
  ? scenarios.map((name) => ['--scenario', name, '--spec-version', given.at, '--force'])
  : [given.set ? ['--requirements', given.set] : ['--suite', 'all', '--spec-version', given.all]];
const began = Date.now();
let code = 0;
for (const selection of selections) {
  const ended = await suite(['server', '--url', given.url, ...selection, '-o', dir], log);
  code = code === 0 ? ended : code;
}

const report = {
  label: given.label,
  set: given.set ?? (scenarios ? `${scenarios.join(', ')} at ${given.at}` : `all ${given.all}`),
  url: given.url,
  suite: JSON.parse(readFileSync(join(SUITE, 'package.json'), 'utf8')).version,
  seconds: Math.round((Date.now() - began) / 1000),
  ...judge(given.set ? requirements(given.set) : new Map(scenarios?.map((name) => [name, null])), results(dir)),
};
const { passed, failed, warnings } = report.checks;
const ran = passed + failed + warnings > 0;
// The suite knows only failures: it is never stricter than the above unless something is wrong with one of the two.
const agreed = code === 0 || report.failures.length > 0;
const strict = (!given.set && report.warnings.length) || (scenarios && report.skipped.length);
report.ok = ran && agreed && report.failures.length === 0 && !strict;

print(report);
if (!ran) console.log('  FAILED: the suite executed no check');
else if (scenarios && report.skipped.length) {
  for (const { scenario, check, message } of report.skipped) console.log(`  skipped: ${scenario} ${check}: ${message}`);
} else if (!agreed) console.log(`  FAILED: no failure was found, but the suite ended with ${code ?? 'a signal'}`);
if (given.json) writeFileSync(given.json, `${JSON.stringify(report, null, 2)}\n`);
if (report.ok) rmSync(dir, { recursive: true });
else {
  if (!ran) console.log(readFileSync(log, 'utf8').trimEnd().split('\n').slice(-8).join('\n'));
  console.log(`  results and the suite's output: ${dir}`);
}
process.exit(report.ok ? 0 : 1);
