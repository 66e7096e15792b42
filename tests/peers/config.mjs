// The configuration of the test run, as people have it: real servers from npm and PyPI of both eras, and what they work on.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { devNull } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = dirname(fileURLToPath(import.meta.url));
const server = (name) => join(HERE, 'node_modules', '@modelcontextprotocol', `server-${name}`, 'dist');

/** The scripts of node_modules/@modelcontextprotocol, and the Pythons of the two generations of the SDK, of FastMCP, and of old releases. */
export const EVERYTHING = join(server('everything'), 'index.js');
export const MEMORY = join(server('memory'), 'index.js');
const FILESYSTEM = join(server('filesystem'), 'index.js');
export const INSPECTOR = join(server('filesystem'), '..', '..', 'inspector', 'clients', 'launcher', 'build', 'index.js');
export const PYTHON = Object.fromEntries(['legacy', 'modern', 'fastmcp', '1.8', '1.9', '1.12'].map((name) => [name, python(name)]));

function python(name) {
  return join(HERE, '.venv', name, 'bin', 'python');
}

/** A document of server-everything, to compare with what is read through dateline. */
export const everythingDocument = (name) => join(dirname(EVERYTHING), 'docs', name);

/** What dateline is started with: nothing of the user's is read, or written. */
export function environment(dir) {
  const own = Object.entries(process.env).filter(([name]) => !/^(DATELINE|XDG)_/.test(name));
  const places = { HOME: 'home', XDG_CONFIG_HOME: 'config', XDG_RUNTIME_DIR: 'run', XDG_STATE_HOME: 'state' };
  const made = Object.entries(places).map(([name, place]) => [name, join(dir, place)]);
  for (const [, path] of made) mkdirSync(path, { recursive: true, mode: 0o700 });
  return { ...Object.fromEntries([...own, ...made]), NO_PROXY: '127.0.0.1', no_proxy: '127.0.0.1' };
}

/** Two commits of a known person at known times, so that even their ids are known. */
function repository(path) {
  const env = { PATH: process.env.PATH, GIT_CONFIG_GLOBAL: devNull, GIT_CONFIG_NOSYSTEM: '1' };
  const git = (args, date) => {
    const what = { NAME: 'Grace Hopper', EMAIL: 'grace@example.com', DATE: date };
    for (const [key, value] of Object.entries(date ? what : {})) env[`GIT_AUTHOR_${key}`] = env[`GIT_COMMITTER_${key}`] = value;
    return execFileSync('git', ['-C', path, ...args], { env, encoding: 'utf8', timeout: 10_000 }).trim();
  };
  const commit = (text, message, date) => {
    writeFileSync(join(path, 'moth.txt'), text);
    git(['add', 'moth.txt']);
    git(['commit', '--quiet', '--message', message], date);
    return { id: git(['rev-parse', 'HEAD']), message, date };
  };
  mkdirSync(path);
  git(['init', '--quiet', '--initial-branch=main', '--object-format=sha1']);
  return [
    commit('a relay\n', 'First actual case', '2026-01-02T03:04:05+01:00'),
    commit('a moth in a relay 🦋\n', 'Found a bug: größer', '2026-02-03T04:05:06+00:00'),
  ].reverse();
}

const html = (name) => `<!doctype html>
<html><head><title>A title</title></head><body><h1>Page of ${name}</h1><p>Grüße, <em>世界</em> 🌍</p></body></html>`;

/** What mcp-server-fetch makes of it. */
export const pageText = (name) => `A title\n\n# Page of ${name}\n\nGrüße, 世界 🌍`;

/** A site on loopback, for mcp-server-fetch: /page/NAME is a page, /closed is one that robots may not read. */
async function site() {
  const requests = [];
  const listener = createServer((request, response) => {
    requests.push({ path: request.url, agent: request.headers['user-agent'] });
    const page = /^\/page\/([\w.-]+)$/.exec(request.url)?.[1];
    const answer = (status, type, body) => response.writeHead(status, { 'content-type': type, connection: 'close' }).end(body);
    if (request.url === '/robots.txt') answer(200, 'text/plain', 'User-agent: *\nDisallow: /closed\n');
    else if (page) answer(200, 'text/html; charset=utf-8', html(page));
    else answer(404, 'text/plain', 'not here');
  });
  listener.unref();
  await new Promise((resolve, reject) => listener.on('error', reject).listen(0, '127.0.0.1', resolve));
  return { origin: `http://127.0.0.1:${listener.address().port}`, requests };
}

/** What the servers work on, in the folder `dir`. It appears in the arguments of each: the processes of a run are found by it. */
export async function world(dir) {
  for (const path of [EVERYTHING, MEMORY, FILESYSTEM, INSPECTOR, ...Object.values(PYTHON)]) {
    if (!existsSync(path)) throw new Error(`${path} is missing: run tests/setup.sh`);
  }
  const files = join(dir, 'files');
  mkdirSync(files);
  const repo = join(dir, 'repo');
  return { dir, files, memory: join(dir, 'memory.jsonl'), repo, commits: repository(repo), site: await site() };
}

/** server-everything stands at `url` where one is given, else it is started. */
export function servers({ dir, files, memory, repo }, url) {
  const pythonServer = (generation, module, ...args) => ({
    command: PYTHON[generation],
    args: ['-X', `mark=${dir}`, '-m', module, ...args],
  });
  return {
    everything: url
      ? { url }
      : { command: process.execPath, args: [EVERYTHING, 'stdio', dir], env: { DATELINE_TEST: 'from the configuration' } },
    filesystem: { command: process.execPath, args: [FILESYSTEM, files] },
    memory: { command: process.execPath, args: [MEMORY, dir], env: { MEMORY_FILE_PATH: memory } },
    time: pythonServer('legacy', 'mcp_server_time', '--local-timezone', 'UTC'),
    git: { ...pythonServer('modern', 'mcp_server_git', '--repository', repo), env: { GIT_CONFIG_NOSYSTEM: '1' } },
    fetch: {
      ...pythonServer('modern', 'mcp_server_fetch', '--allow-private-ips'),
      // Where it finds a node, it lets npm install a newest something at the first page that it reads. So it finds none.
      env: { PATH: dirname(PYTHON.modern) },
    },
  };
}

export function writeConfig(file, mcpServers) {
  const text = JSON.stringify({ mcpServers }, null, 2);
  writeFileSync(file, `// Written by tests/peers/config.mjs. Comments are allowed here.\n${text}\n`);
  return file;
}
