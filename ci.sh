#!/usr/bin/env bash
# All checks, as jobs: `./ci.sh fmt clippy` runs two, `./ci.sh` runs all of them in order.
# The same script runs on a laptop and in CI. It installs the wasm target and, as root on Debian, the programs of `tools`.
set -euo pipefail
cd "$(dirname "$0")"

# Nothing built here is built again, or debugged: panics name their line all the same.
if [ -n "${CI:-}" ]; then export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=false; fi

# Captures and logs of third parties, if they are next to the checkout; tests find them by these variables.
for pair in ROUNDTRIP_CAPTURES:captures ROUNDTRIP_HARS:hars ROUNDTRIP_LOGS:logs; do
  directory="$(pwd)/../shared/${pair#*:}"
  if [ -d "$directory" ]; then export "${pair%%:*}=$directory"; fi
done

TARGET="${CARGO_TARGET_DIR:-$PWD/target}"
# What `fresh` leaves for later jobs: the reproduction as data, and the tests that ran or were skipped.
REPRODUCTION="$TARGET/reproduction"
RECORDS="$TARGET/test-records"

PURE="wire quantity unpack tcp accesslog workload http1 tls http2 http3 quic qlog dhttp-proto page fetch scenario packets trace model simulate dissect diagnose render lab report"
ALL="fmt commits fresh tools clippy wasm docs features package test"

# Jobs that only compile. A whole run has them at idle priority beside the tests of `fresh`, which mostly wait.
BESIDE="clippy wasm docs features"
beside="" # the process, once it runs
PROGRAMS="$PATH"
start_beside() { # OUTPUT of cargo, which keeps the build directory until it runs the first test
  # shellcheck disable=SC2016,SC2086
  AFTER_FRESH=yes PATH="$PROGRAMS" setsid chrt --idle 0 bash -c 'until grep -q "^ *Running" "$0"; do sleep 1; done; exec ./ci.sh "$@"' \
    "$1" $BESIDE > "$TARGET/beside" 2>&1 &
  beside=$!
}

# Ends what must not outlive this script.
policy=""
leave() {
  [ -z "$policy" ] || rm -f "$policy"
  [ -z "$beside" ] || kill -- "-$beside" 2> /dev/null || true
}
trap leave EXIT

# Programs that tests run, with their Debian packages. A test reports `skipped: PROGRAM` where one is missing.
TOOLS="nginx:nginx-light apache2:apache2-bin haproxy:haproxy squid:squid curl:curl wget:wget ip:iproute2 ethtool:ethtool nft:nftables python3:python3
  tcpdump:tcpdump sysctl:procps unshare:util-linux setsid:util-linux setpriv:util-linux script:bsdutils mount:mount
  grep:grep cmp:diffutils"

# Programs of a minimal host besides Rust and a C compiler: the shell and GNU coreutils.
BARE="cargo rustc rustdoc rustup cc ld as ar sh [ arch base64 basename cat chmod chown cksum comm cp cut date dd df dirname du
  echo env expr false fold head id install join link ln ls md5sum mkdir mkfifo mknod mktemp mv nice nl nohup nproc od paste
  pr printenv printf pwd readlink realpath rm rmdir seq sha256sum shuf sleep sort split stat stty sync tac tail tee test
  timeout touch tr true truncate tty uname uniq unlink wc whoami yes"

