// The server of the benchmark by the TypeScript SDK, as its documentation shows it: `echo`, `steps` that reports progress first,
// `change` that tells that the list of tools changed, and as many further tools as asked for.
//
//   node echo.mjs --listen PORT [--tools 3] [--sessions]
//   node echo.mjs --stdio

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';

import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer, createMcpHandler } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const { values } = parseArgs({
  options: {
    listen: { type: 'string' },
    stdio: { type: 'boolean', default: false },
    tools: { type: 'string', default: '3' },
    // Clients of the revisions before 2026-07-28 get sessions. The SDK has them in a transport of their own.
    sessions: { type: 'boolean', default: false },
  },
});

let handler;
const inputSchema = z.object({ text: z.string().describe('What comes back') });
const text = (text) => ({ content: [{ type: 'text', text }] });

/** The SDK wants a server for each request, or for each session. */
function server() {
  const server = new McpServer({ name: 'echo', version: '1.0.0' });
  server.registerTool('echo', { description: 'Gives the text back', inputSchema }, (args) => text(args.text));
  server.registerTool('steps', { description: 'Reports progress and gives the text back', inputSchema }, async (args, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    if (progressToken !== undefined) {
      await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: 1, total: 2 } });
    }
    return text(args.text);
  });
  server.registerTool('change', { description: 'Tells that the list of tools changed', inputSchema }, (args) => {
    handler?.notify.toolsChanged();
    return text(args.text);
  });
  for (let at = 3; at < Number(values.tools); at++) {
    server.registerTool(`echo_${at}`, { description: 'Gives the text back', inputSchema }, (args) => text(args.text));
  }
  return server;
}

/** Sessions, each with a server and a transport of its own. */
function sessions() {
  const open = new Map();
  return async (request, response) => {
    let transport = open.get(request.headers['mcp-session-id']);
    if (!transport) {
      transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => open.set(id, transport),
      });
      await server().connect(transport);
    }
    await transport.handleRequest(request, response);
  };
}

if (values.stdio) {
  serveStdio(server);
} else {
  handler = createMcpHandler(server);
  const listening = createServer(values.sessions ? sessions() : toNodeHandler(handler));
  listening.listen(Number(values.listen), '127.0.0.1', () => {
    console.error(`serving http://127.0.0.1:${listening.address().port}/mcp`);
  });
}
