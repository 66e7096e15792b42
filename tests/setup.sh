#!/usr/bin/env bash
# Installs what the tests with official peers need, into tests/*/node_modules, tests/peers/.venv and target/peers. Run again it
# does nothing unless a lock file changed. npm and pip use the configuration of the machine.
#
# Needs node >= 20, npm, git, cargo, and python3 from 3.10 to 3.13 with venv. Set PYTHON to use another than the one in the PATH.
set -euo pipefail

tests=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}

fail() {
  echo "setup: $*" >&2
  exit 1
}

node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)' 2>/dev/null ||
  fail "node >= 20 is needed: install Node.js"
command -v npm >/dev/null || fail "npm is needed: it comes with Node.js (Debian: apt install npm)"
command -v git >/dev/null || fail "git is needed: mcp-server-git calls it (Debian: apt install git)"
# The old releases of the Python SDK need a pydantic that there is for no newer Python.
"$python" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' 2>/dev/null ||
  fail "python3 from 3.10 to 3.13 is needed: install Python, or set PYTHON"
command -v cargo >/dev/null || fail "cargo is needed: a server on rmcp is built with it (rustup.rs)"
# Debian has venv without what it needs to install pip.
"$python" -c 'import venv, ensurepip' 2>/dev/null ||
  fail "the Python module venv is needed (Debian, Ubuntu: apt install python3-venv)"

logs=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$logs"' EXIT

# quietly WHAT COMMAND...: its output is shown only when it fails.
quietly() {
  local what=$1 log
  log=$(mktemp "$logs/XXXXXX")
  shift
  echo "setup: $what"
  "$@" >"$log" 2>&1 || {
    cat "$log" >&2
    fail "$what: failed"
  }
}

# current STAMP FILES...: whether what is installed came from these files, and sets the value to stamp it with. The directory
# is part of it: neither a venv nor a checkout that moved keeps working.
current() {
  local stamp=$1
  shift
  hash=$({ echo "$tests"; cat "$@"; } | cksum)
  [ "$(cat "$stamp" 2>/dev/null)" = "$hash" ]
}

for part in suite peers; do
  cd "$tests/$part"
  # No package here needs its install scripts. The Inspector wants Node 22, and is run with that of tests/suite. (In its
  # package.json a version of vite is pinned: a later one depends on a package that is not there, and npm ci refuses.)
  if ! current node_modules/.stamp package.json package-lock.json; then
    quietly "tests/$part: npm ci" npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
    echo "$hash" >node_modules/.stamp
  fi
done

# One virtual environment for each generation of the SDK, for FastMCP, and for each old release: they cannot be installed side by
# side.
cd "$tests/peers"
[ ! -e .venv/pyvenv.cfg ] || rm -rf .venv # there was one for all
environment() {
  local name=$1 venv=.venv/$1
  # The Python that a venv was made from may have gone since.
  if ! current $venv/.stamp requirements-$name.txt || ! $venv/bin/python -c '' 2>/dev/null; then
    rm -rf $venv
    quietly "tests/peers: python venv, $name" "$python" -m venv $venv
    quietly "tests/peers: pip install, $name" \
      $venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-$name.txt
    echo "$hash" >$venv/.stamp
  fi
}
# All at once: each is a process, and they spend their time compiling what they install.
installing=()
for name in legacy modern fastmcp 1.8 1.9 1.12; do
  environment $name &
  installing+=($!)
done
# Beside them what is built of Rust, which depends on nothing of ours and nothing of ours on it.
quietly "tests/peers/rmcp: cargo build" \
  cargo build --quiet --locked --manifest-path "$tests/peers/rmcp/Cargo.toml" --target-dir "$tests/../target/peers"
for pid in "${installing[@]}"; do wait "$pid"; done
echo "setup: tests are ready"