# The README's two commands, in a clean target directory, with nothing else in PATH. The CPU time of the first build is
# printed, not checked, because CPUs differ. The size of the program is checked.
job_fresh() {
  local place most=30000000 program path bytes user system real
  place="$(mktemp -d)"
  mkdir "$place/bin"
  for program in $BARE; do
    path="$(type -P "$program")" || continue
    ln -s "$path" "$place/bin/$program"
  done
  for command in "cargo run --release -- compare" "cargo test --workspace"; do
    grep -qF "$command" README.md || { echo "ci.sh fresh: README.md lacks the command: $command" >&2; return 1; }
  done
  # In a fresh clone, later jobs use this build.
  local -x CARGO_TARGET_DIR="$TARGET"
  if [ -e "$CARGO_TARGET_DIR" ]; then
    CARGO_TARGET_DIR+=/fresh
    rm -rf "$CARGO_TARGET_DIR"
  fi
  cargo fetch --locked
  local -x PATH="$place/bin"
  local TIMEFORMAT="%U %S %R"
  { time cargo build --release 2> >(tee "$place/build" >&3); } 3>&2 2> "$place/time"
  read -r user system real < "$place/time"
  bytes="$(stat --format %s "$CARGO_TARGET_DIR/release/roundtrip")"
  # A row is void, and the exit status 2, where other programs made the link late.
  cargo run --release -- compare || cargo run --release -- compare || cargo run --release -- compare
  # Job `clippy` compiles every feature: warnings of the default ones show here.
  if [[ "$(cat "$place/build")" == *warning:* ]]; then echo "ci.sh fresh: the release build has warnings" >&2; return 1; fi
  echo "fresh: the first build took $real s, $user s of processors and $system s of their kernel; the program has $bytes bytes"
  [ "$bytes" -le "$most" ] || { echo "ci.sh fresh: the program has more than $most bytes" >&2; return 1; }
  job_smoke
  mkdir -p "$RECORDS"
  rm -f "$RECORDS"/*
  all_tests --workspace
  rm -rf "$place"
}

# Tables and figures that need real logs. The record of verdicts is that of a host without them.
OF_LOGS="dhttp/figure-6 dhttp/figure-7 dhttp/figure-8 dhttp/figure-9 dhttp/section-vi-a"

# Computes every table and figure once, with the release build. Tests read the result instead of computing it again.
job_smoke() {
  local logs="${ROUNDTRIP_LOGS:-}" line count=0
  mkdir -p "$REPRODUCTION"
  rm -rf "${REPRODUCTION:?}"/*
  env -u ROUNDTRIP_LOGS cargo run --release -- reproduce --format json --figures "$REPRODUCTION/figures" > "$REPRODUCTION/rows.json"
  if [ -n "$logs" ]; then cargo run --release -- reproduce $OF_LOGS --figures "$REPRODUCTION/figures-of-logs"; fi
  # Without grep, which a bare machine may lack.
  while IFS= read -r line; do [[ "$line" != *'"verdict"'* ]] || count=$((count + 1)); done < "$REPRODUCTION/rows.json"
  echo "reproduced: $count cells; none is worse than its record"
}

# Bound of one run of tests with its build: several times what it takes on two cores.
TESTS_MAX_SECONDS=2400

# Runs the failed tests of a run once more, one after another: beside other tests, a host may be late. Those that pass now are
# named as flaky; those that fail again, and programs that did not build, fail. The packages are the same, so nothing is built.
again() {
  local output="$1" word name dots result rest target reported=0 programs=0 failed=() packages=() targets=()
  shift
  while read -r word name dots result rest; do
    if [ "$word $dots $result" = "test ... FAILED" ]; then failed+=("$name"); fi
    # As cargo names them: `-p roundtrip --test it`
    if [ "$word" = "\`-p" ]; then targets+=("$dots $result"); fi
    # `test result: FAILED. 33 passed; 1 failed; ...`
    if [ "$word $name $dots" = "test result: FAILED." ]; then
      programs=$((programs + 1))
      rest="${rest#passed; }"
      reported=$((reported + ${rest%% *}))
    fi
  done < "$output"
  # Nothing else may have failed: no program that was killed, or has another harness, and no test whose line was not read.
  [ "$reported" -gt 0 ] && [ "$reported" = ${#failed[@]} ] && [ "$programs" = ${#targets[@]} ] || return 1
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    case "$1" in --lib | --bins | --tests) ;; *) packages+=("$1") ;; esac
    shift
  done
  while read -r target; do
    # Words of cargo: the kind of target and its name.
    # shellcheck disable=SC2086
    cargo test "${packages[@]}" ${target//\`/} -- --exact --test-threads 1 "${failed[@]}" || return 1
  done < <(printf '%s\n' "${targets[@]}" | sort -u)
  echo "flaky, passed alone: ${failed[*]}"
}

# Runs tests and counts the skipped ones by reason. As root, kernel tests must not be skipped. Appends to two records: the
# names of tests that ran, and the program or reason that each skipped test lacked, with its name.
all_tests() {
  local output status=0
  output="$(mktemp)"
  if [ "$(id -u)" = 0 ]; then local -x ROUNDTRIP_REQUIRE_KERNEL=1; fi
  if [ -e "$REPRODUCTION/rows.json" ]; then local -x ROUNDTRIP_REPRODUCTION="$REPRODUCTION"; fi
  local -x ROUNDTRIP_SKIPPED="$RECORDS/skipped"
  mkdir -p "$RECORDS"
  touch "$ROUNDTRIP_SKIPPED" "$RECORDS/ran"
  if [ -n "$whole" ] && [ -z "$beside" ] && (PATH="$PROGRAMS" type -P setsid chrt > /dev/null); then start_beside "$output"; fi
  # A test that hangs ends the job: the harness has named it after a minute.
  timeout --kill-after 10 "$TESTS_MAX_SECONDS" cargo test --no-fail-fast "$@" 2>&1 | tee "$output" || status=1
  if [ $status != 0 ]; then
    [ -z "$beside" ] || wait "$beside" || true
    again "$output" "$@" || return 1
    status=0
  fi
  while read -r word name dots result; do
    if [ "$word $dots $result" = "test ... ok" ]; then echo "$name"; fi
  done < "$output" >> "$RECORDS/ran"
  echo "skipped:"
  cut -f 1 "$ROUNDTRIP_SKIPPED" | sort | uniq -c
  rm "$output"
  return $status
}

# Installs the programs, as root on Debian; elsewhere, lists the missing ones. policy-rc.d prevents services from starting.
job_tools() {
  local missing=() pair
  for pair in $TOOLS; do
    PATH="$PATH:/usr/sbin:/sbin" type -P "${pair%%:*}" > /dev/null || missing+=("${pair#*:}")
  done
  if [ ${#missing[@]} -eq 0 ]; then echo "all installed"; return; fi
  if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
    echo "not installed; their tests are skipped: ${missing[*]}"
    return
  fi
  if [ ! -e /usr/sbin/policy-rc.d ]; then
    policy=/usr/sbin/policy-rc.d
    printf '#!/bin/sh\nexit 101\n' > $policy
    chmod +x $policy
  fi
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null
  echo "installed: ${missing[*]}"
}

job_fmt() { cargo fmt --all --check; }

# Commit subjects since COMMITS_SINCE: `area: imperative summary`, at most 72 characters. A clone without it has none to check.
COMMITS_SINCE=440ebd6eb4
job_commits() {
  if ! git merge-base --is-ancestor "$COMMITS_SINCE" HEAD 2> /dev/null; then
    echo "not checked: this clone lacks the commit $COMMITS_SINCE"
    return
  fi
  local wrong=0 subject
  while IFS= read -r subject; do
    if [ ${#subject} -gt 72 ] || ! [[ "$subject" =~ ^[a-z0-9/._-]+(,\ [a-z0-9/._-]+)*:\ [^\ A-Z] ]]; then
      echo "ci.sh commits: not \`area: imperative summary\` of at most 72 characters: $subject" >&2
      wrong=1
    fi
  done < <(git log --no-merges --format=%s "$COMMITS_SINCE..HEAD")
  return $wrong
}

job_clippy() {
  cargo clippy --workspace --all-targets --all-features -- -D warnings
  # As in the slim package, with `diagnose` and `watch` alone.
  cargo clippy --package roundtrip --no-default-features -- -D warnings
}

WASM=wasm32-unknown-unknown
install_wasm() { # JOB
  if ! rustc --print target-libdir --target $WASM | xargs test -d; then
    rustup target add $WASM || { echo "ci.sh $1: install the Rust target $WASM" >&2; return 1; }
  fi
}

# The pure crates must compile for a target without an operating system.
job_wasm() {
  install_wasm wasm
  local target=$WASM crate manifest packages=()
  for crate in $PURE; do packages+=(--package "roundtrip-$crate"); done
  cargo check --quiet --target $target "${packages[@]}"
  echo "compiles for $target: $PURE"
  # Packages with a lock file of their own, which jobs on demand build.
  for manifest in browser/Cargo.toml python/Cargo.toml; do
    cargo metadata --locked --format-version 1 --manifest-path "$manifest" > /dev/null ||
      { echo "ci.sh wasm: run \`cargo metadata --manifest-path $manifest > /dev/null\` and commit its Cargo.lock" >&2; return 1; }
  done
}

# Builds the laboratory's page in target/lab. Tests it in Chromium and Firefox where they and the npm packages of the tests can be installed.
job_lab() {
  install_wasm lab
  local page="$TARGET/lab" program="$TARGET/debug/roundtrip" file
  cargo build --quiet --package roundtrip
  browser/build.sh "$page" "$program"
  for file in "$page"/*; do
    echo "lab: ${file##*/}: $(stat --format %s "$file") bytes, $(gzip -9 < "$file" | wc -c) compressed"
  done
  browser/tests/run.sh "$page" "$program"
}

