// Real peers on both sides: six servers from npm and PyPI of both eras behind one dateline, one of them by Streamable HTTP, used
// through it by the official clients of TypeScript and Python of both eras and by the Inspector's command line, over Streamable
// HTTP; and by those of TypeScript over a pipe.
//
//   node peers.mjs --dateline PATH_TO_BINARY
//
// Prints a line for each check and, last, `peers: N passed, N failed`. Exit code 1 when one failed.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { ERAS, LEGACY, MODERN, OTHERS } from './clients.mjs';
import { EVERYTHING, environment, everythingDocument, pageText, servers, world, writeConfig } from './config.mjs';
import {
  Checks, assertProgress, cancelled, datelineOption, endAllAtExit, freePort, launch, own, processes, rejection, start, until,
} from './harness.mjs';

const LONG = 'trigger-long-running-operation';
// Those of server-everything that stand only where its client can do something.
const CONDITIONAL = [
  'get-roots-list', 'trigger-elicitation-request', 'trigger-elicitation-request-async',
  'trigger-sampling-request', 'trigger-sampling-request-async', 'trigger-url-elicitation',
];
const MESSAGE = 'Grüße, 世界 🌍 \u2028 "\\"\n';

const dateline = datelineOption();
const dir = realpathSync(mkdtempSync(join(tmpdir(), 'dateline-peers-')));
endAllAtExit(dir);
process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
const checks = new Checks();
const env = environment(dir);

/** What the servers offer when nothing stands between, by the names of the servers. */
async function offers(configured) {
  const found = {};
  for (const [name, server] of Object.entries(configured)) {
    const client = new Client({ name: 'dateline-test', version: '1.0.0' });
    const transport = server.url
      ? new StreamableHTTPClientTransport(new URL(server.url))
      : new StdioClientTransport({ ...server, env: { ...env, ...server.env }, stderr: 'ignore' });
    await client.connect(transport);
    found[name] = (await client.listTools()).tools;
    await transport.terminateSession?.();
    await client.close();
  }
  return found;
}

const text = (result) => {
  assert.deepEqual(result.content.map((c) => c.type), ['text']);
  return result.content[0].text;
};

/** Asia/Tokyo and Asia/Kolkata know no summer time; only the day is not fixed. */
function conversion(now) {
  const tokyo = new Date(now + 9 * 3600_000);
  const date = tokyo.toISOString().slice(0, 10);
  const day_of_week = tokyo.toLocaleDateString('en-US', { weekday: 'long', timeZone: 'UTC' });
  return {
    source: { timezone: 'Asia/Tokyo', datetime: `${date}T16:30:00+09:00`, day_of_week, is_dst: false },
    target: { timezone: 'Asia/Kolkata', datetime: `${date}T13:00:00+05:30`, day_of_week, is_dst: false },
    time_difference: '-3.5h',
  };
}

/** The name of a tool: its own, with that of its server in front only where another server has the same. */
function nameOf(server, tool) {
  const having = Object.values(offered).filter((offer) => offer.some(({ name }) => name === tool));
  return having.length > 1 ? `${server}_${tool}` : tool;
}

