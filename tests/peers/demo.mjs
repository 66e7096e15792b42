// The demo server, used by the official TypeScript clients of both eras, over Streamable HTTP and over a pipe.
//
//   node demo.mjs --dateline PATH_TO_BINARY
//
// Prints a line for each check and, last, `demo: N passed, N failed`. Exit code 1 when one failed.

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

import { ERAS, LEGACY } from './clients.mjs';
import { Checks, assertProgress, cancelled, datelineOption, endAllAtExit, rejection, start, until } from './harness.mjs';

const WATCHED = 'test://watched-resource';
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';
const UPDATED = 'notifications/resources/updated';
const TOOLS_CHANGED = 'notifications/tools/list_changed';
const PROMPTS_CHANGED = 'notifications/prompts/list_changed';
const MESSAGE = 'notifications/message';

const dateline = datelineOption();
endAllAtExit();
const checks = new Checks();

const text = (result) => {
  assert.ok(!result.isError, JSON.stringify(result.content));
  return result.content.map((c) => c.text).join('\n');
};

async function use(peer, prefix) {
  const check = (name, run) => checks.check(`${prefix} ${name}`, run);
  const legacy = peer.revision === LEGACY;

  await check('calls add', async () => {
    const tool = (await peer.tools()).find((t) => t.name === 'add'); // from here on the client checks results by its outputSchema
    assert.ok(tool.outputSchema && tool.title && tool.annotations && tool.icons && tool._meta, JSON.stringify(tool));
    const result = await peer.call('add', { a: 40, b: 2 });
    assert.deepEqual(result.structuredContent, { sum: 42 });
    assert.deepEqual(JSON.parse(text(result)), { sum: 42 });
  });
  await check('calls echo', async () => {
    const message = 'Grüße, 世界 🌍 \u2028 "\\"\n';
    assert.ok(text(await peer.call('echo', { message })).includes(message));
  });
  await check('calls query_region', async () => {
    for (const region of ['eu-west', 'Zürich ']) {
      // The modern client also sends it as a header, and in base64 where a header could not carry it.
      assert.ok(text(await peer.call('query_region', { region, query: 'select 1' })).includes(region));
    }
    text(await peer.call('query_region', { query: 'select 1' }));
  });
  await check('gets progress of countdown', async () => {
    const seen = [];
    text(await peer.call('countdown', { from: 5, intervalMs: 40 }, { onprogress: (p) => seen.push(p) }));
    assert.ok(seen.length >= 4, `${seen.length} notifications`);
    for (const [i, { progress }] of seen.entries()) assert.ok(i === 0 || progress > seen[i - 1].progress, JSON.stringify(seen));
  });
  await check('gets progress of test_tool_with_progress', async () => {
    const seen = [];
    text(await peer.call('test_tool_with_progress', {}, { onprogress: (p) => seen.push(p) }));
    assert.deepEqual(seen.slice(0, 2).map((p) => [p.progress, p.total]), [[0, 100], [50, 100]]);
  });
  await check('cancels countdown, and the server knows', async () => {
    const listed = async (id) => new RegExp(`(^|\\D)${id}(\\D|$)`).test(text(await peer.call('cancelled_calls')));
    const next = (peer.lastCallId ?? 0) + 2;
    assert.equal(await listed(next), false, 'before');
    await cancelled((options) => peer.call('countdown', { from: 600, intervalMs: 100 }, options));
    assert.equal(peer.lastCallId, next);
    await until(`cancelled_calls lists ${next}`, () => listed(next));
  });
  await check('gets -32602 for a tool that there is not', async () => {
    assert.equal((await rejection(peer.call('no-such-tool'))).code, -32602);
  });
  await check('gets a prompt', async () => {
    const { messages } = await peer.prompt('test_prompt_with_arguments', { arg1: 'hello', arg2: 'world' });
    assert.equal(messages[0].content.text, "Prompt with arguments: arg1='hello', arg2='world'");
  });
  await check('reads a resource of a template', async () => {
    const [content] = (await peer.read('test://template/123/data')).contents;
    assert.equal(content.uri, 'test://template/123/data');
    assert.equal(JSON.parse(content.text).id, '123');
  });
  await check('completes an argument', async () => {
    const ref = { type: 'ref/prompt', name: 'test_prompt_with_arguments' };
    const { completion } = await peer.complete({ ref, argument: { name: 'arg1', value: 'test' } });
    assert.ok(Array.isArray(completion.values));
  });
  if (legacy) await check('pings', () => peer.client.ping());

  await questions(peer, check);
  await (legacy ? legacyLogging : modernLogging)(peer, check);
  await (legacy ? legacyChanges : modernChanges)(peer, check);
}

