#!/usr/bin/env bash
# Builds the laboratory's page into a directory: files for any static host, and the same in one file for file://.
# It needs Rust with the target wasm32-unknown-unknown, and coreutils. PROGRAM is a `roundtrip` of the same sources, which
# computes the papers' tables and figures.
set -euo pipefail
out="${1:?usage: browser/build.sh DIRECTORY PROGRAM}"
mkdir -p "$out"
out="$(realpath "$out")"
program="$(realpath "${2:?usage: browser/build.sh DIRECTORY PROGRAM}")"
cd "$(dirname "$0")"
target="${CARGO_TARGET_DIR:-$PWD/../target}/browser"
triple=wasm32-unknown-unknown

# Both have one name: the first is copied before the second is built.
for module in diagnose compare; do
  cargo build --quiet --locked --release --target $triple --target-dir "$target" --no-default-features --features $module
  cp "$target/$triple/release/roundtrip_browser.wasm" "$out/$module.wasm"
done

# Without third parties' logs, as everywhere. It takes a while: a page that was written by this program stays.
if [ "$program" -nt "$out/papers.html" ]; then
  env -u ROUNDTRIP_LOGS "$program" reproduce --report "$out/papers.html" > /dev/null || { rm -f "$out/papers.html"; exit 1; }
fi

# One scope: every name at the first level of these files is unique.
cat ../crates/report/src/plot.js page/worker_client.js page/diagnose.js page/walk.js page/compare.js page/traces.js page/papers.js page/lessons.js page/main.js > "$out/lab.js"
cat ../crates/render/src/report/style.css page/lab.css > "$out/lab.css"
cp page/worker.js page/index.html "$out"

# The file for file://: a browser gives such a page no access to files beside it.
hash_of() { sha256sum < "$1" | cut -d ' ' -f 1 | tr a-f A-F | basenc --base16 --decode | base64; }
policy="default-src 'none'; script-src 'sha256-$(hash_of "$out/lab.js")' 'wasm-unsafe-eval'; worker-src blob:; style-src 'sha256-$(hash_of "$out/lab.css")'; img-src data:; base-uri 'none'; form-action 'none'"
while IFS= read -r line; do
  case "$line" in
    *Content-Security-Policy*) echo "<meta http-equiv=\"Content-Security-Policy\" content=\"$policy\">" ;;
    *'href="lab.css"'*) printf '<style>'; cat "$out/lab.css"; echo '</style>' ;;
    *'src="lab.js"'*) ;;
    '</body>')
      printf '<script type="text/plain" id="worker.js">'; cat page/worker.js; echo '</script>'
      printf '<script type="text/plain" id="papers.html">'; cat "$out/papers.html"; echo '</script>'
      for module in diagnose compare; do
        printf '<script type="text/plain" id="%s.wasm">' $module; base64 --wrap 0 < "$out/$module.wasm"; echo '</script>'
      done
      printf '<script type="module">'; cat "$out/lab.js"; echo '</script>'
      echo "$line" ;;
    *) printf '%s\n' "$line" ;;
  esac
done < page/index.html > "$out/roundtrip-lab.html"
