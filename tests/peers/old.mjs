// Old releases of the official clients, of TypeScript and of Python, two for each revision with a handshake: against the demo
// server over every transport, and against the gateway with the demo behind it (not over a pipe).
//
//   node old.mjs --dateline PATH_TO_BINARY [--transports stdio,http,sse]
//
// Prints a line for each check and, last, `old: N passed, N failed`. Exit code 1 when one failed.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { CALL_MS, CAPABILITIES, INFO, Peer, PythonPeer, answers } from './clients.mjs';
import { EVERYTHING, PYTHON, environment, writeConfig } from './config.mjs';
import {
  Checks, assertProgress, cancelled, endAllAtExit, freePort, launch, processes, rejection, scriptOptions, start, until,
} from './harness.mjs';

const [R1105, R0326, R0618, R1125] = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];

const [UPDATED, MESSAGE, PROGRESS] = ['resources/updated', 'message', 'progress'].map((name) => `notifications/${name}`);
const LISTS_CHANGED = ['tools', 'prompts'].map((list) => `notifications/${list}/list_changed`);

// An SDK of TypeScript forgets a call as it reads its result, and hands out a notification a turn after it read it: what it read
// together with the result is of a token that it does not know any more.
const LATE = /^Received a progress notification for an unknown token: /;

/** The SDK of TypeScript, as a package of node_modules. */
class TypeScriptPeer extends Peer {
  problems = [];
  late = 0;

  static async connect({ name }, { transport, url, command, args, env }) {
    const load = (module) => import(`${name}/${module}.js`);
    const { Client } = await load('client/index');
    const types = await load('types');
    const open = {
      stdio: async () => new (await load('client/stdio')).StdioClientTransport({ command, args, env, stderr: 'pipe' }),
      http: async () => new (await load('client/streamableHttp')).StreamableHTTPClientTransport(new URL(url)),
      sse: async () => new (await load('client/sse')).SSEClientTransport(new URL(url)),
    };
    const elicits = 'ElicitRequestSchema' in types;
    const { elicitation, ...others } = CAPABILITIES;
    const client = new Client(INFO, { capabilities: elicits ? { ...others, elicitation } : others });
    const peer = new this(client, await open[transport]());
    client.onerror = (error) => (LATE.test(error.message) ? (peer.late += 1) : peer.problems.push(error));
    // None of 1.x tells the revision.
    const request = client.request.bind(client);
    client.request = async (sent, ...rest) => {
      const result = await request(sent, ...rest);
      if (sent.method === 'initialize') {
        peer.requested = sent.params.protocolVersion;
        peer.revision = result.protocolVersion;
      }
      return result;
    };
    const handlers = answers(peer.asked);
    const questions = [types.CreateMessageRequestSchema, types.ListRootsRequestSchema];
    if (elicits) questions.push(types.ElicitRequestSchema);
    for (const schema of questions) {
      client.setRequestHandler(schema, handlers.get(schema.shape.method.value));
    }
    // The SDK holds what it has a schema for against it; the progress of calls has a handler of its own.
    const heard = ['ResourceUpdated', 'LoggingMessage', 'ToolListChanged', 'PromptListChanged'];
    for (const kind of heard) {
      client.setNotificationHandler(types[`${kind}NotificationSchema`], (told) => void peer.notifications.push(told));
    }
    await peer.connect();
    peer.server = client.getServerVersion();
    peer.capabilities = client.getServerCapabilities();
    peer.instructions = client.getInstructions();
    peer.release = JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url), 'utf8')).version;
    return peer;
  }

  call = (name, args = {}, options = {}) =>
    this.client.callTool({ name, arguments: args }, undefined, { timeout: CALL_MS, ...options });
  tools = async () => {
    const { tools } = await this.client.listTools();
    // 1.22 hands out three members of a schema: its zod object for `inputSchema` lets no other pass.
    return this.release === '1.22.0' ? this.received.findLast(({ result }) => result?.tools).result.tools : tools;
  };
  prompts = async () => (await this.client.listPrompts()).prompts;
  subscribe = (uri) => this.client.subscribeResource({ uri });
  unsubscribe = (uri) => this.client.unsubscribeResource({ uri });
  level = (level) => this.client.setLoggingLevel(level);
  ping = () => this.client.ping();
  progress = () => this.received.filter((message) => message.method === PROGRESS);

  /** Begins a call and cancels it after its first progress; gives the id of the request. */
  async cancel(name, args) {
    await cancelled((options) => this.call(name, args, options));
    return this.lastCallId;
  }
}

