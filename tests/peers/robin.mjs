// Two demos that have one key, behind the round robin of nginx: each request of a client goes to the other process. The
// official client of 2026-07-28 and plain requests ask, are asked, turn pages, listen; keys are replaced meanwhile.
//
//   node robin.mjs --dateline PATH_TO_BINARY
//
// Needs nginx in the PATH or in /usr/sbin (Debian: apt install nginx-light), or in $NGINX. Prints a line for each check and,
// last, `robin: N passed, N failed`. Exit code 1 when one failed.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { CAPABILITIES, ERAS, INFO, MODERN } from './clients.mjs';
import { environment } from './config.mjs';
import { Checks, datelineOption, endAllAtExit, freePort, launch, rejection, start, until, within } from './harness.mjs';

const WATCHED = 'test://watched-resource';
const ANSWER_MS = 10_000;
const PAGE = 3;
/** Dateline says something every 15 s, and nginx cuts what is quiet for longer than this. */
const QUIET_S = 17;
const REFUSED = -32602;

const dateline = datelineOption();
const dir = mkdtempSync(join(tmpdir(), 'dateline-robin-'));
endAllAtExit(dir);
process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
const checks = new Checks();
const env = environment(dir);
const [, ModernPeer] = ERAS;
const newKey = () => execFileSync(dateline, ['key'], { env, encoding: 'utf8', timeout: ANSWER_MS }).trim();

const keyFile = join(dir, 'keys');
const keys = (...lines) => writeFileSync(keyFile, `# of the run\n${lines.join('\n')}\n`, { mode: 0o600 });
const accessLog = join(dir, 'access.log');

const demo = (...args) => start(dateline, ['demo', '--listen', '127.0.0.1:0', '--page-size', `${PAGE}`, ...args], env);

/** Starts nginx, with a server for each of `places`: [port, upstream, more directives]. */
async function nginx(upstreams, places) {
  const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((what) => `${what}_temp_path ${join(dir, what)};`);
  const upstream = ([name, servers]) =>
    `upstream ${name} { ${servers.map(({ url }) => `server ${new URL(url).host};`).join(' ')} keepalive 8; }`;
  const server = ([port, name, more]) => `server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://${name};
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_read_timeout ${QUIET_S}s;
      proxy_next_upstream off;
      add_header X-Upstream $upstream_addr always;
      ${more}
    }
  }`;
  const config = `
    daemon off; master_process off; pid ${join(dir, 'nginx.pid')}; error_log stderr notice;
    events { worker_connections 256; }
    http {
      log_format line '$server_port $status $upstream_addr $http_mcp_method';
      access_log ${accessLog} line;
      ${temp.join('\n      ')}
      ${Object.entries(upstreams).map(upstream).join('\n      ')}
      ${places.map(server).join('\n      ')}
    }\n`;
  writeFileSync(join(dir, 'nginx.conf'), config);
  const program = process.env.NGINX ?? 'nginx';
  const path = `${env.PATH}:/usr/sbin`;
  try {
    const args = ['-e', 'stderr', '-p', dir, '-c', join(dir, 'nginx.conf')];
    return await launch(program, args, { ready: /nginx\/[\d.]+/, env: { ...env, PATH: path } });
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
    throw new Error('there is no nginx in the PATH (Debian: apt install nginx-light); $NGINX can name another one');
  }
}

/** What went through a port of nginx so far: which process had the request, and its method. */
function log(port) {
  const lines = readFileSync(accessLog, 'utf8').trimEnd().split('\n').map((line) => line.split(' '));
  return lines.filter(([at]) => at === `${port}`).map(([, status, upstream, method]) => ({ status, upstream, method }));
}

/** Each of them went to another process than the one before it. */
function alternates(processes) {
  assert.ok(processes.length > 1, `${processes.length} request`);
  for (const [at, process] of processes.entries()) {
    assert.ok(/^127\.0\.0\.1:\d+$/.test(process), process);
    assert.notEqual(process, processes[at - 1], `requests ${at} and ${at + 1} went to one process: ${processes}`);
  }
}

