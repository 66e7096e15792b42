// Servers that people use, on other SDKs and in other languages than those of peers.mjs: nine from npm, PyPI and crates.io behind
// one dateline, used through it by the official clients of TypeScript and Python of both eras. Then one is killed, one is stopped,
// one is restarted on its port, and the others do not mind.
//
//   node servers.mjs --dateline PATH_TO_BINARY
//
// Prints a line for each check and, last, `servers: N passed, N failed`. Exit code 1 when one failed.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { ERAS, LEGACY, MODERN, OTHERS } from './clients.mjs';
import { PYTHON, environment, writeConfig } from './config.mjs';
import {
  Checks, assertProgress, datelineOption, endAllAtExit, freePort, launch, own, processes, start, until, within,
} from './harness.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
const MODULES = join(HERE, 'node_modules');
const MOTHS = join(HERE, 'moths.py');
const RMCP = join(HERE, '..', '..', 'target', 'peers', 'debug', 'moths-rmcp');
// The program itself, of Linux on x64. The package around it wants those of all systems, which not every registry has.
const KUBERNETES = join(MODULES, 'kubernetes-mcp-server-linux-amd64', 'bin', 'kubernetes-mcp-server-linux-amd64');
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const UP_MS = 90_000;
/** How long anything may take while one server is stopped: less than any wait for that one. */
const UNDISTURBED_MS = 10_000;

/** What each is on, what it has to be, and how many tools it has: in a pinned version that is a fixed number. */
const EXPECTED = {
  playwright: { sdk: 'typescript, bundled', transport: 'stdio', revision: LEGACY, tools: 25 },
  thinking: { sdk: 'typescript 1.x', transport: 'stdio', revision: LEGACY, tools: 1 },
  // Where it is slow to start it is asked for a handshake as well, which it does not refuse.
  context7: { sdk: 'typescript 2.x', transport: 'stdio', revision: 'either', tools: 2 },
  kubernetes: { sdk: 'go', transport: 'stdio', revision: MODERN, tools: 20 },
  grafana: { sdk: 'go', transport: 'stdio', revision: MODERN, tools: 79 },
  sqlite: { sdk: 'python 1.x', transport: 'stdio', revision: LEGACY, tools: 6 },
  fastmcp: { sdk: 'fastmcp', transport: 'stdio', revision: MODERN, tools: 4 },
  remote: { sdk: 'fastmcp', transport: 'http', revision: MODERN, tools: 4 },
  rmcp: { sdk: 'rust', transport: 'stdio', revision: MODERN, tools: 2 },
};

const dateline = datelineOption();
const dir = realpathSync(mkdtempSync(join(tmpdir(), 'dateline-servers-')));
endAllAtExit(dir);
process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
const checks = new Checks();
const env = environment(dir);

const text = (result) => {
  assert.deepEqual(result.content.map((c) => c.type), ['text']);
  return result.content[0].text;
};

/** A page for the browser, and a Grafana that has one dashboard. */
async function site() {
  const listener = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url, 'http://localhost');
    const answer = (type, body) => response.writeHead(200, { 'content-type': type, connection: 'close' }).end(body);
    if (pathname === '/api/search') {
      const found = { id: 7, uid: 'moths', title: `Moths of ${searchParams.get('query')}`, type: 'dash-db', url: '/d/moths', tags: [] };
      return answer('application/json', JSON.stringify(searchParams.get('page') === '2' ? [] : [found]));
    }
    if (pathname.startsWith('/api/')) return answer('application/json', '{}');
    answer('text/html; charset=utf-8', `<!doctype html><title>Moths</title><h1>Grüße, ${pathname.slice(1)}</h1><button>Find</button>`);
  });
  listener.unref();
  await new Promise((resolve, reject) => listener.on('error', reject).listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${listener.address().port}`;
}

/** The configuration. The folder appears in the arguments of each: the processes of a run are found by it. */
function servers(origin, port) {
  // The option says where reports of a crash would go, and so does no harm.
  const node = (script, ...args) => ({ command: process.execPath, args: [`--diagnostic-dir=${dir}`, join(MODULES, script), ...args] });
  const python = (generation, ...args) => ({ command: PYTHON[generation], args: ['-X', `mark=${dir}`, ...args] });
  const kubeconfig = join(dir, 'kubeconfig');
  writeFileSync(kubeconfig, JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'relay', cluster: { server: 'http://127.0.0.1:9' } }],
    contexts: [{ name: 'moth', context: { cluster: 'relay', user: 'grace' } }],
    'current-context': 'moth',
    users: [{ name: 'grace', user: {} }],
  }));
  const temporary = join(dir, 'tmp'); // where the browser has its profile
  mkdirSync(temporary);
  const browser = ['--headless', '--isolated', '--no-sandbox', '--executable-path', CHROMIUM, '--output-dir', join(dir, 'browser')];
  return {
    playwright: { ...node('@playwright/mcp/cli.js', ...browser), cwd: dir, env: { TMPDIR: temporary } },
    thinking: { ...node('@modelcontextprotocol/server-sequential-thinking/dist/index.js'), env: { DISABLE_THOUGHT_LOGGING: 'true' } },
    context7: node('@upstash/context7-mcp/dist/index.js'),
    kubernetes: { command: KUBERNETES, args: ['--kubeconfig', kubeconfig, '--disable-multi-cluster'] },
    // Its Python only starts a program in Go, which has no other use for this path over its standard streams.
    grafana: { ...python('fastmcp', '-m', 'mcp_grafana', '-base-path', dir), env: { GRAFANA_URL: origin } },
    sqlite: python('legacy', '-c', 'import mcp_server_sqlite as server; server.main()', '--db-path', join(dir, 'moths.db')),
    fastmcp: python('fastmcp', MOTHS),
    // With a slash at its end, as FastMCP's documentation long had it: it redirects to the address without.
    remote: { url: `http://127.0.0.1:${port}/mcp/` },
    rmcp: { command: RMCP, args: [dir] },
  };
}