/** The SDK of Python, as a virtual environment. */
class OldPythonPeer extends PythonPeer {
  static connect({ name }, { transport, url, command, args = [], env }) {
    return this.start(PYTHON[name], ['client_old.py', transport, url ?? command, ...args], env);
  }

  prompts = async () => (await this.request('prompts')).prompts;
  complete = (params) => this.request('complete', params);
  subscribe = (uri) => this.request('subscribe', { uri });
  unsubscribe = (uri) => this.request('unsubscribe', { uri });
  level = (level) => this.request('level', { level });
  ping = () => this.request('ping');
  seen = (method) => this.notifications.filter((notification) => notification.method === method);
  progress = () => this.seen(PROGRESS);
  cancel = async (name, args) => (await this.request('cancel', { name, arguments: args })).id;
}

const typescript = (release, revision, name) => ({ Peer: TypeScriptPeer, title: `typescript ${release}`, release, revision, name });
const python = (release, revision, name) => ({ Peer: OldPythonPeer, title: `python ${release}`, release, revision, name });

/** Each asks for the newest revision that it knows. */
const RELEASES = [
  typescript('1.10.2', R1105, 'sdk-1.10'),
  typescript('1.12.3', R0326, 'sdk-1.12'),
  typescript('1.22.0', R0618, 'sdk-1.22'),
  typescript('1.32.2', R1125, '@modelcontextprotocol/sdk'),
  python('1.8.1', R1105, '1.8'),
  python('1.9.4', R0326, '1.9'),
  python('1.12.4', R0618, '1.12'),
  python('1.30.0', R1125, 'legacy'),
];

const options = scriptOptions({ transports: { type: 'string', default: 'stdio,http,sse' } });
const dir = realpathSync(mkdtempSync(join(tmpdir(), 'dateline-old-')));
// By that name whatever it starts is found.
const dateline = join(dir, 'dateline');
symlinkSync(options.dateline, dateline);
endAllAtExit(dir);
process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
const env = environment(dir);
const checks = new Checks();

const text = (result) => {
  assert.ok(!result.isError, JSON.stringify(result.content));
  assert.deepEqual(result.content.map((block) => block.type), ['text']);
  return result.content[0].text;
};
const names = (list) => list.map(({ name }) => name).sort();

/** What the revisions have is in the results, and nothing else: fields by the revision that they came with. */
function since(revision, fields) {
  const known = Object.entries(fields).filter(([came]) => came <= revision).map(([, members]) => members);
  return Object.assign({}, ...known);
}

/** Without what the SDKs add on their own. */
function asSent({ isError, ...result }) {
  assert.ok(!isError);
  return result;
}

const DIALECT = 'https://json-schema.org/draft/2020-12/schema';
const number = { type: 'number', format: 'double' };

/** The tool `add` in a revision. */
const addTool = (revision) =>
  since(revision, {
    [R1105]: {
      name: 'add',
      description: 'Adds two numbers.',
      inputSchema: { $schema: DIALECT, type: 'object', properties: { a: number, b: number }, required: ['a', 'b'] },
    },
    [R0326]: { annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false } },
    [R0618]: { title: 'Add', _meta: { 'example.dateline/level': 'easy' } },
  });

/** It says all that its definition has of its revision, and nothing of a later one. */
function assertAdd(tools, revision) {
  const { outputSchema, icons, ...tool } = tools.find(({ name }) => name === 'add');
  assert.deepEqual(tool, addTool(revision));
  assert.equal(outputSchema?.type, revision >= R0618 ? 'object' : undefined);
  const shown = revision >= R1125 ? [['image/svg+xml', ['any']]] : undefined;
  assert.deepEqual(icons?.map(({ mimeType, sizes }) => [mimeType, sizes]), shown);
}

async function addition(peer, revision) {
  assert.deepEqual(asSent(await peer.call('add', { a: 40, b: 2 })), {
    content: [{ type: 'text', text: '{"sum":42}' }],
    ...since(revision, { [R0618]: { structuredContent: { sum: 42 } } }),
  });
}