/** What every client does: something of every server. */
async function everyServer(peer, prefix) {
  const check = (name, run) => checks.check(`${prefix} ${name}`, run);
  const label = prefix.replaceAll(' ', '-');
  let tools;
  const call = (server, tool, args) => peer.call(nameOf(server, tool), args);

  await check('lists the tools of all servers, each once', async () => {
    const wanted = Object.entries(offered).flatMap(([server, offer]) => offer.map((tool) => nameOf(server, tool.name))).sort();
    const names = () => tools.map(({ name }) => name).filter((name) => !CONDITIONAL.includes(name)).sort();
    // A server that takes longer to start comes later, and a client that has a stream open is told.
    tools = await peer.tools();
    if (names().length < wanted.length) {
      await until('all are there', async () => names((tools = await peer.tools())).length >= wanted.length, 20_000);
      const told = () => peer.seen('notifications/tools/list_changed').length > 0;
      if (peer.client && peer.revision === LEGACY) await until('it is told', told);
    }
    assert.deepEqual(names(), wanted);
  });
  if (!tools) return;
  await check('calls everything', async () => {
    assert.equal(text(await call('everything', 'echo', { message: MESSAGE })), `Echo: ${MESSAGE}`);
  });
  await check('calls filesystem', async () => {
    const path = join(place.files, `${label}.txt`);
    const content = `${label}: ${MESSAGE}`;
    const wrote = await call('filesystem', 'write_file', { path, content });
    assert.equal(text(wrote), `Successfully wrote to ${path}`);
    assert.deepEqual(wrote.structuredContent, { content: text(wrote) });
    assert.equal(readFileSync(path, 'utf8'), content);
    const read = await call('filesystem', 'read_text_file', { path });
    assert.equal(text(read), content);
    assert.deepEqual(read.structuredContent, { content });
  });
  await check('calls memory', async () => {
    const entity = { name: label, entityType: 'client', observations: [`it is ${label}`, MESSAGE] };
    const created = await call('memory', 'create_entities', { entities: [entity] });
    assert.deepEqual(created.structuredContent, { entities: [entity] });
    const opened = await call('memory', 'open_nodes', { names: [label] });
    assert.deepEqual(opened.structuredContent, { entities: [entity], relations: [] });
    assert.deepEqual(JSON.parse(text(opened)), opened.structuredContent);
    // The file is named by the environment that the configuration gives it.
    const kept = readFileSync(place.memory, 'utf8').split('\n').map((line) => JSON.parse(line));
    assert.deepEqual(kept.filter(({ name }) => name === label), [{ type: 'entity', ...entity }]);
  });
  await check('calls time', async () => {
    const before = conversion(Date.now());
    const args = { source_timezone: 'Asia/Tokyo', time: '16:30', target_timezone: 'Asia/Kolkata' };
    const result = await call('time', 'convert_time', args);
    const after = conversion(Date.now()); // midnight may pass
    const got = JSON.parse(text(result));
    assert.deepEqual(got, got.source.datetime === before.source.datetime ? before : after);
  });
  await check('calls git', async () => {
    const commits = place.commits.map(({ id, message, date }) =>
      `Commit: ${id}\nAuthor: Grace Hopper\nDate: ${date.replace('T', ' ')}\nMessage: ${message}\n\n`);
    assert.equal(text(await call('git', 'git_log', { repo_path: place.repo })), `Commit history:\n${commits.join('\n')}`);
    const first = place.commits.at(-1).id;
    assert.equal(text(await call('git', 'git_show', { repo_path: place.repo, revision: `${first}:moth.txt` })), 'a relay\n');
  });
  await check('calls fetch', async () => {
    const url = `${place.site.origin}/page/${label}`;
    assert.equal(text(await call('fetch', 'fetch', { url })), `Contents of ${url}:\n${pageText(label)}`);
    const asked = place.site.requests.filter(({ path }) => path === `/page/${label}`);
    assert.deepEqual(asked.map(({ agent }) => agent.split(' ')[0]), ['ModelContextProtocol/1.0']);
  });
  await check('gets a prompt of fetch', async () => {
    const { messages } = await peer.prompt('fetch', { url: `${place.site.origin}/page/prompt-${label}` });
    assert.deepEqual(messages, [{ role: 'user', content: { type: 'text', text: pageText(`prompt-${label}`) } }]);
  });
  await check('reads a resource of memory', async () => {
    const uri = 'memory://knowledge-graph';
    const { contents } = await peer.read(uri);
    assert.deepEqual(contents.map((c) => [c.uri, c.mimeType]), [[uri, 'application/json']]);
    assert.ok(JSON.parse(contents[0].text).entities.some(({ name }) => name === label), contents[0].text);
  });
}