/** A handler asks once; how the question travels is the business of the edge. So both clients are asked by both kinds of tools. */
async function questions(peer, check) {
  const asks = (name, tool, args, method, answer) =>
    check(`answers ${name} of ${tool}`, async () => {
      peer.asked.length = 0;
      const result = text(await peer.call(tool, args));
      assert.deepEqual(peer.asked.map((question) => question.method), [method]);
      assert.ok(result.includes(answer), result);
    });
  const [elicitation, sampling] = ['elicitation/create', 'sampling/createMessage'];
  await asks('the elicitation', 'test_elicitation', { message: 'Who?' }, elicitation, 'ada');
  await asks('the elicitation', 'test_input_required_result_elicitation', {}, elicitation, 'Ada');
  await asks('the sampling', 'test_sampling', { prompt: 'capital of France?' }, sampling, 'Paris, says the model');
  await asks('the sampling', 'test_input_required_result_sampling', {}, sampling, 'Paris');
  await asks('the question for roots', 'test_input_required_result_list_roots', {}, 'roots/list', 'file:///srv/project');
  await check('answers three questions at once', async () => {
    peer.asked.length = 0;
    text(await peer.call('test_input_required_result_multiple_inputs'));
    assert.deepEqual(peer.asked.map((q) => q.method).sort(), [elicitation, 'roots/list', sampling]);
  });
  await check('answers the question of a prompt', async () => {
    peer.asked.length = 0;
    assert.ok((await peer.prompt('test_input_required_result_prompt')).messages.length > 0);
    assert.deepEqual(peer.asked.map((q) => q.method), [elicitation]);
  });
}

async function legacyLogging(peer, check) {
  const messages = async (level) => {
    await peer.client.setLoggingLevel(level);
    const before = peer.seen(MESSAGE).length;
    text(await peer.call('test_tool_with_logging'));
    await sleep(200); // they may come on another stream than the result
    const own = ({ params }) => String(params.data).startsWith('Tool '); // a server may log other things
    return peer.seen(MESSAGE).slice(before).filter(own).map(({ params }) => [params.level, params.data]);
  };
  await check('gets log messages from the level on that it set', async () => {
    const expected = ['Tool execution started', 'Tool processing data', 'Tool execution completed'];
    assert.deepEqual(await messages('debug'), expected.map((data) => ['info', data]));
    assert.deepEqual(await messages('error'), []);
  });
}

async function modernLogging(peer, check) {
  const messages = async (level) => {
    const before = peer.seen(MESSAGE).length;
    text(await peer.call('test_logging_tool', {}, level && { meta: { [LOG_LEVEL]: level } }));
    return peer.seen(MESSAGE).length - before;
  };
  await check('gets log messages for a request that asks for them', async () => {
    assert.equal(await messages(), 0, 'no level');
    assert.ok((await messages('debug')) > 0, 'debug');
    assert.equal(await messages('emergency'), 0, 'emergency');
  });
}

/** Runs `cause` and waits for one more of the notifications. */
async function brings(peer, method, cause) {
  const before = peer.seen(method).length;
  await cause();
  await until(method, () => peer.seen(method).length > before);
  return peer.seen(method).at(-1);
}

/** Runs `cause` and sees that none of the notifications follows. */
async function bringsNo(peer, method, cause) {
  const before = peer.seen(method).length;
  await cause();
  await sleep(400);
  assert.equal(peer.seen(method).length, before, `${method} came`);
}