/** Progress as it came with the transport, and as the SDK handed it out. */
async function progress(peer, revision, tool, args, expected) {
  const [before, late] = [peer.progress().length, peer.late ?? 0];
  const handed = [];
  const result = text(await peer.call(tool, args, { onprogress: (told) => handed.push(told) }));
  const told = (list) => list.map(({ progress, total, message }) => [progress, total, ...(message ? [message] : [])]);
  const wanted = expected.map(([progress, total, message]) => [progress, total, ...(revision >= R0326 ? [message] : [])]);
  assert.deepEqual(told(peer.progress().slice(before).map(({ params }) => params)), wanted);
  assert.deepEqual(told(handed), wanted.slice(0, wanted.length - ((peer.late ?? 0) - late)));
  return result;
}

const countdown = (peer, revision) => async () => {
  const steps = [5, 4, 3, 2, 1, 0].map((left) => [5 - left, 5, `${left} left`]);
  assert.equal(await progress(peer, revision, 'countdown', { from: 5, intervalMs: 20 }, steps), 'counted down from 5');
};

/** One client at a time: the server lists ids of requests, and all clients count theirs from 0. */
let cancelling = Promise.resolve();

function cancellation(peer) {
  const listed = async (id) => text(await peer.call('cancelled_calls')).split(' ').filter((other) => other === String(id)).length;
  const run = async () => {
    const before = text(await peer.call('cancelled_calls'));
    const id = await peer.cancel('countdown', { from: 600, intervalMs: 100 });
    const had = before.split(' ').filter((other) => other === String(id)).length;
    await until(`cancelled_calls lists ${id}`, async () => (await listed(id)) === had + 1);
    assert.equal(text(await peer.call('echo', { message: 'and goes on' })), 'and goes on');
  };
  const turn = cancelling.then(run);
  cancelling = turn.catch(() => {});
  return turn;
}

/** Subscribes to a resource that no other client touches, hears of a change, and hears no more once it does not want to. */
async function subscription(peer, slug) {
  const uri = `test://template/${slug}/data`;
  const touch = async (uri) => assert.equal(text(await peer.call('touch_resource', { uri })), `touched ${uri}`);
  const heard = () => peer.seen(UPDATED).map(({ params }) => params.uri);
  await touch(uri);
  await peer.subscribe(uri);
  assert.deepEqual(heard(), [], 'before');
  await touch(uri);
  await until('an update', () => heard().length > 0);
  await touch('test://static-text');
  await touch(uri);
  await until('another update', () => heard().length > 1);
  await peer.unsubscribe(uri);
  await touch(uri);
  await sleep(300);
  assert.deepEqual(heard(), [uri, uri]);
}

const ROOT = { uri: 'file:///srv/project', name: 'project' };
const SAMPLING = 'sampling/createMessage';
const ELICITATION = 'elicitation/create';

/** A question of a tool reaches the client as it was asked, and the tool gets its answer. */
async function asked(peer, tool, args, expected, result) {
  peer.asked.length = 0;
  assert.equal(text(await peer.call(tool, args)), result);
  assert.deepEqual(peer.asked.map(({ method, params }) => [method, params ?? {}]), expected);
}

const sampling = (peer) => () => {
  const question = { messages: [{ role: 'user', content: { type: 'text', text: 'capital of France?' } }], maxTokens: 100 };
  const said = 'LLM response: Paris, says the model';
  return asked(peer, 'test_sampling', { prompt: 'capital of France?' }, [[SAMPLING, question]], said);
};

const form = (...fields) => ({
  type: 'object',
  properties: Object.fromEntries(fields),
  required: fields.map(([name]) => name),
});

/** Where the revision has no elicitation, a tool that asks for it ends with an error, at once. */
function elicitation(peer, revision, check) {
  if (revision < R0618) {
    return check('gets an error of a tool that asks for elicitation', async () => {
      const error = await rejection(peer.call('test_elicitation', { message: 'Who?' }));
      assert.equal(error.code, -32600);
      assert.match(error.message, /needs client capabilities that it does not declare: .*elicitation/);
      assert.equal(text(await peer.call('echo', { message: 'and goes on' })), 'and goes on');
    });
  }
  const requestedSchema = form(
    ['username', { type: 'string', description: "User's response" }],
    ['email', { type: 'string', description: "User's email address" }],
  );
  const said = 'User response: action=accept, content={"username":"ada","email":"ada@example.com"}';
  const question = { message: 'Who?', requestedSchema, ...since(revision, { [R1125]: { mode: 'form' } }) };
  return check('answers the elicitation of a tool', () =>
    asked(peer, 'test_elicitation', { message: 'Who?' }, [[ELICITATION, question]], said));
}

