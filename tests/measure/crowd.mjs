// What clients can make the server hold, and what is left of it: the resident set at the start, at the peak and --wait
// seconds after, and what became of the clients.
//
//   node tests/measure/crowd.mjs [--dateline target/debug/dateline] [--only bodies,batch,…] [--wait 20]
//
// Linux only: it reads /proc.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: { dateline: { type: 'string', default: 'target/debug/dateline' }, only: { type: 'string' }, wait: { type: 'string', default: '20' } },
});
const MIB = 1 << 20;
const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

async function start(args = ['demo', '--listen', '127.0.0.1:0'], stdio = ['ignore', 'ignore', 'pipe']) {
  const server = spawn(values.dateline, args, { stdio });
  let at;
  if (!args.includes('--stdio')) {
    const [line] = await once(createInterface({ input: server.stderr }), 'line');
    const url = new URL(/http:\S+/.exec(line)[0]);
    at = { host: url.hostname, port: Number(url.port) };
  } else {
    server.stderr.resume();
    await pause(1);
  }
  const resident = () => Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))[1]) / 1024;
  const spent = () => {
    const [user, system] = readFileSync(`/proc/${server.pid}/stat`, 'utf8').split(') ')[1].split(' ').slice(11, 13);
    return (Number(user) + Number(system)) / 100;
  };
  return { server, at, resident, spent, peak: resident() };
}

function open(to) {
  const socket = connect(to.at);
  socket.said = '';
  socket.on('error', () => {}).on('data', (bytes) => { if (socket.said.length < 2000) socket.said += bytes; });
  return socket;
}

const head = (length, headers = '') =>
  `POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n${headers}Content-Length: ${length}\r\n\r\n`;

async function ask(to, message, headers = '') {
  const socket = open(to);
  const body = typeof message === 'string' ? message : JSON.stringify(message);
  socket.write(head(Buffer.byteLength(body), `Connection: close\r\n${headers}`) + body);
  await once(socket, 'close');
  return socket.said;
}

const initialize = (revision) => ({
  jsonrpc: '2.0', id: 1, method: 'initialize',
  params: { protocolVersion: revision, capabilities: {}, clientInfo: { name: 'measure', version: '1' } },
});
async function session(to, revision = '2025-11-25') {
  const id = /mcp-session-id: (\S+)/i.exec(await ask(to, initialize(revision)))[1];
  await ask(to, { jsonrpc: '2.0', method: 'notifications/initialized' }, `Mcp-Session-Id: ${id}\r\n`);
  return `Mcp-Session-Id: ${id}\r\n`;
}
const call = (id, bytes) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'echo', arguments: { message: 'x'.repeat(bytes) } } });
const statuses = (sockets) => {
  const count = {};
  for (const { said } of sockets) {
    const status = /^HTTP\/1.1 (\d+)/.exec(said)?.[1] ?? 'open or closed';
    count[status] = (count[status] ?? 0) + 1;
  }
  return JSON.stringify(count);
};

