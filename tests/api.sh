#!/usr/bin/env bash
# Compares the public API of the crates that authors of servers use with api/*.txt. `--write` replaces these files: whoever
# changes the API on purpose commits them with the change.
#
# cargo-public-api reads rustdoc's JSON, which the stable compiler writes with RUSTC_BOOTSTRAP=1. dateline's file names what
# it re-exports; dateline-server's has the items.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.52.0
if [ ! -x target/tools/bin/cargo-public-api ]; then
  cargo install cargo-public-api --version $version --locked --debug --quiet --root target/tools
fi
PATH=$PWD/target/tools/bin:$PATH
export RUSTC_BOOTSTRAP=1
# cargo-public-api would take a nightly compiler of rustup's, if there is one.
toolchain=()
if command -v rustup >/dev/null; then toolchain=("+$(rustup show active-toolchain | cut -d' ' -f1)"); fi

status=0
for crate in dateline dateline-server; do
  # Without blanket, automatic and derived implementations, which say little and differ between compilers.
  cargo ${toolchain[@]+"${toolchain[@]}"} public-api --package $crate --all-features -sss 2>target/api.log >target/api.txt || {
    cat target/api.log >&2
    exit 1
  }
  if [ "${1:-}" = --write ]; then
    cp target/api.txt api/$crate.txt
  elif ! diff -u api/$crate.txt target/api.txt; then
    echo "the public API of $crate is not that of api/$crate.txt; bash tests/api.sh --write takes it over" >&2
    status=1
  fi
done
exit $status