/** FastMCP by Streamable HTTP. */
const remote = (port) =>
  launch(PYTHON.fastmcp, ['-X', `mark=${dir}`, MOTHS, String(port)], { env, ready: /Uvicorn running on/ });

async function says(...args) {
  const run = promisify(execFile)(dateline, args, { env, timeout: 10_000, killSignal: 'SIGKILL' });
  own(run.child);
  return (await run).stdout;
}

const status = async () => Object.fromEntries(JSON.parse(await says('status', '--json')).servers.map((server) => [server.name, server]));

/** A call of something of each server, by the server's name; and that its answer is right. */
const CALLS = {
  async playwright(peer, label) {
    const opened = await peer.call('browser_navigate', { url: `${origin}/${label}` });
    assert.match(opened.content[0].text, /Page Title: Moths/);
    const seen = await peer.call('browser_snapshot');
    assert.match(seen.content[0].text, new RegExp(`heading "Grüße, ${label}" \\[level=1\\]`));
    assert.match(seen.content[0].text, /button "Find"/);
  },
  async thinking(peer) {
    const args = { thought: 'a moth', thoughtNumber: 1, totalThoughts: 1, nextThoughtNeeded: false };
    const { structuredContent } = await peer.call('sequentialthinking', args);
    assert.equal(structuredContent.thoughtNumber, 1);
    assert.ok(structuredContent.thoughtHistoryLength >= 1);
  },
  async context7(peer) {
    // It asks its own site for everything, which may be out of reach; what it says then is its result.
    const { content } = await peer.call('resolve-library-id', { query: 'how to find moths', libraryName: 'moths' });
    assert.equal(content[0].type, 'text');
    assert.ok(content[0].text.length > 0);
  },
  async kubernetes(peer) {
    const view = text(await peer.call('configuration_view', {}));
    assert.match(view, /current-context: moth/);
    assert.match(view, /server: http:\/\/127\.0\.0\.1:9/);
  },
  async grafana(peer, label) {
    const found = await peer.call('search_dashboards', { query: label });
    assert.match(found.content[0].text, new RegExp(`"title":\\s*"Moths of ${label}"`));
  },
  async sqlite(peer, label) {
    const table = label.replace(/\W/g, '_');
    await peer.call('create_table', { query: `CREATE TABLE IF NOT EXISTS ${table} (name TEXT)` });
    await peer.call('write_query', { query: `DELETE FROM ${table}` });
    assert.equal(text(await peer.call('write_query', { query: `INSERT INTO ${table} VALUES ('größer')` })), "[{'affected_rows': 1}]");
    assert.equal(text(await peer.call('read_query', { query: `SELECT name FROM ${table}` })), "[{'name': 'größer'}]");
  },
  fastmcp: (peer) => moths(peer, 'fastmcp'),
  remote: (peer) => moths(peer, 'remote'),
  async rmcp(peer) {
    const { structuredContent } = await peer.call('span', { left: 40.5, right: 39.5 });
    assert.deepEqual(structuredContent, { span: 80 });
  },
};

async function moths(peer, server) {
  const { structuredContent } = await peer.call(`${server}_weigh`, { left: 1.5, right: 2 });
  assert.deepEqual(structuredContent, { result: 3.5 });
}