const touch = (peer, uri = WATCHED) => async () => text(await peer.call('touch_resource', { uri }));
const changeTools = (peer) => async () => text(await peer.call('test_trigger_tool_change'));
const changePrompts = (peer) => async () => text(await peer.call('test_trigger_prompt_change'));

async function legacyChanges(peer, check) {
  await check('subscribes to a resource, and unsubscribes', async () => {
    await bringsNo(peer, UPDATED, touch(peer));
    await peer.client.subscribeResource({ uri: WATCHED });
    assert.equal((await brings(peer, UPDATED, touch(peer))).params.uri, WATCHED);
    await bringsNo(peer, UPDATED, touch(peer, 'test://static-text'));
    await peer.client.unsubscribeResource({ uri: WATCHED });
    await bringsNo(peer, UPDATED, touch(peer));
  });
  await check('hears of changed lists', async () => {
    await brings(peer, TOOLS_CHANGED, changeTools(peer));
    await brings(peer, PROMPTS_CHANGED, changePrompts(peer));
  });
}

async function modernChanges(peer, check) {
  await check('listens to a resource', async () => {
    await bringsNo(peer, UPDATED, touch(peer));
    const filter = { resourceSubscriptions: [WATCHED] };
    const listen = await peer.client.listen(filter, { timeout: 5_000 });
    assert.deepEqual(listen.honoredFilter, filter);
    assert.equal((await brings(peer, UPDATED, touch(peer))).params.uri, WATCHED);
    await bringsNo(peer, UPDATED, touch(peer, 'test://static-text'));
    await bringsNo(peer, TOOLS_CHANGED, changeTools(peer));
    await listen.close();
    await bringsNo(peer, UPDATED, touch(peer));
  });
  await check('listens to lists, two listens side by side', async () => {
    const tools = await peer.client.listen({ toolsListChanged: true }, { timeout: 5_000 });
    const prompts = await peer.client.listen({ promptsListChanged: true }, { timeout: 5_000 });
    await brings(peer, TOOLS_CHANGED, changeTools(peer));
    await brings(peer, PROMPTS_CHANGED, changePrompts(peer));
    await tools.close();
    await bringsNo(peer, TOOLS_CHANGED, changeTools(peer));
    await brings(peer, PROMPTS_CHANGED, changePrompts(peer));
    await prompts.close();
  });
}

async function connect(Era, prefix, target) {
  return checks.check(`${prefix} is negotiated`, async () => {
    const peer = await Era.connect(target);
    assert.equal(peer.revision, Era.revision);
    return peer;
  }, 60_000);
}

// A server for each client: cancelled_calls lists ids, and both clients count theirs from 0.
for (const Era of ERAS) {
  const prefix = `http ${Era.revision}`;
  const failures = checks.failed;
  const server = await checks.check(`${prefix} dateline demo starts`, () => start(dateline, ['demo', '--listen', '127.0.0.1:0']));
  if (!server) continue;
  const peer = await connect(Era, prefix, { url: server.url });
  if (peer) {
    await use(peer, prefix);
    const listen = Era.revision !== LEGACY && (await peer.client.listen({ toolsListChanged: true }).catch(() => undefined));
    await checks.check(`${prefix} dateline demo ends`, () => server.stop());
    if (listen) {
      // With notifications/cancelled, and then a result. The client calls the first 'remote', as it calls a cut stream, and
      // reads no further; so it is asked what it got.
      await checks.check(`${prefix} its listen was ended with a word`, async () => {
        await listen.closed;
        assert.ok(peer.received.some((m) => m.method === 'notifications/cancelled' || (m.result && `${m.id}`.startsWith('listen'))));
      });
    }
    await peer.close().catch(() => {}); // there is nobody to tell that the session ends
  } else await server.stop();
  if (checks.failed > failures) console.log(`--- what dateline demo said last:\n${server.output().trimEnd().slice(-1500)}\n---`);
}

for (const Era of ERAS) {
  const prefix = `stdio ${Era.revision}`;
  const peer = await connect(Era, prefix, { command: dateline, args: ['demo', '--stdio'] });
  if (!peer) continue;
  await use(peer, prefix);
  await checks.check(`${prefix} closes`, () => peer.close());
}

checks.finish('demo');