# rustdoc reads the metadata of crates. Those of job `clippy` are fresh for cargo if it has the same wrapper, with the same arguments:
# without them, it would check the workspace again.
job_docs() {
  local -x RUSTDOCFLAGS="-D warnings" CLIPPY_ARGS="-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__" RUSTC_WORKSPACE_WRAPPER
  RUSTC_WORKSPACE_WRAPPER="$(rustc --print sysroot)/bin/clippy-driver"
  cargo doc --workspace --all-features --no-deps --document-private-items --quiet
}

# Runs the libraries' examples, and packages each crate.
job_package() {
  # Of the whole workspace, as `fresh` has built them.
  cargo build --quiet --workspace --examples
  "$TARGET/debug/examples/simulate_page"
  "$TARGET/debug/examples/diagnose_capture" fuzz/corpus/capture/nagle
  cargo package --workspace --no-verify --allow-dirty --quiet --offline
}

# What `fresh` could not run: the tests that lacked a tool, and those that only exist with a feature. A tool that `tools`
# installs may not be missing. Alone, it runs every test of these packages.
FEATURED="accesslog accesslog-io content"
FEATURES=(--package roundtrip --all-features --lib --bins --tests)
for crate in $FEATURED; do FEATURES+=(--package "roundtrip-$crate"); done