/** What every client does with all of them. */
async function everyServer(peer, prefix) {
  const check = (name, run) => checks.check(`${prefix} ${name}`, run);
  const label = prefix.replace(/\W/g, '-');
  await check('lists the tools of all servers, each once', () => allListed(peer));
  for (const [server, call] of Object.entries(CALLS)) {
    await check(`calls ${server} (${EXPECTED[server].sdk})`, () => call(peer, label));
  }
  await check('reads resources', async () => {
    const uris = (await peer.resources()).map(({ uri }) => uri);
    assert.ok(uris.includes('memo://insights') && uris.includes('moths://all'), `got ${uris}`);
    assert.deepEqual(JSON.parse((await peer.read('moths://all')).contents[0].text), { moths: ['emperor'] });
    assert.match((await peer.read('memo://insights')).contents[0].text, /No business insights/);
  });
  await check('reads resources of templates', async () => {
    const templates = (await peer.templates()).map(({ uriTemplate }) => uriTemplate);
    assert.ok(templates.includes('docs://{path*}') && templates.includes('moth://{name}/size{?unit}'), `got ${templates}`);
    const read = async (uri) => (await peer.read(uri)).contents.map((content) => [content.uri, content.text]);
    assert.deepEqual(await read('moth://emperor/size?unit=cm'), [['moth://emperor/size?unit=cm', 'emperor: 80 cm']]);
    // Such a template is FastMCP's own: by RFC 6570 it would have no slashes.
    assert.deepEqual(await read('docs://guide/night/moths.md'), [['docs://guide/night/moths.md', 'What is at guide/night/moths.md']]);
  });
  await check('gets prompts', async () => {
    const said = async (name, args) => (await peer.prompt(name, args)).messages.map(({ role, content }) => [role, content.text]);
    assert.deepEqual(await said('look', { place: 'a relay' }), [['user', 'Look for moths in a relay.']]);
    assert.deepEqual(await said('fastmcp_describe', { name: 'emperor' }), [['user', 'Describe the emperor moth.']]);
    assert.match((await said('mcp-demo', { topic: 'moths' }))[0][1], /moths/);
  });
  await check('gets the failure of a tool as a result', async () => {
    const result = await peer.call('fastmcp_lose');
    assert.equal(result.isError, true);
    assert.match(text(result), /it flew away/);
  });
  await check('gets progress', async () => {
    const seen = [];
    const result = await peer.call('remote_tally', { moths: 4 }, { onprogress: (p) => seen.push(p) });
    assert.deepEqual(result.structuredContent, { result: '4 moths' });
    assertProgress(seen, 4);
  });
  for (const [tool, answer] of [['christen', "Ada's moth"], ['fastmcp_adopt', "Ada's"], ['remote_adopt', "Ada's"]]) {
    await check(`answers what ${tool} asks`, async () => {
      peer.asked.length = 0;
      assert.equal(text(await peer.call(tool)), answer);
      assert.deepEqual(peer.asked.map(({ method }) => method), ['elicitation/create']);
    });
  }
}

/** As many as all have together, by names that differ: only FastMCP's are there twice, and so bear their servers' names. */
async function allListed(peer) {
  const names = (await peer.tools()).map(({ name }) => name);
  assert.equal(new Set(names).size, names.length, 'two tools have one name');
  assert.equal(names.length, Object.values(EXPECTED).reduce((sum, { tools }) => sum + tools, 0));
  const prefixed = names.filter((name) => /^(fastmcp|remote)_/.test(name)).sort();
  assert.deepEqual(prefixed, ['fastmcp', 'remote'].flatMap((server) => ['adopt', 'lose', 'tally', 'weigh'].map((tool) => `${server}_${tool}`)));
}

async function watched() {
  await checks.check('dateline status tells what each server is', async () => {
    const servers = await status();
    const told = Object.entries(servers).map(([name, s]) => [name, [s.state, s.transport, s.revision, s.tools, s.restarts, s.pids.length]]);
    const expected = Object.entries(EXPECTED).map(([name, { transport, revision, tools }]) => {
      const spoken = revision === 'either' ? servers[name].revision : revision;
      assert.ok([LEGACY, MODERN].includes(spoken), `${name} speaks ${spoken}`);
      return [name, ['up', transport, spoken, tools, 0, transport === 'http' ? 0 : 1]];
    });
    assert.deepEqual(Object.fromEntries(told), Object.fromEntries(expected));
  });
}

