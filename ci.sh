#!/usr/bin/env bash
# Everything that is checked, one word per job: `./ci.sh fmt clippy` runs two, `./ci.sh` runs all of them in order.
# The same script runs on a laptop and in CI. It installs nothing but the wasm target.
set -euo pipefail
cd "$(dirname "$0")"

# Other people's captures and logs stand beside the checkout where they are to be had; tests find them by these.
for pair in ROUNDTRIP_CAPTURES:captures ROUNDTRIP_LOGS:logs; do
  folder="$(pwd)/../shared/${pair#*:}"
  if [ -d "$folder" ]; then export "${pair%%:*}=$folder"; fi
done

PURE="wire proto scenario trace model simulate diagnose"
ALL="fmt clippy wasm docs smoke test"

job_fmt() { cargo fmt --all --check; }

job_clippy() { cargo clippy --workspace --all-targets -- -D warnings; }

# The pure crates touch no operating system: they must build where there is none.
job_wasm() {
  local target=wasm32-unknown-unknown
  if ! rustc --print target-libdir --target $target | xargs test -d; then
    rustup target add $target || { echo "ci.sh wasm: install the Rust target $target" >&2; return 1; }
  fi
  for crate in $PURE; do cargo build --quiet --target $target -p "$crate"; done
  echo "built for $target: $PURE"
}

job_docs() { RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --quiet; }

# As root the kernel tests must really run: a skip is a failure.
job_test() {
  if [ "$(id -u)" = 0 ]; then export ROUNDTRIP_REQUIRE_KERNEL=1; fi
  cargo test --workspace
}

# The two commands of the README, as a stranger would type them.
job_smoke() {
  cargo build --release
  cargo run --release -- compare
  cargo run --release -- reproduce
}

# Licences, duplicate versions, sources (deny.toml). Needs cargo-deny; not part of the whole run, see CONTRIBUTING.md.
job_deny() { cargo deny check bans licenses sources; }

if [ $# -eq 0 ]; then set -- $ALL; fi
for job in "$@"; do
  if ! declare -F "job_$job" >/dev/null; then
    echo "ci.sh: unknown job '$job'; there are: $ALL deny" >&2
    exit 2
  fi
done
for job in "$@"; do
  echo "== $job"
  started=$SECONDS
  "job_$job"
  echo "== $job: $((SECONDS - started)) s"
done