/** Runs `work` and gives the processes that its requests of this method went to, `count` of them. */
async function processesOf(port, method, count, work) {
  const before = log(port).length;
  const result = await work();
  const ours = () => log(port).slice(before).filter((line) => line.method === method);
  // A request is written down after its client has the response.
  await until(`${count} requests of ${method}`, () => ours().length >= count);
  assert.equal(ours().length, count, JSON.stringify(ours()));
  return [ours().map(({ upstream }) => upstream), result];
}

const key = (name) => `io.modelcontextprotocol/${name}`;
let lastId = 0;

/** One request, and its response with the process that gave it. */
async function send(port, method, params = {}, meta = {}) {
  const name = params.name ?? params.uri;
  const _meta = {
    [key('protocolVersion')]: MODERN,
    [key('clientCapabilities')]: CAPABILITIES,
    [key('clientInfo')]: INFO,
    ...meta,
  };
  const response = await fetch(`http://127.0.0.1:${port}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': MODERN,
      'mcp-method': method,
      ...(name && { 'mcp-name': name }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: (lastId += 1), method, params: { ...params, _meta } }),
    signal: method === 'subscriptions/listen' ? undefined : AbortSignal.timeout(ANSWER_MS),
  });
  return { response, process: response.headers.get('x-upstream') };
}

/** A request whose answer is one object. */
async function ask(...request) {
  const { response, process } = await send(...request);
  const { result, error } = await response.json();
  return { process, result, error };
}

const ANSWERS = {
  'elicitation/create': ({ requestedSchema: { properties } }) => ({
    action: 'accept',
    content: Object.fromEntries(Object.keys(properties).map((field) => [field, 'Ada'])),
  }),
  'sampling/createMessage': () => ({ model: 'm', role: 'assistant', content: { type: 'text', text: 'Paris' } }),
  'roots/list': () => ({ roots: [{ uri: 'file:///srv/project', name: 'project' }] }),
};

/** The params of the next round: the call, the answers to what was asked, and the state. */
function retry(call, { inputRequests = {}, requestState }) {
  const answer = ([name, { method, params }]) => [name, ANSWERS[method](params)];
  return { ...call, inputResponses: Object.fromEntries(Object.entries(inputRequests).map(answer)), requestState };
}

const tool = (name, args = {}) => ({ name, arguments: args });
const TWICE = tool('test_input_required_result_multi_round');
const text = (result) => result.content.map((block) => block.text).join('\n');

/** The first round of a call that asks twice, from one process. */
async function firstRound(port) {
  const { result, error, process } = await ask(port, 'tools/call', TWICE);
  assert.equal(result?.resultType, 'input_required', JSON.stringify(error ?? result));
  return { interim: result, process };
}

/** The events of a stream as they come, and its comments; `seen` has them all with the time of each. */
function read(response) {
  const stream = { seen: [], comments: 0, ended: false };
  const reading = async () => {
    let rest = '';
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
      const events = (rest + chunk).split('\n\n');
      rest = events.pop();
      for (const event of events) {
        if (event.startsWith(':')) stream.comments += 1;
        const data = event.split('\n').filter((line) => line.startsWith('data:')).map((line) => line.slice(5)).join('\n');
        if (data.trim()) stream.seen.push({ ...JSON.parse(data), at: Date.now() });
      }
    }
    stream.ended = true;
  };
  stream.over = reading().catch((error) => (stream.error = error));
  return stream;
}

async function listen(port, notifications) {
  const { response, process } = await send(port, 'subscriptions/listen', { notifications });
  assert.equal(response.status, 200);
  const stream = Object.assign(read(response), { process });
  const acknowledged = 'notifications/subscriptions/acknowledged';
  await until(acknowledged, () => stream.seen.some(({ method }) => method === acknowledged));
  stream.updates = () => stream.seen.filter(({ method }) => method === 'notifications/resources/updated').length;
  return stream;
}

async function officialClient(port) {
  const check = (name, run) => checks.check(`typescript 2.4, ${name}`, run);
  const peer = await check('connects', () => ModernPeer.connect({ url: `http://127.0.0.1:${port}/mcp` }));
  if (!peer) return;
  assert.equal(peer.revision, MODERN);
  const calls = [
    ['test_input_required_result_elicitation', ['elicitation/create'], 'Ada'],
    ['test_input_required_result_sampling', ['sampling/createMessage'], 'Paris'],
    ['test_input_required_result_list_roots', ['roots/list'], 'file:///srv/project'],
    ['test_input_required_result_request_state', ['elicitation/create'], 'state-ok'],
    ['test_input_required_result_multiple_inputs', ['elicitation/create', 'roots/list', 'sampling/createMessage'], 'Ada'],
  ];
  for (const [name, questions, answer] of calls) {
    await check(`is asked by ${name}`, async () => {
      peer.asked.length = 0;
      const [processes, result] = await processesOf(port, 'tools/call', 2, () => peer.call(name));
      alternates(processes);
      assert.deepEqual(peer.asked.map(({ method }) => method).sort(), questions);
      assert.ok(text(result).includes(answer), text(result));
    });
  }
  await check('is asked in two rounds', async () => {
    peer.asked.length = 0;
    const [processes, result] = await processesOf(port, 'tools/call', 3, () => peer.call(TWICE.name));
    alternates(processes);
    assert.equal(peer.asked.length, 2);
    assert.ok(text(result).startsWith('Ada: '), text(result));
  });
  await check('is asked by a prompt', async () => {
    const [processes, result] = await processesOf(port, 'prompts/get', 2, () => peer.prompt('test_input_required_result_prompt'));
    alternates(processes);
    assert.equal(result.messages.length, 1);
  });
  for (const [method, members] of [['tools/list', 'tools'], ['prompts/list', 'prompts'], ['resources/list', 'resources']]) {
    await check(`turns the pages of ${method}`, async () => {
      const list = { tools: 'listTools', prompts: 'listPrompts', resources: 'listResources' }[members];
      const whole = await everything(port, method, members);
      const [processes, got] = await processesOf(port, method, Math.ceil(whole.length / PAGE), () => peer.client[list]());
      alternates(processes);
      assert.deepEqual(got[members].map(({ name }) => name), whole);
    });
  }
  await check('listens', async () => {
    const subscription = await peer.client.listen({ resourceSubscriptions: [WATCHED] }, { timeout: ANSWER_MS });
    // One of two touches that follow each other reaches the process that has the listen.
    for (let i = 0; i < 2; i += 1) await peer.call('touch_resource', { uri: WATCHED });
    await until('the update', () => peer.seen('notifications/resources/updated').length > 0);
    await sleep(200);
    assert.equal(peer.seen('notifications/resources/updated').length, 1);
    await subscription.close();
  });
  await peer.close();
}

/** The names of a whole list, each page from another process. */
async function everything(port, method, members) {
  const [names, processes] = [[], []];
  let cursor;
  do {
    const { result, error, process } = await ask(port, method, cursor && { cursor });
    assert.ok(result, JSON.stringify(error));
    names.push(...result[members].map((entry) => entry.name));
    processes.push(process);
    cursor = result.nextCursor;
  } while (cursor);
  if (processes.length > 1) alternates(processes);
  return names;
}

async function plainRequests(port) {
  await checks.check('three rounds of a call reach three times another process', async () => {
    const first = await ask(port, 'tools/call', TWICE);
    const second = await ask(port, 'tools/call', retry(TWICE, first.result));
    const last = await ask(port, 'tools/call', retry(TWICE, second.result));
    alternates([first, second, last].map(({ process }) => process));
    assert.deepEqual([first, second].map(({ result }) => result.resultType), ['input_required', 'input_required']);
    assert.match(text(last.result), /^Ada: .*Ada/);
  });
  await checks.check('a state is for its own call, in each process', async () => {
    const { interim } = await firstRound(port);
    const other = tool('test_input_required_result_request_state');
    for (let i = 0; i < 2; i += 1) {
      assert.equal((await ask(port, 'tools/call', retry(other, interim))).error?.code, REFUSED);
      const changed = { ...interim, requestState: `${interim.requestState.slice(0, -2)}AA` };
      assert.equal((await ask(port, 'tools/call', retry(TWICE, changed))).error?.code, REFUSED);
    }
  });
  await checks.check('the pages of each list come from both processes', async () => {
    const direct = async (method, members) => {
      const names = await everything(port, method, members);
      assert.equal(new Set(names).size, names.length, `${names}`);
      return names.length;
    };
    assert.ok((await direct('tools/list', 'tools')) > 4 * PAGE);
    assert.ok((await direct('prompts/list', 'prompts')) > PAGE);
    assert.ok((await direct('resources/list', 'resources')) > PAGE);
  });
  await checks.check('a change is heard by the listens of its process', async () => {
    const filter = { resourceSubscriptions: [WATCHED] };
    const listens = [await listen(port, filter), await listen(port, filter)];
    alternates(listens.map(({ process }) => process));
    const due = [0, 0];
    for (let i = 0; i < 4; i += 1) {
      const { process, result } = await ask(port, 'tools/call', tool('touch_resource', { uri: WATCHED }));
      assert.ok(!result.isError);
      due[listens.findIndex((stream) => stream.process === process)] += 1;
      await until('the update', () => listens.every((stream, at) => stream.updates() >= due[at]));
    }
    await sleep(200);
    assert.deepEqual(due, [2, 2]);
    assert.deepEqual(listens.map((stream) => stream.updates()), due);
  });
}

async function rotation(port, servers, old) {
  const fresh = newKey();
  const readAgain = (count) =>
    Promise.all(servers.map((server) =>
      until('the keys are read again', () => server.output().includes(`was read again: ${count}`))));
  // Of both processes, and to be opened by both.
  const before = await checks.check('states are given out under the first key', async () =>
    [await firstRound(port), await firstRound(port), await firstRound(port)]);
  const page = await checks.check('a cursor is given out under the first key', () => ask(port, 'tools/list'));
  const turn = (cursor) => ask(port, 'tools/list', { cursor });
  await checks.check('a new key comes first, and what the old one sealed still opens', async () => {
    keys(fresh, old);
    await readAgain('2 keys');
    for (const { interim } of before) {
      const { result, error } = await ask(port, 'tools/call', retry(TWICE, interim));
      assert.equal(result?.resultType, 'input_required', JSON.stringify(error));
    }
    for (let i = 0; i < 2; i += 1) assert.ok((await turn(page.result.nextCursor)).result);
  });
  const after = await checks.check('what the new one seals opens in the other process', async () => {
    const states = [await firstRound(port), await firstRound(port)];
    const { result, error } = await ask(port, 'tools/call', retry(TWICE, states[0].interim));
    assert.equal(result?.resultType, 'input_required', JSON.stringify(error));
    return states;
  });
  await checks.check('without the old key only what the new one sealed opens', async () => {
    keys(fresh);
    await readAgain('1 key');
    for (const { interim } of before) {
      assert.equal((await ask(port, 'tools/call', retry(TWICE, interim))).error?.code, REFUSED);
    }
    assert.equal((await turn(page.result.nextCursor)).error?.code, REFUSED);
    for (const { interim } of after) {
      const { result, error } = await ask(port, 'tools/call', retry(TWICE, interim));
      assert.equal(result?.resultType, 'input_required', JSON.stringify(error));
    }
  });
}

/** Without a key in common: what is refused, and that the message says why. */
async function apart(port) {
  await checks.check('without a shared key a retry in the other process is refused', async () => {
    const { interim, process } = await firstRound(port);
    const other = await ask(port, 'tools/call', retry(TWICE, interim));
    alternates([process, other.process]);
    assert.equal(other.error?.code, REFUSED, JSON.stringify(other));
    assert.match(other.error.message, /requestState/);
    const own = await ask(port, 'tools/call', retry(TWICE, interim));
    assert.equal(own.process, process);
    assert.equal(own.result?.resultType, 'input_required', 'the process that sealed it takes it');
  });
  await checks.check('without a shared key a cursor is refused by the other process', async () => {
    const { result } = await ask(port, 'tools/list');
    const { error } = await ask(port, 'tools/list', { cursor: result.nextCursor });
    assert.equal(error?.code, REFUSED);
  });
  await checks.check('without a shared key the official client gets -32602', async () => {
    const peer = await ModernPeer.connect({ url: `http://127.0.0.1:${port}/mcp` });
    assert.equal((await rejection(peer.call(TWICE.name))).code, REFUSED);
    await peer.close();
  });
}

/** How long it takes from the first progress of a countdown to the last, as a client sees it. */
async function spread(port) {
  const call = tool('countdown', { from: 5, intervalMs: 150 });
  const { response } = await send(port, 'tools/call', call, { progressToken: 'p' });
  const stream = read(response);
  await within(ANSWER_MS, stream.over);
  const progress = stream.seen.filter(({ method }) => method === 'notifications/progress');
  assert.ok(progress.length >= 5 && stream.seen.at(-1).result, JSON.stringify(stream.seen));
  return progress.at(-1).at - progress[0].at;
}

const first = newKey();
keys(first);
const shared = await checks.check('two demos start with one key', () =>
  Promise.all([demo('--key-file', keyFile), demo('--key-file', keyFile)]));
const strangers = await checks.check('two demos start without', () => Promise.all([demo(), demo()]));
const [robin, without, buffering, ignoring] = [await freePort(), await freePort(), await freePort(), await freePort()];
const proxy = shared && strangers && (await checks.check('nginx starts', () =>
  nginx({ shared, apart: strangers }, [
    [robin, 'shared', 'proxy_http_version 1.1; proxy_buffering off;'],
    [without, 'apart', 'proxy_http_version 1.1; proxy_buffering off;'],
    // As it is where nothing is said: with HTTP/1.0, in which a response has no chunks that could be passed on.
    [buffering, 'shared', 'proxy_http_version 1.0; proxy_buffering on;'],
    [ignoring, 'shared', 'proxy_http_version 1.0; proxy_buffering on; proxy_ignore_headers X-Accel-Buffering;'],
  ])));
if (proxy) {
  const began = Date.now();
  const quiet = await checks.check('a listen is acknowledged through nginx', () =>
    listen(buffering, { resourceSubscriptions: ['test://static-text'] }));
  await officialClient(robin);
  await plainRequests(robin);
  await rotation(robin, shared, first);
  await apart(without);
  await checks.check('a stream passes at once where nginx buffers', async () => {
    const took = await spread(buffering);
    assert.ok(took > 500, `${took} ms from the first to the last`);
  });
  await checks.check('which is for the header that it ignores here', async () => {
    const took = await spread(ignoring);
    assert.ok(took < 300, `${took} ms from the first to the last`);
  });
  if (quiet) {
    await checks.check('a listen is kept alive', async () => {
      await until('a comment', () => quiet.comments > 0, 20_000);
      // Longer than nginx waits where nothing comes.
      await until('some more seconds', () => Date.now() - began > (QUIET_S + 2) * 1_000, 10_000);
      assert.deepEqual([quiet.ended, quiet.error], [false, undefined]);
    });
    await checks.check('and ends with a word when its process ends', async () => {
      await Promise.all(shared.map((server) => server.stop()));
      await within(ANSWER_MS, quiet.over);
      const [cancelled, result] = quiet.seen.slice(-2);
      assert.equal(cancelled.method, 'notifications/cancelled');
      assert.ok(result.result && quiet.ended, JSON.stringify([quiet.seen, quiet.error?.message]));
    });
  }
  await checks.check('nginx saw nothing break', async () => {
    const errors = proxy.output().split('\n').filter((line) => /\[(error|crit|alert|emerg)\]/.test(line));
    assert.deepEqual(errors, []);
  });
}
checks.finish('robin');