/** One is killed: it is started again, and nobody has to do anything. */
async function killed(peers) {
  for (const server of ['thinking', 'rmcp']) {
    await checks.check(`${server} is killed and comes back`, async () => {
      const before = (await status())[server];
      process.kill(before.pids[0], 'SIGKILL');
      await until('it is up again', async () => {
        const now = (await status())[server];
        return now.state === 'up' && now.restarts === before.restarts + 1 && now.pids[0] !== before.pids[0];
      }, 20_000);
      for (const peer of peers) await CALLS[server](peer, 'killed');
    });
  }
}

/** One is stopped: who calls it waits, and nobody else. */
async function stopped(peers) {
  await checks.check('while sqlite is stopped the others are listed and called', async () => {
    const [pid] = (await status()).sqlite.pids;
    process.kill(pid, 'SIGSTOP');
    let waiting;
    try {
      waiting = peers.map((peer) => peer.call('read_query', { query: 'SELECT 40 + 2 AS answer' }));
      for (const call of waiting) call.catch(() => {}); // it is looked at below
      const work = peers.map(async (peer, i) => {
        await allListed(peer);
        for (const [server, call] of Object.entries(CALLS)) {
          if (server !== 'sqlite' && server !== 'playwright') await call(peer, `stopped-${i}`); // there is one page for all
        }
      });
      await within(UNDISTURBED_MS, Promise.all(work), 'the others were held up: no answer');
      const fresh = await within(UNDISTURBED_MS, ERAS[1].connect({ url: gateway.url, env }), 'a new client was held up: no answer');
      await within(UNDISTURBED_MS, allListed(fresh), 'a new client was held up: no list');
      await fresh.close();
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    for (const result of await Promise.all(waiting)) assert.equal(text(result), "[{'answer': 42}]");
  }, 60_000);
}

/** FastMCP by HTTP goes away and comes back on its port. */
async function restarted(peers) {
  await checks.check('remote is restarted and used again', async () => {
    await moth.kill();
    const gone = await Promise.allSettled(peers.map((peer) => CALLS.remote(peer)));
    assert.ok(gone.every((call) => call.status === 'rejected'), 'a server that is gone answered');
    moth = await remote(port);
    for (const peer of peers) {
      // Whoever calls first finds it again, or it was found before.
      await until('it answers', () => CALLS.remote(peer).then(() => true, () => false), 20_000);
    }
    assert.equal((await status()).remote.state, 'up');
    for (const peer of peers) await allListed(peer);
  }, 90_000);
}

const wanted = [MOTHS, RMCP, CHROMIUM, KUBERNETES, join(MODULES, '@playwright/mcp/cli.js'), PYTHON.fastmcp];
for (const path of wanted) if (!existsSync(path)) throw new Error(`${path} is missing: run tests/setup.sh`);
const [origin, port] = [await site(), await freePort()];
let moth = await checks.check('FastMCP serves Streamable HTTP', () => remote(port), 60_000);
if (!moth) checks.finish('servers');
const config = writeConfig(join(dir, 'mcp.json'), servers(origin, port));
const gateway = await checks.check('dateline serve starts', () =>
  start(dateline, ['serve', '--config', config, '--listen', '127.0.0.1:0'], env));
if (!gateway) checks.finish('servers');
const up = await checks.check('all servers are up', async () => {
  let down;
  const look = async () => (down = Object.values(await status()).filter(({ state }) => state !== 'up')).length === 0;
  await until('all are up', look, UP_MS).catch(() => {
    throw new Error(down.map(({ name, state, why }) => `${name} is ${state}: ${why}`).join('\n'));
  });
  return true;
}, UP_MS + 10_000);
if (!up) console.log(gateway.output().slice(-2000));
const peers = [];
for (const Client of [...ERAS, ...OTHERS.slice(0, 2)]) {
  const prefix = `${Client.title} ${Client.revision}`;
  const peer = await checks.check(`${prefix} is negotiated`, async () => {
    const connected = await Client.connect({ url: gateway.url, env });
    assert.equal(connected.revision, Client.revision);
    return connected;
  });
  if (!peer) continue;
  peers.push(peer);
  await everyServer(peer, prefix);
}
await watched();
await killed(peers);
await stopped(peers);
await restarted(peers);
for (const peer of peers) await checks.check(`${peer.constructor.title} ${peer.revision} closes`, () => peer.close());
await checks.check('dateline serve ends', () => gateway.stop());
await moth.kill();
await checks.check('no process is left', async () => {
  const left = () => processes(dir);
  await until('all ended', () => left().length === 0).catch(() => {
    throw new Error(left().map(([id, args]) => `${id} ${args}`).join('\n'));
  });
});
if (checks.failed) console.log(`--- what dateline serve said last:\n${gateway.output().trimEnd().slice(-3000)}\n---`);
checks.finish('servers');