/** What only the clients that let us see it do, and mostly with server-everything. */
async function inDepth(peer, prefix) {
  const check = (name, run) => checks.check(`${prefix} ${name}`, run);

  await check('sees the definitions of the tools unchanged', async () => {
    const tools = new Map((await peer.tools()).map((tool) => [tool.name, tool]));
    for (const [server, offer] of Object.entries(offered)) {
      for (const { execution, ...tool } of offer) {
        // The revision without sessions has nothing to say of how a tool is executed.
        const expected = peer.revision === LEGACY && execution ? { ...tool, execution } : tool;
        assert.deepEqual(tools.get(nameOf(server, tool.name)), { ...expected, name: nameOf(server, tool.name) });
      }
    }
  });
  await check('gets structured content, as structure and as text', async () => {
    const weather = { temperature: 33, conditions: 'Cloudy', humidity: 82 };
    const result = await peer.call('get-structured-content', { location: 'New York' });
    assert.deepEqual(result.structuredContent, weather);
    assert.deepEqual(JSON.parse(text(result)), weather);
  });
  await check('gets an image', async () => {
    const image = (await peer.call('get-tiny-image')).content.find((c) => c.type === 'image');
    assert.equal(image.mimeType, 'image/png');
    assert.equal(Buffer.from(image.data, 'base64').subarray(1, 4).toString(), 'PNG');
  });
  await check('gets the failure of a tool as a result', async () => {
    const args = { source_timezone: 'Nowhere/Town', time: '16:30', target_timezone: 'Asia/Kolkata' };
    const result = await peer.call('convert_time', args);
    assert.equal(result.isError, true);
    assert.match(text(result), /Invalid timezone.*Nowhere\/Town/);
  });
  await check('gets progress', async () => {
    const seen = [];
    const result = await peer.call(LONG, { duration: 0.8, steps: 4 }, { onprogress: (p) => seen.push(p) });
    assert.equal(text(result), 'Long running operation completed. Duration: 0.8 seconds, Steps: 4.');
    assertProgress(seen, 4);
  });
  await check('gets a prompt', async () => {
    assert.deepEqual((await peer.prompt('args-prompt', { city: 'Paris', state: 'Texas' })).messages, [
      { role: 'user', content: { type: 'text', text: "What's weather in Paris, Texas?" } },
    ]);
  });
  await check('reads a resource', async () => {
    const uri = 'demo://resource/static/document/architecture.md';
    const resources = await peer.resources();
    assert.ok(resources.some((resource) => resource.uri === uri), 'it is listed');
    const expected = readFileSync(everythingDocument('architecture.md'), 'utf8');
    assert.deepEqual((await peer.read(uri)).contents, [{ uri, mimeType: 'text/markdown', text: expected }]);
  });
  await check('reads a resource of a template', async () => {
    const templates = (await peer.templates()).map((template) => template.uriTemplate);
    assert.ok(templates.includes('demo://resource/dynamic/text/{resourceId}'), `got ${templates}`);
    const [content] = (await peer.read('demo://resource/dynamic/text/7')).contents;
    assert.match(content.text, /^Resource 7: This is a plaintext resource/);
  });
  await check('gets -32602 for a tool that nobody has', async () => {
    assert.equal((await rejection(peer.call('no-such-tool'))).code, -32602);
  });
  await check('gets the refusal of a page that robots may not read', async () => {
    const result = await peer.call('fetch', { url: `${place.site.origin}/closed` });
    assert.equal(result.isError, true);
    assert.match(text(result), /autonomous fetching of this page is not allowed/);
  });
  if (peer.client) {
    await check('cancels a call', () => cancelled((options) => peer.call(LONG, { duration: 60, steps: 600 }, options)));
    await check('goes on after that', async () => {
      assert.equal(text(await peer.call('get-sum', { a: 40, b: 2 })), 'The sum of 40 and 2 is 42.');
    });
  }
  await questions(peer, check);
}

/** server-everything is of the handshake era, and its questions reach clients of both. */
async function questions(peer, check) {
  await check('answers the elicitation of a server', async () => {
    peer.asked.length = 0;
    const result = await peer.call('trigger-elicitation-request');
    assert.deepEqual(peer.asked.map((question) => question.method), ['elicitation/create']);
    assert.ok(result.content.some((c) => c.text?.includes('Ada')), JSON.stringify(result.content));
  });
  await check('answers the sampling of a server', async () => {
    peer.asked.length = 0;
    const result = await peer.call('trigger-sampling-request', { prompt: 'the capital of France?' });
    assert.deepEqual(peer.asked.map((question) => question.method), ['sampling/createMessage']);
    assert.match(peer.asked[0].params.messages[0].content.text, /the capital of France\?$/);
    assert.match(text(result), /Paris, says the model/);
  });
}

