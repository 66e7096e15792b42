// The official clients of both eras behind one small interface, so that one list of checks does for all: the TypeScript SDKs,
// the Python SDKs, each in a process of its own, and the Inspector's command line, a process for each request.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Client as ModernClient, StreamableHTTPClientTransport as ModernHttp } from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernStdio } from '@modelcontextprotocol/client/stdio';
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as LegacyStdio } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as LegacyHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema } from '@modelcontextprotocol/sdk/types.js';

import { node22 } from '../node22.mjs';
import { INSPECTOR, PYTHON } from './config.mjs';
import { own, within } from './harness.mjs';

export const LEGACY = '2025-11-25';
export const MODERN = '2026-07-28';

export const INFO = { name: 'dateline-test', version: '1.0.0' };
export const CAPABILITIES = { elicitation: {}, sampling: {}, roots: {} };
export const CALL_MS = 15_000;
const CONNECT_MS = 30_000;
const HERE = dirname(fileURLToPath(import.meta.url));

/** The answers to the fields of a form: those that have a name we know, and those that it requires. */
function fill({ properties = {}, required = [] } = {}) {
  const known = { name: 'Ada', username: 'ada', email: 'ada@example.com' };
  const byType = { string: 'ada', boolean: true, number: 1, integer: 1 };
  const fields = Object.keys(properties).filter((field) => field in known || required.includes(field));
  return Object.fromEntries(fields.map((field) => [field, known[field] ?? byType[properties[field].type]]));
}

/** What a client answers when it is asked; `asked` keeps the questions. */
export function answers(asked) {
  const answer = (method, result) => [method, async (request) => (asked.push({ method, params: request.params }), result(request))];
  return new Map([
    answer('elicitation/create', ({ params }) => ({ action: 'accept', content: fill(params.requestedSchema) })),
    answer('sampling/createMessage', () => ({
      model: 'test-model',
      role: 'assistant',
      stopReason: 'endTurn',
      content: { type: 'text', text: 'Paris, says the model' },
    })),
    answer('roots/list', () => ({ roots: [{ uri: 'file:///srv/project', name: 'project' }] })),
  ]);
}

/** The part that both SDKs of TypeScript have in common. `target` is { url } or { command, args }. */
export class Peer {
  asked = [];
  notifications = [];
  received = [];
  lastCallId;

  constructor(client, transport) {
    Object.assign(this, { client, transport });
    client.fallbackNotificationHandler = async (notification) => void this.notifications.push(notification);
    const send = transport.send.bind(transport);
    transport.send = (message, options) => {
      if (message.method === 'tools/call') this.lastCallId = message.id;
      return send(message, options);
    };
    transport.stderr?.on('data', (chunk) => (this.stderr = ((this.stderr ?? '') + chunk).slice(-4000)));
  }

  async connect() {
    try {
      await this.client.connect(this.transport, { timeout: CONNECT_MS });
    } catch (error) {
      throw new Error(`${error.message} ${this.stderr ?? ''}`);
    }
    // For what the client itself does not tell.
    const receive = this.transport.onmessage;
    this.transport.onmessage = (message, extra) => (this.received.push(message), receive(message, extra));
    return this;
  }

  tools = async () => (await this.client.listTools()).tools;
  prompt = (name, args = {}) => this.client.getPrompt({ name, arguments: args }, { timeout: CALL_MS });
  resources = async () => (await this.client.listResources()).resources;
  templates = async () => (await this.client.listResourceTemplates()).resourceTemplates;
  read = (uri) => this.client.readResource({ uri }, { timeout: CALL_MS });
  complete = (params) => this.client.complete(params, { timeout: CALL_MS });
  seen = (method) => this.notifications.filter((n) => n.method === method);

  async close() {
    await this.transport.terminateSession?.();
    const began = Date.now();
    await this.client.close();
    // On a pipe both clients end the input, and after two seconds they kill.
    if (Date.now() - began > 1_900) throw new Error('it did not end with its input, and was killed');
  }
}

