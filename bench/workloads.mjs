// What is measured: each workload has points, which are measured one after the other with one start of a contender.

import { BEHIND, gateways, servers } from './contenders.mjs';

const KIB = 1024;
const MIB = 1024 * KIB;
const CONNECTIONS = [1, 16, 64];

const echo = (bytes, progress = false) => ({ method: 'call', tool: progress ? 'steps' : 'echo', bytes, progress });
const connections = (all, ask, era) =>
  all.map((connections) => ({ label: `${connections}`, job: { kind: 'calls', era, ask, connections } }));

/** A workload of servers on HTTP. */
const serving = (name, title, { era = 'modern', ask, needs = [], all = CONNECTIONS, start = {} }) =>
  ({ name, title, of: 'servers', column: 'connections', needs, start, points: connections(all, ask, era) });

/** A workload of gateways; `only` is the era of the server on HTTP behind them, `stdio` has a program there instead. */
const passing = (name, title, { era = 'modern', ask = echo(100), needs = [], all = CONNECTIONS, only, stdio = false }) =>
  ({ name, title, of: 'gateways', column: 'connections', needs: [era, stdio ? 'stdio' : 'http', ...needs], only, stdio, points: connections(all, ask, era) });

export const workloads = [
  serving('call-100', 'tools/call with 100 bytes, 2026-07-28, answered by JSON', { ask: echo(100) }),
  serving('call-10k', 'tools/call with 10 KiB, 2026-07-28, answered by JSON', { ask: echo(10 * KIB) }),
  serving('call-1m', 'tools/call with 1 MiB, 2026-07-28, answered by JSON', { ask: echo(MIB) }),
  serving('session', 'tools/call with 100 bytes in a session of 2025-11-25 for each connection', {
    era: 'legacy', ask: echo(100), needs: ['session'], start: { sessions: true },
  }),
  serving('stream', 'tools/call that reports progress, 2026-07-28, answered by an event stream', { ask: echo(100, true), needs: ['stream'] }),
  {
    name: 'stdio', title: 'tools/call with 100 bytes, 2026-07-28, on standard streams', of: 'servers', column: 'in flight', needs: ['stdio'],
    points: [1, 16].map((inFlight) => ({ label: `${inFlight}`, job: { kind: 'pipe', ask: echo(100), inFlight } })),
  },
  serving('list-10', 'tools/list with 10 tools', { ask: { method: 'list', tools: 10 }, needs: ['list'], all: [1, 16], start: { tools: 10 } }),
  serving('list-1000', 'tools/list with 1,000 tools', { ask: { method: 'list', tools: 1000 }, needs: ['list'], all: [1, 16], start: { tools: 1000 } }),
  passing('gateway-modern', 'Gateway, 2026-07-28 to the same: HTTP before HTTP, 100 bytes', { only: 'modern' }),
  passing('gateway-1m', 'Gateway, 2026-07-28 to the same: HTTP before HTTP, 1 MiB', { only: 'modern', ask: echo(MIB), all: [1, 16] }),
  passing('gateway-legacy', 'Gateway, 2025-11-25 to the same: HTTP before HTTP, 100 bytes', { era: 'legacy', only: 'legacy', all: [1, 16] }),
  passing('gateway-up', 'Gateway, clients of 2025-11-25 to a server of 2026-07-28: HTTP before HTTP, 100 bytes', {
    era: 'legacy', only: 'modern', needs: ['across'], all: [1, 16],
  }),
  passing('gateway-down', 'Gateway, clients of 2026-07-28 to a server of 2025-11-25: HTTP before HTTP, 100 bytes', {
    only: 'legacy', needs: ['across'], all: [1, 16],
  }),
  passing('gateway-stdio', 'Gateway, clients of 2026-07-28 to a program on standard streams, 100 bytes', { stdio: true, all: [1, 16] }),
  passing('gateway-stdio-session', 'Gateway, sessions of 2025-11-25 to a program on standard streams, 100 bytes', {
    era: 'legacy', stdio: true, all: [1, 16],
  }),
  {
    name: 'listens', title: '1,000 listens and one change', of: 'servers', needs: ['listen'], start: {},
    points: [{ label: '1,000', job: { kind: 'listens', count: 1000 } }],
  },
  {
    name: 'sessions', title: 'Memory of 1,000 sessions of 2025-11-25', of: 'servers', needs: ['session'], start: { sessions: true },
    points: [{ label: '1,000', job: { kind: 'sessions', count: 1000 } }],
  },
  {
    name: 'start-stdio', title: 'From the start to the first answer: a server on standard streams', of: 'servers', needs: ['stdio'], starts: true,
    points: [{ label: '', job: { kind: 'start', era: 'modern' } }],
  },
  {
    name: 'start-http', title: 'From the start to the first answer: a server on HTTP', of: 'servers', needs: [], starts: true, http: true,
    points: [{ label: '', job: { kind: 'start', era: 'modern' } }],
  },
  {
    name: 'start-gateway', title: 'From the start to the first answer: a gateway before a program', of: 'gateways', needs: ['stdio'], starts: true, http: true, stdio: true,
    points: [{ label: '', job: { kind: 'start', era: 'legacy' } }],
  },
];

/** Who is measured by a workload, and of the others why they are not. */
export function compared({ name, of, needs }, missing) {
  const all = of === 'servers' ? servers : gateways;
  const measured = [];
  const left = {};
  for (const [contender, { lacks }] of Object.entries(all)) {
    const reason = missing[contender] ?? lacks[name] ?? needs.map((need) => lacks[need]).find(Boolean);
    if (reason) left[contender] = reason;
    else measured.push(contender);
  }
  return { measured, left };
}

/** What is not counted of a contender: the program behind a gateway. */
export const without = ({ of, stdio }) => (of === 'gateways' && stdio ? BEHIND : undefined);
