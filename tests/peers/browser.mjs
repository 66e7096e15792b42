// A page of another origin, in a real browser, that speaks to the demo with fetch and EventSource alone: what it shows is what
// the browser let it read.
//
//   node browser.mjs --dateline PATH_TO_BINARY
//
// Needs Chromium in the PATH (Debian: apt install chromium), or in $CHROMIUM. Prints a line for each check and, last,
// `browser: N passed, N failed`. Exit code 1 when one failed.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { chromium } from 'playwright-core';

import { MODERN } from './clients.mjs';
import { Checks, datelineOption, endAllAtExit, start } from './harness.mjs';

const SHOWN_MS = 10_000;
const WATCHED = 'test://watched-resource';
const UPDATED = `notifications/resources/updated: ${WATCHED}`;
/** Nothing leaves this machine, and nothing is asked of a server elsewhere. */
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

const dateline = datelineOption();
endAllAtExit();
const checks = new Checks();
const html = readFileSync(new URL('page.html', import.meta.url));

/** Serves the page at an origin of its own; under /sandboxed the browser gives it none. */
async function site() {
  const listener = createServer((request, response) => {
    const sandbox = request.url.startsWith('/sandboxed') && { 'content-security-policy': 'sandbox allow-scripts' };
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', ...sandbox }).end(html);
  });
  listener.unref();
  await new Promise((resolve, reject) => listener.on('error', reject).listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${listener.address().port}`;
}

function executable() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  try {
    return execFileSync('which', ['chromium'], { encoding: 'utf8' }).trim();
  } catch {
    throw new Error('there is no chromium in the PATH (Debian: apt install chromium); $CHROMIUM can name another one');
  }
}

/** Another client, which no browser knows of: tells whoever watches that the resource changed. */
async function touch(url) {
  const key = (name) => `io.modelcontextprotocol/${name}`;
  const _meta = { [key('protocolVersion')]: MODERN, [key('clientCapabilities')]: {} };
  const params = { name: 'touch_resource', arguments: { uri: WATCHED }, _meta };
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': MODERN,
      'mcp-method': 'tools/call',
      'mcp-name': 'touch_resource',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
  });
  assert.equal(response.status, 200, await response.text());
}

/** Opens the page at a path of a site, with an endpoint to speak to. */
async function open(browser, place, as, revision, endpoint) {
  const page = await browser.newPage();
  page.setDefaultTimeout(SHOWN_MS);
  await page.goto(`${place}?${new URLSearchParams({ as, revision, endpoint })}`);
  const lines = () => page.locator('#shown li').allTextContents();
  return {
    lines,
    close: () => page.close(),
    /** What the page shows from `what` on, once it does. Where it shows an error instead, that is ours too. */
    async shows(what) {
      const line = page.locator('#shown li').filter({ hasText: new RegExp(`^(error|${what}): `) });
      await line.first().waitFor().catch(async () => assert.fail(`no "${what}" in ${JSON.stringify(await lines())}`));
      const [first] = await line.allTextContents();
      assert.ok(first.startsWith(`${what}: `), first);
      return first.slice(what.length + 2);
    },
  };
}

/** One check for each thing that the page shows. */
async function watch(prefix, page, expected) {
  for (const [what, wanted] of expected) {
    await checks.check(`${prefix} shows: ${what}`, async () => {
      const shown = await page.shows(what);
      if (typeof wanted === 'function') assert.ok(wanted(shown), shown);
      else assert.equal(shown, wanted);
    });
  }
}

const hasTools = (shown) => ['add', 'echo', 'countdown', 'query_region'].every((tool) => shown.split(' ').includes(tool));
const sum = (shown) => JSON.parse(shown).sum === 42;
const saysAda = (shown) => /ada/i.test(shown);

async function modern(browser, origin, server) {
  const prefix = `modern ${MODERN}: the page`;
  const page = await open(browser, `${origin}/`, 'modern', MODERN, server.url);
  await watch(prefix, page, [
    ['tools', hasTools],
    ['sum', sum],
    ['mirrored', 'eu: who?'],
    ['asked', saysAda],
    ['refused', '404 -32601'],
    ['notifications/subscriptions/acknowledged', ''],
  ]);
  await checks.check(`${prefix} shows what another client changes`, async () => {
    assert.ok(!(await page.lines()).includes(UPDATED), 'nothing had changed');
    await touch(server.url);
    assert.equal(await page.shows('notifications/resources/updated'), WATCHED);
  });
  return page;
}

async function session(browser, origin, server, revision) {
  const prefix = `session ${revision}: the page`;
  const page = await open(browser, `${origin}/`, 'session', revision, server.url);
  const asks = revision !== '2025-03-26';
  await watch(prefix, page, [
    ['negotiated', revision],
    ['tools', hasTools],
    ['sum', sum],
    ...(asks ? [['question', (shown) => shown.length > 0], ['asked', saysAda]] : []),
    ['refused', (shown) => shown.endsWith(' -32601')],
    ['listening', '200'],
  ]);
  await checks.check(`${prefix} shows what another client changes`, async () => {
    assert.ok(!(await page.lines()).includes(UPDATED), 'nothing had changed');
    await touch(server.url);
    assert.equal(await page.shows('notifications/resources/updated'), WATCHED);
  });
  await watch(prefix, page, [
    ['came back', '200'],
    ['the session ended', '200'],
    ['gone', (shown) => shown.startsWith('404 ')],
  ]);
  await page.close();
}

/** Streams of one URL, none of which may wait for another in the browser's cache. */
async function sideBySide(browser, origin, server) {
  const pages = [];
  for (const which of ['one', 'another', 'a third']) {
    await checks.check(`${which} page listens at once`, async () => {
      const page = await open(browser, `${origin}/`, 'session', '2025-11-25', server.url);
      pages.push(page);
      assert.equal(await page.shows('listening'), '200');
    }, 5_000);
  }
  await checks.check('each of them shows what another client changes', async () => {
    await touch(server.url);
    for (const page of pages) assert.equal(await page.shows('notifications/resources/updated'), WATCHED);
    for (const page of pages) assert.equal(await page.shows('the session ended'), '200');
  });
  for (const page of pages) await page.close();
}

async function eventSource(browser, origin, server) {
  const prefix = 'HTTP+SSE 2024-11-05: the page';
  const page = await open(browser, `${origin}/`, 'eventSource', '2024-11-05', new URL('/sse', server.url).href);
  await watch(prefix, page, [
    ['negotiated', '2024-11-05'],
    ['tools', hasTools],
    ['sum', sum],
    ['listening', '200'],
  ]);
  await checks.check(`${prefix} shows what another client changes`, async () => {
    await touch(server.url);
    assert.equal(await page.shows('notifications/resources/updated'), WATCHED);
  });
  await page.close();
}

/** A page that nobody let in shows one error, and nothing else. */
async function foreign(browser, place, server, what) {
  const sse = new URL('/sse', server.url).href;
  for (const [as, revision, endpoint] of [
    ['modern', MODERN, server.url],
    ['session', '2025-11-25', server.url],
    ['eventSource', '2024-11-05', sse],
  ]) {
    await checks.check(`${what} gets nothing, ${as}`, async () => {
      const page = await open(browser, place, as, revision, endpoint);
      assert.match(await page.shows('error'), /^TypeError /);
      assert.equal((await page.lines()).length, 1, JSON.stringify(await page.lines()));
      await page.close();
    });
  }
}

const [origin, other] = await Promise.all([site(), site()]);
const server = await checks.check('dateline demo starts', () =>
  start(dateline, ['demo', '--listen', '127.0.0.1:0', '--allow-origin', origin]));
const browser = await checks.check('a browser starts', () => chromium.launch({ executablePath: executable(), args: FLAGS }));
if (server && browser) {
  const listening = await modern(browser, origin, server);
  for (const revision of ['2025-03-26', '2025-06-18', '2025-11-25']) await session(browser, origin, server, revision);
  await sideBySide(browser, origin, server);
  await eventSource(browser, origin, server);
  await foreign(browser, `${other}/`, server, 'a page of another origin');
  await foreign(browser, `${origin}/sandboxed`, server, 'a page in a sandbox');
  await checks.check('dateline demo ends', () => server.stop());
  await watch('the page', listening, [
    ['the listen ended', ''],
    ['the stream ended', ''],
  ]);
}
await checks.check('the browser ends', async () => void (await browser?.close()));
checks.finish('browser');