class LegacyPeer extends Peer {
  static title = 'typescript 1.32';
  static revision = LEGACY;

  static async connect(target) {
    const transport = target.url ? new LegacyHttp(new URL(target.url)) : new LegacyStdio({ ...target, stderr: 'pipe' });
    const peer = new LegacyPeer(new LegacyClient(INFO, { capabilities: CAPABILITIES }), transport);
    // 1.x tells the revision to the transport only.
    const tell = transport.setProtocolVersion?.bind(transport);
    transport.setProtocolVersion = (revision) => (tell?.(revision), (peer.revision = revision));
    const handlers = answers(peer.asked);
    for (const schema of [ElicitRequestSchema, CreateMessageRequestSchema, ListRootsRequestSchema]) {
      peer.client.setRequestHandler(schema, handlers.get(schema.shape.method.value));
    }
    return peer.connect();
  }

  call = (name, args = {}, { meta, ...options } = {}) =>
    this.client.callTool({ name, arguments: args, _meta: meta }, undefined, { timeout: CALL_MS, ...options });
}

class ModernPeer extends Peer {
  static title = 'typescript 2.4';
  static revision = MODERN;

  static async connect(target) {
    const transport = target.url ? new ModernHttp(new URL(target.url)) : new ModernStdio({ ...target, stderr: 'pipe' });
    // Only a pin holds the client to the era. Any other value of `mode` but 'legacy' means: probe, and fall back to initialize.
    const options = { capabilities: CAPABILITIES, versionNegotiation: { mode: { pin: MODERN } } };
    const peer = new ModernPeer(new ModernClient(INFO, options), transport);
    for (const [method, handler] of answers(peer.asked)) peer.client.setRequestHandler(method, handler);
    await peer.connect();
    peer.revision = peer.client.getNegotiatedProtocolVersion();
    return peer;
  }

  call = (name, args = {}, { meta, ...options } = {}) =>
    this.client.callTool({ name, arguments: args, ...(meta && { _meta: meta }) }, { timeout: CALL_MS, ...options });
}

export const ERAS = [LegacyPeer, ModernPeer];

/** The Python SDKs, driven by lines of JSON; client_lines.py tells of which form. */
export class PythonPeer {
  asked = [];
  notifications = [];
  problems = [];
  #waiting = new Map();
  #last = 0;
  #stderr = '';
  #over;

  static connect({ url, env }, generation) {
    return this.start(PYTHON[generation], [`client_${generation}.py`, url], env);
  }