/** Several clients at once: the SDKs count ids and progress tokens from 0 or 1, so that they use the same ones. */
async function together(peers) {
  await checks.check('http all at once: each gets its own progress', async () => {
    const run = async (peer, steps) => {
      const seen = [];
      await peer.call(LONG, { duration: 1, steps }, { onprogress: (p) => seen.push(p) });
      assertProgress(seen, steps);
    };
    await Promise.all(peers.map((peer, i) => run(peer, 5 + i)));
  });
  await checks.check('http all at once: each gets its own answers', async () => {
    const { id } = place.commits[0];
    const call = async (peer, i) => {
      const message = `${peer.constructor.title} ${i}`;
      assert.equal(text(await peer.call('echo', { message })), `Echo: ${message}`);
      const name = message.replace(/\W/g, '-');
      const url = `${place.site.origin}/page/${name}`;
      const [page, shown, clock] = await Promise.all([
        peer.call('fetch', { url }),
        peer.call('git_show', { repo_path: place.repo, revision: `${id}:moth.txt` }),
        peer.call('get_current_time', { timezone: 'Asia/Tokyo' }),
      ]);
      assert.equal(text(page), `Contents of ${url}:\n${pageText(name)}`);
      assert.equal(text(shown), 'a moth in a relay 🦋\n');
      assert.equal(JSON.parse(text(clock)).timezone, 'Asia/Tokyo');
    };
    await Promise.all(peers.flatMap((peer) => Array.from({ length: 10 }, (_, i) => call(peer, i))));
  });
}

async function nothingLeft(prefix) {
  const left = () => processes(dir).filter(([id]) => Number(id) !== everything?.pid);
  await checks.check(`${prefix} leaves no process behind`, async () => {
    await until('all ended', () => left().length === 0).catch(() => {
      throw new Error(left().map(([id, args]) => `${id} ${args}`).join('\n'));
    });
  });
  for (const [id] of left()) process.kill(Number(id), 'SIGKILL'); // so that it is not counted again
}

async function connect(Era, prefix, target) {
  return checks.check(`${prefix} is negotiated`, async () => {
    const peer = await Era.connect(target);
    assert.equal(peer.revision, Era.revision);
    // One that only says what it was told to speak asks the server as well.
    if (peer.discovered) {
      assert.equal(peer.discovered.resultType, 'complete');
      assert.ok(peer.discovered.supportedVersions.includes(Era.revision), JSON.stringify(peer.discovered));
    }
    return peer;
  }, 60_000);
}

const lastWords = (who, output) => console.log(`--- what ${who} said last:\n${output.trimEnd().slice(-1500)}\n---`);

/** What dateline itself says of the servers, with `status` and with `logs`. */
async function says(...args) {
  const run = promisify(execFile)(dateline, args, { env, timeout: 10_000, killSignal: 'SIGKILL' });
  own(run.child);
  return (await run).stdout;
}

async function watched(clients) {
  await checks.check('dateline status tells what each server is', async () => {
    const { servers: told } = JSON.parse(await says('status', '--json'));
    const pipe = (revision) => ['up', 'stdio', revision, revision === LEGACY ? 'legacy' : 'modern', 0, 1];
    const shown = told.map((s) => [s.name, [s.state, s.transport, s.revision, s.era, s.restarts, s.pids.length]]);
    assert.deepEqual(Object.fromEntries(shown), {
      everything: ['up', 'http', LEGACY, 'legacy', 0, 0],
      filesystem: pipe(LEGACY),
      memory: pipe(LEGACY),
      time: pipe(LEGACY),
      git: pipe(MODERN),
      fetch: pipe(MODERN),
    });
    for (const server of told) {
      if (server.name !== 'everything') assert.equal(server.tools, offered[server.name].length, server.name);
      assert.ok(server.calls >= clients, `${server.calls} calls of ${server.name}`);
    }
    // And nothing else was started.
    const running = processes(dir).map(([id]) => Number(id)).filter((id) => ![everything.pid, gateway.pid].includes(id));
    assert.deepEqual(running.sort(), told.flatMap((server) => server.pids).sort());
  });
  await checks.check('dateline logs has what a server said on stderr', async () => {
    const lines = (await says('logs', 'memory', '--json')).trim().split('\n').map((line) => JSON.parse(line));
    assert.ok(lines.every((line) => line.server === 'memory'));
    assert.ok(lines.some((line) => line.text === 'Knowledge Graph MCP Server running on stdio'), JSON.stringify(lines));
  });
}