# Our crates that differ with the features, and those that import them.
DIFFERENT="roundtrip accesslog accesslog-io content load reproduce workload"

# Compiles the tests with every feature, for `test`. After `fresh`, only what differs: the dev-dependencies of `roundtrip` select the
# same features of common dependencies in both.
job_features() {
  local output="$TARGET/features" crate again=""
  cargo test --no-run "${FEATURES[@]}" 2>&1 | tee "$output"
  [ -n "${AFTER_FRESH:-}" ] || return 0
  for crate in $(sed -nE 's/^ *Compiling (roundtrip-)?([a-z0-9-]+) v[^ ]+ \(.*/\2/p' "$output"); do
    [[ " $DIFFERENT " == *" $crate "* ]] || again+=" $crate"
  done
  [ -z "$again" ] && return
  echo "ci.sh features: compiled again, though the features change nothing in them:$again; a common dependency has other features" >&2
  return 1
}

job_test() {
  local -x ROUNDTRIP_REQUIRE_TOOLS=""
  local pair crate file names
  mkdir -p "$RECORDS"
  touch "$RECORDS/skipped" "$RECORDS/ran"
  for pair in $TOOLS; do ROUNDTRIP_REQUIRE_TOOLS+="${pair%%:*} "; done
  mapfile -t names < <(awk -F '\t' -v tools=" $ROUNDTRIP_REQUIRE_TOOLS" 'index(tools, " " $1 " ") { print $2 }' "$RECORDS/skipped" | sort -u)
  if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then ROUNDTRIP_REQUIRE_TOOLS=""; fi
  rm "$RECORDS/skipped"
  if [ ${#names[@]} -gt 0 ]; then
    echo "with the tools: ${#names[@]} tests"
    all_tests --workspace --lib --bins --tests -- --exact "${names[@]}"
  fi
  while read -r file; do
    crate="${file#crates/}"
    case " $FEATURED roundtrip " in
      *" ${crate%%/*} "*) ;;
      *) echo "ci.sh test: $file depends on a feature; add its crate to FEATURED" >&2; return 1 ;;
    esac
  done < <(grep -rlE '^\[features\]' crates --include Cargo.toml)
  mapfile -t names < <(featured_tests)
  echo "with every feature: ${#names[@]} tests"
  all_tests "${FEATURES[@]}" -- --exact "${names[@]}"
}