async function logs(peer) {
  const messages = async (level) => {
    await peer.level(level);
    const before = peer.seen(MESSAGE).length;
    assert.equal(text(await peer.call('test_tool_with_logging')), 'Tool with logging executed successfully');
    await sleep(200); // they may come on another stream than the result
    return peer.seen(MESSAGE).slice(before).map(({ params }) => [params.level, params.data]);
  };
  const expected = ['Tool execution started', 'Tool processing data', 'Tool execution completed'];
  assert.deepEqual(await messages('debug'), expected.map((data) => ['info', data]));
  assert.deepEqual(await messages('error'), []);
}

/** All that the demo has for an old client. */
async function everything(peer, { revision }, check, slug) {
  await check('is told who serves, and what', async () => {
    assert.equal(peer.server.name, 'dateline-demo');
    assert.match(peer.instructions, /^A server to play with/);
    const changes = { listChanged: true };
    assert.deepEqual(
      peer.capabilities,
      since(revision, {
        [R1105]: { tools: changes, prompts: changes, resources: { ...changes, subscribe: true }, logging: {} },
        [R0326]: { completions: {} },
      }),
    );
  });
  await check('lists tools, as its revision has them', async () => {
    const tools = await peer.tools();
    const some = ['add', 'countdown', 'echo', 'test_elicitation', 'touch_resource'];
    assert.deepEqual(names(tools).filter((name) => some.includes(name)), some);
    assertAdd(tools, revision);
  });
  await check('lists resources, templates and prompts', async () => {
    const resources = await peer.resources();
    assert.deepEqual(names(resources), ['Static Binary', 'Static Text', 'Watched', 'Welcome', 'meeting-minutes', 'release-notes']);
    assert.deepEqual(resources.find(({ name }) => name === 'Welcome'), {
      uri: 'demo://welcome', name: 'Welcome', description: 'A word of welcome.', mimeType: 'text/plain',
    });
    assert.deepEqual(await peer.templates(), [
      { uriTemplate: 'test://template/{id}/data', name: 'Template', description: 'Data by id.', mimeType: 'application/json' },
    ]);
    const prompts = await peer.prompts();
    assert.ok(names(prompts).includes('test_prompt_with_image'));
    assert.deepEqual(prompts.find(({ name }) => name === 'haiku'), {
      name: 'haiku',
      description: 'Asks for a haiku.',
      arguments: [{ name: 'topic', description: 'What it is about.', required: true }],
    });
  });
  await check('calls tools', async () => {
    await addition(peer, revision);
    const message = 'Grüße, 世界 🌍 \u2028 "\\"\n';
    assert.equal(text(await peer.call('echo', { message })), message);
  });
  await check('gets content of every kind', async () => {
    const { content } = await peer.call('test_multiple_content_types');
    assert.deepEqual(content.map(({ type }) => type), ['text', 'image', 'resource']);
    assert.equal(content[1].mimeType, 'image/png');
    assert.equal(Buffer.from(content[1].data, 'base64').subarray(1, 4).toString(), 'PNG');
    const resource = { uri: 'test://mixed-content-resource', mimeType: 'application/json', text: '{"test":"data","value":123}' };
    assert.deepEqual(content[2].resource, resource);
    const [sound] = (await peer.call('test_audio_content')).content;
    if (revision < R0326) assert.deepEqual(sound, { type: 'text', text: '[audio audio/wav, about 48 bytes]' });
    else {
      assert.deepEqual([sound.type, sound.mimeType], ['audio', 'audio/wav']);
      assert.equal(Buffer.from(sound.data, 'base64').subarray(0, 4).toString(), 'RIFF');
    }
  });
  await check('gets what fails', async () => {
    const failed = await peer.call('test_error_handling');
    assert.equal(failed.isError, true);
    assert.equal(failed.content[0].text, 'This tool intentionally returns an error for testing');
    assert.equal((await rejection(peer.call('no-such-tool'))).code, -32602);
    assert.equal((await rejection(peer.read('test://nothing'))).code, -32002);
    assert.equal((await rejection(peer.prompt('no-such-prompt'))).code, -32602);
  });
  await check('reads resources', async () => {
    const welcome = { uri: 'demo://welcome', mimeType: 'text/plain', text: "This is dateline's demo server." };
    assert.deepEqual((await peer.read('demo://welcome')).contents, [welcome]);
    const [binary] = (await peer.read('test://static-binary')).contents;
    assert.equal(Buffer.from(binary.blob, 'base64').subarray(1, 4).toString(), 'PNG');
    const [data] = (await peer.read('test://template/123/data')).contents;
    assert.deepEqual([data.uri, JSON.parse(data.text).id], ['test://template/123/data', '123']);
  });
  await check('gets prompts', async () => {
    const said = (text) => ({ role: 'user', content: { type: 'text', text } });
    const { messages } = await peer.prompt('test_prompt_with_arguments', { arg1: 'hello', arg2: 'world' });
    assert.deepEqual(messages, [said("Prompt with arguments: arg1='hello', arg2='world'")]);
    const image = (await peer.prompt('test_prompt_with_image')).messages;
    assert.equal(image[0].content.type, 'image');
    assert.deepEqual(image[1], said('Please analyze the image above.'));
  });
  await check('completes arguments', async () => {
    const complete = async (ref, name, value) => (await peer.complete({ ref, argument: { name, value } })).completion.values;
    assert.deepEqual(await complete({ type: 'ref/prompt', name: 'haiku' }, 'topic', 'r'), ['rain', 'rust', 'revisions']);
    assert.deepEqual(await complete({ type: 'ref/resource', uri: 'test://template/{id}/data' }, 'id', '7'), ['71', '72', '73']);
  });
  await check('pings', () => peer.ping());
  await check('gets progress', countdown(peer, revision));
  await check('gets progress between other messages', async () => {
    const steps = [[0, 100, 'Started'], [50, 100, 'Half way'], [100, 100, 'Completed']];
    const result = await progress(peer, revision, 'test_tool_with_progress', {}, steps);
    assert.equal(result, 'Tool with progress executed successfully');
  });
  await check('subscribes to a resource, and unsubscribes', () => subscription(peer, slug));
  await check('answers the sampling of a tool', sampling(peer));
  await check('answers the question for roots', () =>
    asked(peer, 'test_input_required_result_list_roots', {}, [['roots/list', {}]], `1 roots: ${JSON.stringify([ROOT])}`));
  await elicitation(peer, revision, check);
  if (revision >= R0618) {
    await check('answers three questions of a call', async () => {
      peer.asked.length = 0;
      assert.equal(text(await peer.call('test_input_required_result_multiple_inputs')), 'Ada: Paris, says the model (1 roots)');
      assert.deepEqual(peer.asked.map(({ method }) => method).sort(), [ELICITATION, 'roots/list', SAMPLING]);
    });
  }
  await check('sets the level of log messages', () => logs(peer));
  await check('hears of changed lists', async () => {
    for (const [i, tool] of ['test_trigger_tool_change', 'test_trigger_prompt_change'].entries()) {
      const before = peer.seen(LISTS_CHANGED[i]).length;
      assert.equal(text(await peer.call(tool)), 'changed');
      await until(LISTS_CHANGED[i], () => peer.seen(LISTS_CHANGED[i]).length > before);
    }
  });
  await check('cancels a call, and the server knows', () => cancellation(peer));
}