/** server-everything by Streamable HTTP. It cannot be told to take a free port and say which. */
async function remote() {
  const port = await freePort();
  const ready = new RegExp(`listening on port ${port}\\b`);
  const server = await launch(process.execPath, [EVERYTHING, 'streamableHttp', dir], { env: { ...env, PORT: port }, ready });
  return Object.assign(server, { url: `http://127.0.0.1:${port}/mcp` });
}

const place = await checks.check('what the servers work on stands', () => world(dir));
const everything = await checks.check('server-everything serves Streamable HTTP', remote);
const configured = place && everything && servers(place, everything.url);
const offered = configured && (await checks.check('the servers answer without dateline', () => offers(configured), 60_000));
if (!offered) checks.finish('peers');
const config = writeConfig(join(dir, 'mcp.json'), configured);

const serve = () => start(dateline, ['serve', '--config', config, '--listen', '127.0.0.1:0'], env);
const gateway = await checks.check('dateline serve starts', serve);
if (gateway) {
  const peers = [];
  for (const Era of [...ERAS, ...OTHERS]) {
    const prefix = `http ${Era.title} ${Era.revision}`;
    const peer = await connect(Era, prefix, { url: gateway.url, env });
    if (!peer) continue;
    peers.push(peer);
    await everyServer(peer, prefix);
    if (!peer.url) await inDepth(peer, prefix);
  }
  await together(peers.filter((peer) => !peer.url));
  await watched(peers.length);
  for (const peer of peers) await checks.check(`http ${peer.constructor.title} ${peer.revision} closes`, () => peer.close());
  await checks.check('dateline serve ends', () => gateway.stop());
  await nothingLeft('dateline serve');
  if (checks.failed) lastWords('dateline serve', gateway.output());
}
await checks.check('the sessions of server-everything were ended', async () => {
  const ids = (pattern) => [...everything.output().matchAll(pattern)].map(([, id]) => id).sort();
  const opened = ids(/Session initialized with ID: (\S+)/g);
  assert.ok(opened.length >= 2, everything.output().slice(-500)); // one without dateline, and one with it
  assert.deepEqual(ids(/termination request for session (\S+)/g), opened);
});
await checks.check('dateline serve is killed with all servers up', async () => {
  const server = await serve();
  await until('all up', async () => JSON.parse(await says('status', '--json')).servers.every(({ state }) => state === 'up'), 20_000);
  await server.kill();
});
await nothingLeft('dateline serve, killed,');
await checks.check('server-everything ends', () => everything.stop('SIGINT'));

// Over a pipe everything is started anew, server-everything too.
writeConfig(config, servers(place));
for (const Era of ERAS) {
  const prefix = `stdio ${Era.title} ${Era.revision}`;
  const failures = checks.failed;
  const peer = await connect(Era, prefix, { command: dateline, args: ['stdio', '--config', config], env });
  if (peer) {
    await everyServer(peer, prefix);
    await inDepth(peer, prefix);
    await checks.check(`${prefix} reaches a server that has the environment of its configuration`, async () => {
      assert.equal(JSON.parse(text(await peer.call('get-env'))).DATELINE_TEST, 'from the configuration');
    });
    await checks.check(`${prefix} closes`, () => peer.close());
  }
  await nothingLeft(prefix);
  if (checks.failed > failures) lastWords('dateline stdio', peer?.stderr ?? '');
}

checks.finish('peers');