const scenes = {
  /** A hundred bodies of 16 MB, of which all but the end is sent. */
  async bodies(to) {
    const sockets = Array.from({ length: 100 }, () => open(to));
    for (const socket of sockets) {
      socket.write(head(16 * MIB));
      socket.write(Buffer.alloc(16 * MIB - 1, ' '));
      await pause(0.05);
    }
    await pause(2);
    const others = (await ask(to, initialize('2025-11-25'))).slice(9, 12);
    return { end: () => sockets.forEach((s) => s.destroy()), told: `${statuses(sockets)}, others get ${others}` };
  },
  /** Ten thousand half bodies. */
  async half(to) {
    const sockets = [];
    for (let at = 0; at < 10_000; at++) {
      const socket = open(to);
      socket.write(`${head(100_000)}{`);
      sockets.push(socket);
      if (at % 200 === 199) await pause(0.05);
    }
    await pause(2);
    const others = (await ask(to, initialize('2025-11-25'))).slice(9, 12);
    return { end: () => sockets.forEach((s) => s.destroy()), told: `${statuses(sockets)}, others get ${others}` };
  },
  /** A batch of 8 MB of {}. */
  async batch(to) {
    const id = await session(to, '2025-03-26');
    const said = await ask(to, `[${'{},'.repeat((8 * MIB) / 3)}{}]`, id);
    return { told: said.slice(9, 12) };
  },
  /** Ten thousand times initialize. */
  async initialize(to) {
    const used = await session(to);
    let refused = 0;
    for (let at = 0; at < 12_000; at += 50) {
      const said = await Promise.all(Array.from({ length: 50 }, () => ask(to, initialize('2025-11-25'))));
      refused += said.filter((s) => !s.startsWith('HTTP/1.1 200')).length;
    }
    const lives = (await ask(to, { jsonrpc: '2.0', id: 2, method: 'ping' }, used)).slice(9, 12);
    return { told: `${refused} of 12000 refused, a session that was used gets ${lives}` };
  },
  /** Answers of 8 MB in fifty sessions, whose clients leave before they come. */
  async kept(to) {
    for (let at = 0; at < 50; at++) {
      const id = await session(to);
      const socket = open(to);
      // Asked for by a stream only, it is kept for the client that was told an event's id.
      const body = JSON.stringify(call(1, 8 * MIB));
      socket.write(head(body.length, id).replace('application/json, text', 'text') + body);
      await once(socket, 'data');
      socket.destroy();
    }
    return { told: '' };
  },
  /** Fifty clients that ask for 8 MB each and read nothing. */
  async unread(to) {
    const sockets = [];
    for (let at = 0; at < 50; at++) {
      const id = await session(to);
      const socket = connect(to.at).on('error', () => {}).pause();
      socket.said = '';
      const body = JSON.stringify(call(1, 8 * MIB));
      socket.write(head(body.length, id) + body);
      sockets.push(socket);
      await pause(0.1);
    }
    await pause(2);
    return { end: () => sockets.forEach((s) => s.destroy()), told: '' };
  },
  /** A client on standard streams that asks for pings and long echoes for five seconds, and reads nothing. */
  async pipe(to) {
    let sent = 0;
    const line = `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })}\n`.repeat(1000);
    const until = Date.now() + 5000;
    while (Date.now() < until) {
      if (to.server.stdin.write(line)) sent += 1000;
      else await Promise.race([once(to.server.stdin, 'drain'), pause(0.5)]);
      if (to.server.stdin.writableLength > 8 * MIB) break;
    }
    return { told: `${sent} lines were taken` };
  },
};

for (const [name, scene] of Object.entries(scenes)) {
  if (values.only && !values.only.split(',').includes(name)) continue;
  const to = name === 'pipe' ? await start(['demo', '--stdio'], ['pipe', 'pipe', 'pipe']) : await start();
  if (name !== 'pipe') await ask(to, initialize('2025-11-25'));
  const before = to.resident();
  const watching = setInterval(() => { to.peak = Math.max(to.peak, to.resident()); }, 20);
  const began = Date.now();
  const { end = () => {}, told } = await scene(to);
  const took = (Date.now() - began) / 1000;
  const spent = to.spent();
  to.peak = Math.max(to.peak, to.resident());
  clearInterval(watching);
  end();
  await pause(Number(values.wait));
  const files = () => readdirSync(`/proc/${to.server.pid}/fd`).length;
  const mib = (n) => `${n.toFixed(0).padStart(5)} MiB`;
  console.log(`${name.padEnd(11)} start ${mib(before)}  peak ${mib(to.peak)}  after ${mib(to.resident())}  ${took.toFixed(1)} s, ${spent.toFixed(1)} s of a core  ${files()} files  ${told}`);
  to.server.kill('SIGKILL');
}