/** What shows that the gateway speaks the revision of the client, while the server behind it speaks one of its own. */
async function throughGateway(peer, { revision }, check, slug) {
  await check('lists tools, as its revision has them', async () => assertAdd(await peer.tools(), revision));
  await check('calls a tool', () => addition(peer, revision));
  await check('reads a resource', async () => {
    const welcome = { uri: 'demo://welcome', mimeType: 'text/plain', text: "This is dateline's demo server." };
    assert.deepEqual((await peer.read('demo://welcome')).contents, [welcome]);
  });
  await check('gets a prompt', async () => {
    const { messages } = await peer.prompt('haiku', { topic: 'rust' });
    assert.deepEqual(messages, [{ role: 'user', content: { type: 'text', text: 'Write a haiku about rust.' } }]);
  });
  await check('gets progress', countdown(peer, revision));
  await check('subscribes to a resource, and unsubscribes', () => subscription(peer, slug));
  await check('answers the sampling of a tool', sampling(peer));
  await elicitation(peer, revision, check);
}

async function use(release, target, what, prefix) {
  const check = (name, run, ms) => checks.check(`${prefix} ${name}`, run, ms);
  const peer = await check(`negotiates ${release.revision}`, async () => {
    const peer = await release.Peer.connect(release, { ...target, env });
    assert.deepEqual([peer.release, peer.requested, peer.revision], [release.release, release.revision, release.revision]);
    return peer;
  }, 60_000);
  if (!peer) return;
  await what(peer, release, check, prefix.replace(/\W+/g, '-'));
  await check('understood all it was sent', async () => assert.deepEqual(peer.problems.map(String), []));
  await check('closes', () => peer.close());
}