# Names of the tests that have not run, of the libraries' unit tests, whose assertions depend on features, and of the command
# line's tests that name a feature.
featured_tests() {
  cargo test "${FEATURES[@]}" -- --list --format terse 2>&1 | awk -v ran="$RECORDS/ran" '
    BEGIN { while ((getline name < ran) > 0) has_run[name] = 1 }
    / Running / { is_library = /deps\/roundtrip_/ && /unittests/ }
    sub(/: test$/, "") && (!($0 in has_run) || is_library || /^(access|features|transcripts)/) { print }' | sort -u
}

# Runs every study (crates/studies) and compares or shows its results: minutes to an hour. As root, also over real kernels. Not
# part of the whole run; a sample of each is a test.
job_studies() {
  local place="${CARGO_TARGET_DIR:-target}" study
  cargo build --release --package roundtrip --package roundtrip-studies
  mkdir -p "$place/studies"
  for study in loss maps tables graphs pages corpus conformance chromium; do "$place/release/$study" all "$place/studies/$study.csv"; done
  python3 studies/faults/run.py "$place/release/roundtrip" --jobs 2
  python3 studies/bottlenecks/run.py "$place/release/roundtrip"
  for study in loss/pages.csv maps/maps.csv tables/tables.csv; do
    cmp "studies/$study" "$place/studies/${study%%/*}.csv" ||
      { echo "ci.sh studies: studies/$study differs; renew it, and state the reason in CHANGELOG.md" >&2; return 1; }
  done
}

# Installs the Python package as a user does, and compares it with the program, also on Spark. pip downloads 860 MB, mostly
# Spark; the build takes five CPU minutes. Not part of the whole run. It installs outside the checkout.
job_python() {
  local place="${ROUNDTRIP_VENV:-${TMPDIR:-/tmp}/roundtrip-python}" target="${CARGO_TARGET_DIR:-target}"
  python3 -c 'import sys, venv; sys.exit(sys.version_info < (3, 10))' 2> /dev/null ||
    { echo "ci.sh python: install Python 3.10 or later with its venv (Debian: python3-venv)" >&2; return 1; }
  "${JAVA_HOME:+$JAVA_HOME/bin/}java" -version > /dev/null 2>&1 ||
    { echo "ci.sh python: Spark needs Java; install Java 17, or set JAVA_HOME" >&2; return 1; }
  [ -x "$place/bin/python" ] || python3 -m venv "$place"
  cargo build --profile dist --features full --package roundtrip
  "$place/bin/pip" install --quiet "./python[test]" ||
    { echo "ci.sh python: pip could not install the package and the dependencies of its tests" >&2; return 1; }
  ROUNDTRIP="$(cd "$target/dist" && pwd)/roundtrip"
  (cd python/tests && ROUNDTRIP="$ROUNDTRIP" "$place/bin/python" -m pytest -q -p no:cacheprovider .)
}

# A release's packages, built and started: static programs, archives, a .deb, images, wheels, SBOMs, checksums. Two optimised
# builds for each target take much longer than three minutes: not part of the whole run.
job_dist() {
  local place
  place="$(mktemp -d)"
  # The SBOMs are validated by CycloneDX's own schema where its package can be fetched.
  if python3 -m venv "$place" 2> /dev/null; then
    "$place/bin/pip" install --quiet 'cyclonedx-python-lib[json-validation]' || echo "dist: no schema of CycloneDX: SBOMs are checked without it"
    local -x PATH="$place/bin:$PATH"
  fi
  packaging/dist/build.sh
  rm -rf "$place"
}

# Licences, duplicate versions, sources (deny.toml). Needs cargo-deny; not part of the whole run, see CONTRIBUTING.md.
job_deny() { cargo deny check bans licenses sources; }

whole=""
if [ $# -eq 0 ]; then
  set -- $ALL
  whole=yes
fi
for job in "$@"; do
  if ! declare -F "job_$job" >/dev/null; then
    echo "ci.sh: unknown job '$job'; choose from: $ALL lab smoke studies python dist deny" >&2
    exit 2
  fi
done
for job in "$@"; do
  if [ -n "$beside" ] && [[ " $BESIDE " == *" $job "* ]]; then
    # Of all of them, when the first has its turn.
    [ ! -e "$TARGET/beside" ] || { wait "$beside" && failed="" || failed=yes; cat "$TARGET/beside"; rm "$TARGET/beside"; }
    [ -z "$failed" ] || exit 1
    continue
  fi
  echo "== $job"
  started=$SECONDS
  "job_$job"
  echo "== $job: $((SECONDS - started)) s"
done
