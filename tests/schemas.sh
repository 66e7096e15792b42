#!/usr/bin/env bash
# Prints the folder that holds the official schemas as schema/<revision>/schema.json: $DATELINE_SPEC, a folder shared/spec in
# a folder above, or target/spec, into which the pinned commit of the specification's repository is fetched. The tables of
# crates/spec and the referee of crates/testkit are held against exactly these files.
set -euo pipefail

tests=$(cd "$(dirname "$0")" && pwd)
# Set it where the repository is reached by another way, such as a mirror.
source=${DATELINE_SPEC_SOURCE:-https://github.com/modelcontextprotocol/modelcontextprotocol}
commit=b0f60ba5409db7a6582440a7b473cc0398890f15

if [ -n "${DATELINE_SPEC:-}" ]; then
  echo "$DATELINE_SPEC"
  exit
fi
above=$tests
until [ "$above" = / ]; do
  above=$(dirname "$above")
  if [ -d "$above/shared/spec/schema" ]; then
    echo "$above/shared/spec"
    exit
  fi
done

folder=$(dirname "$tests")/target/spec
complete() { [ -d "$folder" ] && (cd "$folder" && sha256sum --quiet --check "$tests/schemas.sha256") >/dev/null 2>&1; }
if ! complete; then
  rm -rf "$folder"
  git init --quiet "$folder"
  git -C "$folder" fetch --quiet --depth 1 "$source" "$commit" || {
    rm -rf "$folder"
    echo "the official schemas cannot be fetched from $source; clone that repository by other means and set DATELINE_SPEC to its folder" >&2
    exit 1
  }
  git -C "$folder" checkout --quiet "$commit" -- schema
  complete || {
    echo "the schemas fetched from $source are not those of tests/schemas.sha256" >&2
    exit 1
  }
fi
echo "$folder"
