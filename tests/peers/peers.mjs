// Real peers on both sides: server-everything (npm) and mcp-server-time (PyPI) behind one dateline, used through it by the
// official TypeScript clients of both eras, over Streamable HTTP and over a pipe.
//
//   node peers.mjs --dateline PATH_TO_BINARY
//
// Prints a line for each check and, last, `peers: N passed, N failed`. Exit code 1 when one failed.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

import { ERAS, LEGACY } from './clients.mjs';
import { everythingDocument, servers, writeConfig } from './config.mjs';
import { Checks, assertProgress, cancelled, datelineOption, endAllAtExit, processes, rejection, start, until } from './harness.mjs';

// Those that server-everything offers whatever its client can do, and all of mcp-server-time.
const TOOLS = [
  'echo', 'get-annotated-message', 'get-env', 'get-resource-links', 'get-resource-reference', 'get-structured-content', 'get-sum',
  'get-tiny-image', 'gzip-file-as-resource', 'toggle-simulated-logging', 'toggle-subscriber-updates',
  'trigger-long-running-operation', 'convert_time', 'get_current_time',
];
const LONG = 'trigger-long-running-operation';

const dateline = datelineOption();
const dir = mkdtempSync(join(tmpdir(), 'dateline-peers-'));
endAllAtExit(dir);
process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
const checks = new Checks();
const config = writeConfig(join(dir, 'mcp.json'), dir);

