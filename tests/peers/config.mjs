// The configuration of the test run, as people have it: two servers, one from npm and one from PyPI, both on stdio.
//
//   node config.mjs FILE

import { existsSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = dirname(fileURLToPath(import.meta.url));
const EVERYTHING = join(HERE, 'node_modules', '@modelcontextprotocol', 'server-everything', 'dist');
const PYTHON = join(HERE, '.venv', 'bin', 'python');

/** A document of server-everything, to compare with what is read through dateline. */
export const everythingDocument = (name) => join(EVERYTHING, 'docs', name);

/** `mark` appears in the arguments of each server, and changes nothing: the processes of one run are found by it. */
export function servers(mark) {
  return {
    everything: {
      command: process.execPath,
      args: [join(EVERYTHING, 'index.js'), 'stdio', ...(mark ? [mark] : [])],
      env: { DATELINE_TEST: 'from the configuration' },
    },
    time: {
      command: PYTHON,
      args: [...(mark ? ['-X', `mark=${mark}`] : []), '-m', 'mcp_server_time', '--local-timezone', 'UTC'],
    },
  };
}

export function writeConfig(file, mark) {
  for (const path of [EVERYTHING, PYTHON]) if (!existsSync(path)) throw new Error(`${path} is missing: run tests/setup.sh`);
  const text = JSON.stringify({ mcpServers: servers(mark) }, null, 2);
  writeFileSync(file, `// Written by tests/peers/config.mjs. Comments are allowed here.\n${text}\n`);
  return file;
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  if (process.argv.length !== 3) {
    console.error('usage: node config.mjs FILE');
    process.exit(2);
  }
  writeConfig(process.argv[2]);
}
