// The official clients of both eras behind one small interface, so that one list of checks does for both.

import { Client as ModernClient, StreamableHTTPClientTransport as ModernHttp } from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernStdio } from '@modelcontextprotocol/client/stdio';
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as LegacyStdio } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as LegacyHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema } from '@modelcontextprotocol/sdk/types.js';

export const LEGACY = '2025-11-25';
export const MODERN = '2026-07-28';

const INFO = { name: 'dateline-test', version: '1.0.0' };
const CAPABILITIES = { elicitation: {}, sampling: {}, roots: {} };
const CALL_MS = 15_000;
const CONNECT_MS = 30_000;

/** The answers to the fields of a form: those that have a name we know, and those that it requires. */
function fill({ properties = {}, required = [] } = {}) {
  const known = { name: 'Ada', username: 'ada', email: 'ada@example.com' };
  const byType = { string: 'ada', boolean: true, number: 1, integer: 1 };
  const fields = Object.keys(properties).filter((field) => field in known || required.includes(field));
  return Object.fromEntries(fields.map((field) => [field, known[field] ?? byType[properties[field].type]]));
}

/** What a client answers when it is asked; `asked` keeps the questions. */
function answers(asked) {
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

/** The part that both have in common. `target` is { url } or { command, args }. */
class Peer {
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