/** Runs jobs, so many at a time. */
async function together(count, jobs) {
  const rest = [...jobs];
  const worker = async () => {
    while (rest.length > 0) await rest.shift()();
  };
  await Promise.all(Array.from({ length: count }, worker));
}

/** A real server that has nothing but HTTP+SSE, behind the gateway, which has to find that out. */
async function oldServer() {
  const check = (name, run) => checks.check(`server-everything by HTTP+SSE, ${name}`, run, 60_000);
  const port = await freePort();
  const ready = new RegExp(`running on port ${port}\\b`);
  const far = await check('starts', () => launch(process.execPath, [EVERYTHING, 'sse', dir], { env: { ...env, PORT: port }, ready }));
  if (!far) return;
  const path = writeConfig(join(dir, 'far.json'), { far: { url: `http://127.0.0.1:${port}/sse` } });
  const near = await check('is served', () => start(dateline, ['serve', '--config', path, '--listen', '127.0.0.1:0'], env));
  const release = RELEASES.at(-1);
  const peer = near && (await check('has a client', () => release.Peer.connect(release, { transport: 'http', url: near.url, env })));
  if (peer) {
    await check('lists its tools', async () => assert.ok((await peer.tools()).some(({ name }) => name === 'echo')));
    await check('answers a call', async () => assert.equal(text(await peer.call('echo', { message: 'hi' })), 'Echo: hi'));
    await check('tells of progress', async () => {
      const seen = [];
      const args = { duration: 1, steps: 4 };
      const onprogress = ({ progress, total }) => seen.push({ progress, total });
      await peer.call('trigger-long-running-operation', args, { onprogress });
      assertProgress(seen, 4);
    });
    await check('asks the client', async () => {
      peer.asked.length = 0;
      await peer.call('trigger-sampling-request', { prompt: 'hello', maxTokens: 10 });
      assert.deepEqual(peer.asked.map(({ method }) => method), [SAMPLING]);
    });
    await check('lets its client go', () => peer.close());
  }
  // It does not handle SIGTERM.
  await check('ends', () => Promise.all([far.kill(), near?.stop()]));
}

const transports = options.transports.split(',');
const unknown = transports.filter((transport) => !['stdio', 'http', 'sse'].includes(transport));
if (unknown.length > 0) {
  console.error(`--transports: not one of stdio, http, sse: ${unknown}`);
  process.exit(2);
}

const demo = await checks.check('dateline demo starts', () => start(dateline, ['demo', '--listen', '127.0.0.1:0'], env));
const config = writeConfig(join(dir, 'mcp.json'), { demo: { command: dateline, args: ['demo', '--stdio'] } });
const serve = () => start(dateline, ['serve', '--config', config, '--listen', '127.0.0.1:0'], env);
const gateway = await checks.check('dateline serve starts', serve);
if (!demo || !gateway) checks.finish('old');

const at = (url) => ({ http: { transport: 'http', url }, sse: { transport: 'sse', url: new URL('/sse', url).href } });
const direct = { stdio: { transport: 'stdio', command: dateline, args: ['demo', '--stdio'] }, ...at(demo.url) };
const gated = at(gateway.url);
const jobs = (targets, what, title) =>
  transports.filter((transport) => transport in targets).flatMap((transport) =>
    RELEASES.map((release) => () => use(release, targets[transport], what, `${release.title} ${title}${transport}`)),
  );
await together(4, [...jobs(direct, everything, ''), ...jobs(gated, throughGateway, 'serve ')]);
await oldServer();
// A stream that is open for good must not hold a server up.
const [oldest] = RELEASES;
const stay = Object.values(at(demo.url)).filter(({ transport }) => transports.includes(transport));
const staying = await checks.check('clients come that stay', () =>
  Promise.all(stay.map((target) => oldest.Peer.connect(oldest, { ...target, env }))));
await checks.check('dateline demo ends', () => demo.stop());
for (const peer of staying ?? []) await peer.client.close();
await checks.check('dateline serve ends', () => gateway.stop());
await checks.check('nothing stays', () => until('all ended', () => processes(dir).length === 0));
if (checks.failed) {
  for (const [name, server] of Object.entries({ demo, serve: gateway })) {
    console.log(`--- what dateline ${name} said last:\n${server.output().trimEnd().slice(-1500)}\n---`);
  }
}
checks.finish('old');
