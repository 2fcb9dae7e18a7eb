#!/usr/bin/env bash
# Everything that is checked, one word per job: `./ci.sh fmt clippy` runs two, `./ci.sh` runs all of them in order.
# The same script runs on a laptop and in CI. It installs the wasm target and, as root on Debian, the programs of `tools`.
set -euo pipefail
cd "$(dirname "$0")"

# Other people's captures and logs stand beside the checkout where they are to be had; tests find them by these.
for pair in ROUNDTRIP_CAPTURES:captures ROUNDTRIP_LOGS:logs; do
  folder="$(pwd)/../shared/${pair#*:}"
  if [ -d "$folder" ]; then export "${pair%%:*}=$folder"; fi
done

PURE="wire http1 dhttp-proto pageload scenario columns trace model simulate diagnose"
ALL="tools fmt clippy wasm docs smoke test"

# Other people's servers and clients, for the tests that put them into the laboratory. Elsewhere those tests say what they
# left out. No service is started: the packages' scripts are told not to.
job_tools() {
  local missing=() pair
  for pair in nginx:nginx-light apache2:apache2-bin curl:curl wget:wget ip:iproute2 ethtool:ethtool nft:nftables; do
    PATH="$PATH:/usr/sbin" command -v "${pair%%:*}" > /dev/null || missing+=("${pair#*:}")
  done
  if [ ${#missing[@]} -eq 0 ]; then echo "all there"; return; fi
  if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
    echo "not installed, so that their tests are left out: ${missing[*]}"
    return
  fi
  local policy=/usr/sbin/policy-rc.d
  if [ ! -e $policy ]; then
    printf '#!/bin/sh\nexit 101\n' > $policy
    chmod +x $policy
    trap "rm -f $policy" EXIT
  fi
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null
  echo "installed: ${missing[*]}"
}

job_fmt() { cargo fmt --all --check; }

job_clippy() { cargo clippy --workspace --all-targets -- -D warnings; }

# The pure crates touch no operating system: they must build where there is none.
job_wasm() {
  local target=wasm32-unknown-unknown
  if ! rustc --print target-libdir --target $target | xargs test -d; then
    rustup target add $target || { echo "ci.sh wasm: install the Rust target $target" >&2; return 1; }
  fi
  for crate in $PURE; do cargo build --quiet --target $target --manifest-path "crates/$crate/Cargo.toml"; done
  echo "built for $target: $PURE"
}

job_docs() { RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --quiet; }

# As root the kernel tests must really run: a skip is a failure.
job_test() {
  if [ "$(id -u)" = 0 ]; then export ROUNDTRIP_REQUIRE_KERNEL=1; fi
  cargo test --workspace
}

# The two commands of the README, as a stranger would type them. What they print is looked at, not how fast:
# in CI the optimiser is told to be quick, or it would take half of the whole run.
job_smoke() {
  if [ "${CI:-}" = true ]; then
    local -x CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_LTO=off
    local -x CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_DEBUG=false
  fi
  cargo build --release
  cargo run --release -- compare
  cargo run --release -- reproduce
}

# The Python package, installed as a user would, held to the program, also on Spark. Takes its packages
# from PyPI, by pip: 860 MB, most of them Spark; and building takes five minutes of a processor. Not part of the whole run.
# What it installs stands outside the checkout.
job_python() {
  local place="${ROUNDTRIP_VENV:-${TMPDIR:-/tmp}/roundtrip-python}" target="${CARGO_TARGET_DIR:-target}"
  python3 -c 'import sys, venv; sys.exit(sys.version_info < (3, 10))' 2> /dev/null ||
    { echo "ci.sh python: install Python 3.10 or later with its venv (Debian: python3-venv)" >&2; return 1; }
  "${JAVA_HOME:+$JAVA_HOME/bin/}java" -version > /dev/null 2>&1 ||
    { echo "ci.sh python: Spark needs Java; install Java 17, or say with JAVA_HOME where it is" >&2; return 1; }
  [ -x "$place/bin/python" ] || python3 -m venv "$place"
  cargo build --release --package roundtrip
  "$place/bin/pip" install --quiet "./python[test]" ||
    { echo "ci.sh python: pip could not install the package and what its tests need" >&2; return 1; }
  ROUNDTRIP="$(cd "$target/release" && pwd)/roundtrip"
  (cd python/tests && ROUNDTRIP="$ROUNDTRIP" "$place/bin/python" -m pytest -q -p no:cacheprovider .)
}

# Licences, duplicate versions, sources (deny.toml). Needs cargo-deny; not part of the whole run, see CONTRIBUTING.md.
job_deny() { cargo deny check bans licenses sources; }

if [ $# -eq 0 ]; then set -- $ALL; fi
for job in "$@"; do
  if ! declare -F "job_$job" >/dev/null; then
    echo "ci.sh: unknown job '$job'; there are: $ALL python deny" >&2
    exit 2
  fi
done
for job in "$@"; do
  echo "== $job"
  started=$SECONDS
  "job_$job"
  echo "== $job: $((SECONDS - started)) s"
done
