#!/usr/bin/env bash
# Tests the laboratory's page, as it was built in a directory, in Chromium and Firefox; PROGRAM is a `roundtrip` of the same sources.
# Installs both as root on Debian, and the npm packages of the tests; reports that tests are skipped where that is not possible.
set -euo pipefail
page="$(cd "${1:?usage: browser/tests/run.sh DIRECTORY PROGRAM}" && pwd)"
program="$(realpath "${2:?usage: browser/tests/run.sh DIRECTORY PROGRAM}")"
cd "$(dirname "$0")"

skip() { echo "skipped: tests of the laboratory's page: $*"; exit 0; }
node_major="$(node -p 'process.versions.node.split(".")[0]' 2> /dev/null || echo 0)"
[ "$node_major" -ge 20 ] || skip "no Node.js 20 or later"
browser="$(type -P chromium || type -P chromium-browser || type -P google-chrome || true)"
if [ -z "$browser" ] && [ "$(id -u)" = 0 ] && type -P apt-get > /dev/null; then
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } > /dev/null 2>&1 ||
    echo "lab: chromium could not be installed"
  browser="$(type -P chromium || true)"
fi
[ -n "$browser" ] || skip "no Chromium"
firefox="$(type -P firefox || type -P firefox-esr || true)"
if [ -z "$firefox" ] && [ "$(id -u)" = 0 ] && type -P apt-get > /dev/null; then
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends firefox-esr > /dev/null 2>&1 || echo "lab: firefox-esr could not be installed"
  firefox="$(type -P firefox-esr || true)"
fi
# Outside the checkout: `node_modules` would be searched by other tests.
place="${ROUNDTRIP_NPM:-${TMPDIR:-/tmp}/roundtrip-browser-tests}"
mkdir -p "$place"
cp package.json package-lock.json ./*.js "$place"
(cd "$place" && npm ci --no-audit --no-fund --silent) > /dev/null 2>&1 || skip "npm could not install playwright-core, puppeteer-core and axe-core"

"$place/node_modules/.bin/tsc" --project ..
corpus="$(cd ../../fuzz/corpus && pwd)"
source="$(cd .. && pwd)"
cd "$place"
CHROMIUM="$browser" FIREFOX="$firefox" ROUNDTRIP="$program" PAGE="$page" CORPUS="$corpus" SOURCE="$source" \
  timeout --kill-after 10 900 node --test --test-concurrency=1 --test-reporter=spec .
