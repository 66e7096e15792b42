#!/usr/bin/env bash
# A long run of the targets in crates/fuzz under libFuzzer: each looks for inputs that it fails with, beginning with its
# corpus. What it finds new goes to target/fuzz/<target>, what it fails with to crates/fuzz/libfuzzer/artifacts/<target>.
#
#   bash tests/fuzz.sh [SECONDS] [TARGET...]     600 seconds each, of all targets, one after the other
#
# Needs a nightly toolchain, a C++ compiler, and cargo-fuzz (cargo install cargo-fuzz). ./test has a short run without them.
set -euo pipefail
cd "$(dirname "$0")/../crates/fuzz"

seconds=${1:-600}
shift || true
(($#)) || set -- corpus/*/
root=../../target/fuzz
status=0
for target in "$@"; do
  target=$(basename "$target")
  mkdir -p "$root/$target"
  # Stable Rust needs no sanitizer: there is no `unsafe` here, and a panic ends the run.
  cargo +nightly fuzz run --fuzz-dir libfuzzer -s none "$target" "$root/$target" "corpus/$target" -- \
    -max_total_time="$seconds" -max_len=4096 -timeout=5 -rss_limit_mb=1024 -print_final_stats=1 >"$root/$target.log" 2>&1 || status=1
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$root/$target.log")
  covered=$(grep -o 'cov: [0-9]*' "$root/$target.log" | tail -1)
  found=$(find "libfuzzer/artifacts/$target" -type f 2>/dev/null | wc -l)
  echo "$target: ${runs:-no} runs, ${covered:-cov: 0} edges, $(find "$root/$target" "corpus/$target" -type f | wc -l) inputs kept, $found failures"
done
exit $status