/** The tools as the servers define them when nothing stands between. */
async function definitions() {
  const found = new Map();
  for (const server of Object.values(servers(dir))) {
    const client = new Client({ name: 'dateline-test', version: '1.0.0' });
    await client.connect(new StdioClientTransport({ ...server, stderr: 'ignore' }));
    for (const tool of (await client.listTools()).tools) found.set(tool.name, tool);
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

async function use(peer, prefix, defined) {
  const check = (name, run) => checks.check(`${prefix} ${name}`, run);

  await check('lists the tools of both servers', async () => {
    const names = (await peer.tools()).map((tool) => tool.name);
    assert.deepEqual(TOOLS.filter((name) => !names.includes(name)), [], 'missing');
    assert.equal(new Set(names).size, names.length, 'names are unique');
  });
  if (peer.revision === LEGACY && defined) {
    await check('passes the definitions of the tools on unchanged', async () => {
      const tools = (await peer.tools()).filter((tool) => TOOLS.includes(tool.name));
      for (const tool of tools) assert.deepEqual(tool, defined.get(tool.name));
    });
  }
  await check('calls echo', async () => {
    const message = 'Grüße, 世界 🌍 \u2028 "\\"\n';
    assert.deepEqual((await peer.call('echo', { message })).content, [{ type: 'text', text: `Echo: ${message}` }]);
  });
  await check('calls convert_time', async () => {
    const before = conversion(Date.now());
    const args = { source_timezone: 'Asia/Tokyo', time: '16:30', target_timezone: 'Asia/Kolkata' };
    const result = await peer.call('convert_time', args);
    const after = conversion(Date.now()); // midnight may pass
    const got = JSON.parse(text(result));
    assert.deepEqual(got, got.source.datetime === before.source.datetime ? before : after);
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
  await check('reaches a server that has the environment of its configuration', async () => {
    assert.equal(JSON.parse(text(await peer.call('get-env'))).DATELINE_TEST, 'from the configuration');
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
    const { resources } = await peer.client.listResources();
    assert.ok(resources.some((resource) => resource.uri === uri), 'it is listed');
    const expected = readFileSync(everythingDocument('architecture.md'), 'utf8');
    assert.deepEqual((await peer.read(uri)).contents, [{ uri, mimeType: 'text/markdown', text: expected }]);
  });
  await check('reads a resource of a template', async () => {
    const { resourceTemplates } = await peer.client.listResourceTemplates();
    const templates = resourceTemplates.map((template) => template.uriTemplate);
    assert.ok(templates.includes('demo://resource/dynamic/text/{resourceId}'), `got ${templates}`);
    const [content] = (await peer.read('demo://resource/dynamic/text/7')).contents;
    assert.match(content.text, /^Resource 7: This is a plaintext resource/);
  });
  await check('gets -32602 for a tool that nobody has', async () => {
    assert.equal((await rejection(peer.call('no-such-tool'))).code, -32602);
  });
  await check('cancels a call', () => cancelled((options) => peer.call(LONG, { duration: 60, steps: 600 }, options)));
  await check('goes on after that', async () => {
    assert.equal(text(await peer.call('get-sum', { a: 40, b: 2 })), 'The sum of 40 and 2 is 42.');
  });
  await questions(peer, check);
}

/** server-everything is of the handshake era: its questions pass to a client of that era. */
async function questions(peer, check) {
  if (peer.revision !== LEGACY) {
    return check('sees the question of a server end, with an answer or an error, and goes on', async () => {
      await Promise.allSettled([peer.call('trigger-elicitation-request', {}, { timeout: 10_000 })]).then(([outcome]) => {
        assert.doesNotMatch(String(outcome.reason?.message), /timed out/i, 'it hung');
      });
      assert.equal(text(await peer.call('get-sum', { a: 1, b: 2 })), 'The sum of 1 and 2 is 3.');
    });
  }
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

/** Two clients at once: the SDKs count ids and progress tokens from 0, so both use the same ones. */
async function together(peers) {
  await checks.check('http both eras at once: each gets its own progress', async () => {
    const totals = [6, 9];
    const run = async (peer, steps) => {
      const seen = [];
      await peer.call(LONG, { duration: 1, steps }, { onprogress: (p) => seen.push(p) });
      assertProgress(seen, steps);
    };
    await Promise.all(peers.map((peer, i) => run(peer, totals[i])));
  });
  await checks.check('http both eras at once: each gets its own answers', async () => {
    const call = async (peer, i) => {
      const message = `${peer.revision} ${i}`;
      assert.equal(text(await peer.call('echo', { message })), `Echo: ${message}`);
    };
    await Promise.all(peers.flatMap((peer) => Array.from({ length: 50 }, (_, i) => call(peer, i))));
  });
}

async function nothingLeft(prefix) {
  await checks.check(`${prefix} leaves no process behind`, async () => {
    await until('all ended', () => processes(dir).length === 0).catch(() => {
      throw new Error(processes(dir).map(([id, args]) => `${id} ${args}`).join('\n'));
    });
  });
  for (const [id] of processes(dir)) process.kill(Number(id), 'SIGKILL'); // so that it is not counted again
}

async function connect(Era, prefix, target) {
  return checks.check(`${prefix} is negotiated`, async () => {
    const peer = await Era.connect(target);
    assert.equal(peer.revision, Era.revision);
    return peer;
  }, 60_000);
}

const defined = await checks.check('the servers answer without dateline', definitions);

const gateway = await checks.check('dateline serve starts', () => start(dateline, ['serve', '--config', config, '--listen', '127.0.0.1:0']));
if (gateway) {
  const peers = [];
  for (const Era of ERAS) {
    const prefix = `http ${Era.revision}`;
    const peer = await connect(Era, prefix, { url: gateway.url });
    if (!peer) continue;
    await use(peer, prefix, defined);
    peers.push(peer);
  }
  if (peers.length === 2) await together(peers);
  for (const peer of peers) await checks.check(`http ${peer.revision} closes`, () => peer.close());
  await checks.check('dateline serve ends', () => gateway.stop());
  await nothingLeft('dateline serve');
  if (checks.failed) console.log(`--- what dateline serve said last:\n${gateway.stderr().trimEnd().split('\n').slice(-15).join('\n')}\n---`);
}

for (const Era of ERAS) {
  const prefix = `stdio ${Era.revision}`;
  const failures = checks.failed;
  const peer = await connect(Era, prefix, { command: dateline, args: ['stdio', '--config', config] });
  if (peer) {
    await use(peer, prefix);
    await checks.check(`${prefix} closes`, () => peer.close());
  }
  await nothingLeft(prefix);
  if (checks.failed > failures) console.log(`--- what dateline stdio said last:\n${(peer?.stderr ?? '').trimEnd().slice(-1500)}\n---`);
}

checks.finish('peers');
