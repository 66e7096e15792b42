// Who is compared: how each is started, and what it lacks.

import { mkdirSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';

import { NODE, paths } from './install.mjs';

/** The process that stands behind every gateway. */
export const BEHIND = 'echo-dateline';

/** The server that stands behind every gateway, over standard streams. */
const echo = [paths[BEHIND]];

/** How a server is started: its command, where it serves, and which processes of it are not counted. */
const served = (port, command, more = {}) => ({ command, address: `127.0.0.1:${port}`, path: '/mcp', env: {}, tools: {}, ...more });

const era = (only) => (only ? ['--era', only] : []);

/** Servers with the same tools. `lacks` has the reason why one is left out, by what a workload needs. */
export const servers = {
  bare: {
    title: 'bare hyper',
    http: (port) => served(port, [paths.bare, '--listen', `127.0.0.1:${port}`]),
    lacks: {
      stdio: 'it is hyper, for HTTP',
      session: 'it keeps no sessions',
      stream: 'it sends no events',
      list: 'it has no tools to list',
      listen: 'it has no subscriptions',
    },
  },
  dateline: {
    title: 'dateline',
    http: (port, { tools = 3, only } = {}) =>
      served(port, [...echo, '--listen', `127.0.0.1:${port}`, '--tools', String(tools), ...era(only)]),
    stdio: () => echo,
    lacks: {},
  },
  rmcp: {
    title: 'rmcp',
    http: (port, { tools = 3 } = {}) =>
      served(port, [paths['echo-rmcp'], '--listen', `127.0.0.1:${port}`, '--tools', String(tools)]),
    stdio: () => [paths['echo-rmcp']],
    lacks: {},
  },
  typescript: {
    title: 'TypeScript SDK',
    http: (port, { tools = 3, sessions = false } = {}) =>
      served(port, [NODE(), paths['echo.mjs'], '--listen', String(port), '--tools', String(tools), ...(sessions ? ['--sessions'] : [])]),
    stdio: () => [NODE(), paths['echo.mjs'], '--stdio'],
    lacks: {},
  },
};

/** Writes a file of settings for a contender; gives its path. */
function settings(folder, name, text) {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, name);
  writeFileSync(file, text, { mode: 0o600 });
  return file;
}

/** nginx as a proxy that keeps its connections and writes no file for a body. */
function nginx(port, folder, { address }) {
  const { username, uid } = userInfo();
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`);
  const file = settings(folder, 'nginx.conf', `
${uid === 0 ? `user ${username};` : ''}
worker_processes auto;
daemon off;
pid ${folder}/nginx.pid;
error_log stderr crit;
events { worker_connections 4096; }
http {
  access_log off;
  ${temporary.join(' ')}
  client_max_body_size 16m;
  client_body_buffer_size 2m;
  proxy_buffers 16 128k;
  upstream echo { server ${address}; keepalive 128; keepalive_requests 1000000000; }
  keepalive_requests 1000000000;
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://echo;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host localhost;
    }
  }
}
`);
  return served(port, ['nginx', '-p', folder, '-c', file, '-e', 'stderr']);
}

function dateline(port, folder, { address, path, command }) {
  const behind = command ? { command: command[0], args: command.slice(1) } : { url: `http://${address}${path}` };
  const file = settings(folder, 'dateline.json', JSON.stringify({ mcpServers: { echo: behind } }));
  return served(port, [paths.dateline, 'serve', '--config', file, '--listen', `127.0.0.1:${port}`]);
}

function crateMcpProxy(port, folder, { address, path, command }) {
  const text = JSON.stringify;
  const behind = command
    ? `transport = "stdio"\ncommand = ${text(command[0])}\nargs = ${text(command.slice(1))}`
    : `transport = "http"\nurl = ${text(`http://${address}${path}`)}`;
  const file = settings(folder, 'mcp-proxy.toml', `
[proxy]
name = "proxy"
[proxy.listen]
host = "127.0.0.1"
port = ${port}
[observability]
log_level = "error"
[[backends]]
name = "echo"
${behind}
`);
  // It puts the server's name before the tool's.
  return served(port, [paths['crate-mcp-proxy'], '--config', file], { path: '/', tools: { echo: 'echo/echo' } });
}

/** Gateways, before a server on HTTP or on standard streams. */
export const gateways = {
  direct: {
    title: 'none',
    lacks: { stdio: 'nothing translates', across: 'nothing translates' },
  },
  nginx: {
    title: 'nginx',
    front: nginx,
    lacks: { stdio: 'it starts no programs', across: 'it does not translate' },
  },
  dateline: { title: 'dateline', front: dateline, lacks: {} },
  'crate-mcp-proxy': {
    title: 'mcp-proxy (crates.io)',
    front: crateMcpProxy,
    // What a workload is called whose server takes no handshake.
    lacks: Object.fromEntries(['gateway-modern', 'gateway-1m', 'gateway-up'].map((name) => [name, 'it opens a server on HTTP by a handshake only'])),
  },
  'npm-mcp-proxy': {
    title: 'mcp-proxy (npm)',
    front: (port, folder, { command }) =>
      served(port, [NODE(), paths['npm-mcp-proxy'], '--host', '127.0.0.1', '--port', String(port), '--server', 'stream', '--upstreamProtocol', 'auto', '--', ...command]),
    lacks: { http: 'it stands before programs only' },
  },
  supergateway: {
    title: 'supergateway (npm)',
    front: (port, folder, { command }) =>
      served(port, [NODE(), paths.supergateway, '--stdio', command.join(' '), '--outputTransport', 'streamableHttp', '--stateful', '--port', String(port), '--logLevel', 'none']),
    lacks: { http: 'it serves no HTTP before HTTP' },
  },
  'pypi-mcp-proxy': {
    title: 'mcp-proxy (PyPI)',
    front: (port, folder, { command }) =>
      served(port, [paths['pypi-mcp-proxy'], '--host', '127.0.0.1', '--port', String(port), '--log-level', 'ERROR', '--', ...command], { path: '/mcp' }),
    lacks: { http: 'it serves no HTTP before HTTP', modern: 'it does not serve 2026-07-28' },
  },
  fastmcp: {
    title: 'FastMCP (PyPI)',
    front: (port, folder, { address, path, command }) =>
      served(port, [paths.fastmcp, paths['proxy.py'], String(port), ...(command ?? [`http://${address}${path}`])], { path: '/mcp' }),
    lacks: {},
  },
};

/** All names, in the order in which they are shown. */
export const names = [...new Set([...Object.keys(servers), ...Object.keys(gateways)])];