  /** Starts one of the scripts here, with its arguments, and waits until it is connected. */
  static async start(python, [script, ...args], env) {
    const peer = new this();
    peer.child = own(spawn(python, [join(HERE, script), ...args], { env: { ...env, PYTHONUTF8: '1', PYTHONDONTWRITEBYTECODE: '1' } }));
    peer.child.stderr.on('data', (chunk) => (peer.#stderr = (peer.#stderr + chunk).slice(-4000)));
    peer.child.stdin.on('error', () => {}); // it ended, and is reported as that
    peer.ended = once(peer.child, 'exit').then(([code, signal]) => {
      peer.#over = new Error(`the client ended with ${code ?? signal}: ${peer.#stderr}`);
      for (const { reject } of peer.#waiting.values()) reject(peer.#over);
      return code;
    });
    const first = new Promise((resolve, reject) => peer.#waiting.set(undefined, { resolve, reject }));
    createInterface({ input: peer.child.stdout }).on('line', (line) => peer.#line(JSON.parse(line)));
    return Object.assign(peer, await within(CONNECT_MS, first, 'the client did not connect'));
  }

  async #line(line) {
    if (line.ask) {
      const { method, params } = line;
      const [, answer] = [...answers(this.asked)].find(([name]) => name === method);
      return this.#send({ ask: line.ask, result: await answer({ method, params }) });
    }
    if (line.progress) return this.#waiting.get(line.progress)?.onprogress?.(line.params);
    if (line.notification) return this.notifications.push(line.notification);
    if (line.problem) return this.problems.push(new Error(line.problem));
    const waiting = this.#waiting.get(line.id);
    this.#waiting.delete(line.id);
    if (line.id === undefined) return waiting.resolve(line);
    if (line.error) waiting.reject(Object.assign(new Error(line.error.message), { code: line.error.code }));
    else waiting.resolve(line.result);
  }

  #send = (line) => this.child.stdin.write(`${JSON.stringify(line)}\n`);

  async request(method, params = {}, onprogress) {
    if (this.#over) throw this.#over;
    const id = (this.#last += 1);
    const answer = new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject, onprogress }));
    this.#send({ id, method, params });
    return within(CALL_MS, answer, `no answer to ${method}`);
  }

  tools = async () => (await this.request('tools')).tools;
  call = (name, args = {}, { onprogress } = {}) => this.request('call', { name, arguments: args }, onprogress);
  prompt = (name, args = {}) => this.request('prompt', { name, arguments: args });
  resources = async () => (await this.request('resources')).resources;
  templates = async () => (await this.request('templates')).resourceTemplates;
  read = (uri) => this.request('read', { uri });

  async close() {
    this.child.stdin.end();
    try {
      const code = await within(15_000, this.ended, 'the client did not end with its input');
      if (code !== 0 || this.#stderr) throw new Error(`it ended with ${code}: ${this.#stderr}`);
    } finally {
      this.child.kill('SIGKILL');
    }
  }
}

class PythonLegacyPeer extends PythonPeer {
  static title = 'python 1.30';
  static revision = LEGACY;
  static connect = (target) => super.connect(target, 'legacy');
}

class PythonModernPeer extends PythonPeer {
  static title = 'python 2.3';
  static revision = MODERN;
  static connect = (target) => super.connect(target, 'modern');
}

/** The Inspector's command line. It keeps nothing between two requests, so that each is also a negotiation. */
class InspectorPeer {
  asked = [];

  static async connect({ url, env }, era) {
    const peer = Object.assign(new this(), { url, env, era });
    peer.revision = (await peer.#request('initialize')).protocolVersion;
    return peer;
  }

  async #request(method, ...args) {
    const options = ['--protocol-era', this.era, '--format', 'json', '--quiet', '--method', method, ...args];
    const limits = { timeout: CALL_MS, killSignal: 'SIGKILL', maxBuffer: 2 ** 26 };
    const run = promisify(execFile)(node22(), [INSPECTOR, '--cli', this.url, ...options], { env: this.env, ...limits });
    own(run.child).stdin.end();
    try {
      return JSON.parse((await run).stdout).result;
    } catch (error) {
      throw new Error(error.stderr || error.message);
    }
  }

  tools = async () => (await this.#request('tools/list')).tools;
  call = (name, args = {}) => this.#request('tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(args));
  prompt = (name, args = {}) =>
    this.#request('prompts/get', '--prompt-name', name, '--prompt-args', ...Object.entries(args).map((pair) => pair.join('=')));
  resources = async () => (await this.#request('resources/list')).resources;
  templates = async () => (await this.#request('resources/templates/list')).resourceTemplates;
  read = (uri) => this.#request('resources/read', '--uri', uri);
  close = async () => {};
}

class InspectorLegacyPeer extends InspectorPeer {
  static title = 'inspector 2.12';
  static revision = LEGACY;
  static connect = (target) => super.connect(target, 'legacy');
}

class InspectorModernPeer extends InspectorPeer {
  static title = 'inspector 2.12';
  static revision = MODERN;
  static connect = (target) => super.connect(target, 'modern');
}

/** Those that are not the SDKs of TypeScript. They speak HTTP here. */
export const OTHERS = [PythonLegacyPeer, PythonModernPeer, InspectorLegacyPeer, InspectorModernPeer];
