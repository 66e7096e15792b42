// What is compared, built and installed in the versions that are pinned here and in the lock files beside this.

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

export const BENCH = dirname(fileURLToPath(import.meta.url));
export const ROOT = resolve(BENCH, '..');
export const TARGET = resolve(process.env.CARGO_TARGET_DIR ?? join(ROOT, 'target/bench'));
const RELEASE = join(TARGET, 'release');
const CRATE_MCP_PROXY = '0.6.0';

/** Node as the lock file pins it, else the one that runs this. */
export const NODE = (() => {
  const pinned = join(BENCH, `node_modules/node-${process.platform}-${process.arch}/bin/node`);
  return () => (existsSync(pinned) ? pinned : process.execPath);
})();

export const paths = {
  load: join(RELEASE, 'load'),
  bare: join(RELEASE, 'bare'),
  dateline: join(RELEASE, 'dateline'),
  'echo-dateline': join(RELEASE, 'echo-dateline'),
  'echo-rmcp': join(RELEASE, 'echo-rmcp'),
  'crate-mcp-proxy': join(TARGET, 'tools/bin/mcp-proxy'),
  'echo.mjs': join(BENCH, 'node/echo.mjs'),
  'npm-mcp-proxy': join(BENCH, 'node_modules/mcp-proxy/dist/bin/mcp-proxy.mjs'),
  supergateway: join(BENCH, 'node_modules/supergateway/dist/index.js'),
  'pypi-mcp-proxy': join(BENCH, 'python/.venv/mcp-proxy/bin/mcp-proxy'),
  fastmcp: join(BENCH, 'python/.venv/fastmcp/bin/python'),
  'proxy.py': join(BENCH, 'python/proxy.py'),
};

/** Runs a command; its output is in a file, whose end is shown where it fails. */
async function quietly(what, command, args, options = {}) {
  mkdirSync(TARGET, { recursive: true });
  const log = join(TARGET, `${what.replaceAll(/[^a-z0-9]+/gi, '-')}.log`);
  const file = openSync(log, 'w');
  console.error(`install: ${what}`);
  const child = spawn(command, args, { cwd: BENCH, stdio: ['ignore', file, file], ...options });
  const [code] = await once(child, 'exit').catch((error) => [error.message]);
  if (code !== 0) throw new Error(`${what} failed (${log}): ${readFileSync(log, 'utf8').trim().split('\n').slice(-3).join(' ')}`);
}

/** Thin LTO and 4 codegen units for all that is built of Rust, as dateline's own release profile has it. */
const profile = { ...process.env, CARGO_TARGET_DIR: TARGET, CARGO_PROFILE_RELEASE_LTO: 'thin', CARGO_PROFILE_RELEASE_CODEGEN_UNITS: '4', CARGO_PROFILE_RELEASE_STRIP: 'symbols' };

const cargo = (name, cwd = BENCH) =>
  quietly(`cargo build ${name}`, 'cargo', ['build', '--release', '--locked', '-p', name], { cwd, env: profile });

async function crateMcpProxy() {
  const args = ['install', 'mcp-proxy', '--version', CRATE_MCP_PROXY, '--locked', '--no-default-features'];
  args.push('--features', 'protocol-2026-07-28', '--root', join(TARGET, 'tools'));
  await quietly('cargo install mcp-proxy', 'cargo', args, { env: profile });
}

/** Whether these files are what was installed from. */
function stamped(stamp, files) {
  const hash = createHash('sha256').update(BENCH);
  for (const file of files) hash.update(readFileSync(join(BENCH, file)));
  const now = hash.digest('hex');
  const before = existsSync(stamp) ? readFileSync(stamp, 'utf8') : '';
  return { same: before === now, keep: () => writeFileSync(stamp, now) };
}

async function npm() {
  const { same, keep } = stamped(join(BENCH, 'node_modules/.stamp'), ['package.json', 'package-lock.json']);
  if (same) return;
  await quietly('npm ci', 'npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']);
  keep();
}

async function venv(name) {
  const requirements = `python/requirements-${name}.txt`;
  const venv = join(BENCH, 'python/.venv', name);
  const { same, keep } = stamped(join(venv, '.stamp'), [requirements]);
  if (same) return;
  await quietly(`python venv ${name}`, process.env.PYTHON ?? 'python3', ['-m', 'venv', '--clear', venv]);
  const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', requirements];
  await quietly(`pip install ${name}`, join(venv, 'bin/python'), install);
  keep();
}

const nginx = () => quietly('nginx', 'nginx', ['-V']);

/** What each contender needs. */
const needs = {
  bare: [() => cargo('bare')],
  dateline: [],
  rmcp: [() => cargo('echo-rmcp')],
  typescript: [npm],
  direct: [],
  nginx: [nginx],
  'crate-mcp-proxy': [crateMcpProxy],
  'npm-mcp-proxy': [npm],
  supergateway: [npm],
  'pypi-mcp-proxy': [() => venv('mcp-proxy')],
  fastmcp: [() => venv('fastmcp')],
};

/** Installs what the contenders need, one after the other. Gives the reasons of those that cannot be had, by name. */
export async function install(contenders) {
  for (const name of ['load', 'echo-dateline']) await cargo(name);
  await cargo('dateline-cli', ROOT);
  const missing = {};
  const done = new Map();
  for (const contender of contenders) {
    try {
      for (const step of needs[contender]) {
        if (!done.has(step)) done.set(step, step());
        await done.get(step);
      }
    } catch (error) {
      missing[contender] = error.message;
    }
  }
  return missing;
}
