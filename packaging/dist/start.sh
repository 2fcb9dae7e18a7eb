#!/usr/bin/env bash
# Installs each package of a target elsewhere and starts its program: `start.sh TARGET VERSION`, packages in $DIST_OUT.
# Programs of another architecture than this host's are unpacked, and not started.
set -euo pipefail
target="$1" version="$2"
place="$(mktemp -d)"
trap 'rm -rf "$place"' EXIT
is_native() { [ "${target%%-*}" = "$(uname -m)" ]; }
enter=(chroot)
if [ "$(id -u)" != 0 ]; then enter=(unshare -r chroot); fi

# A server with the fault, and the one without, are judged by the program: exit status 1 and 0.
judges() { # COMMAND...
  local program=("$@") way expected status
  for way in apart:1 whole:0; do
    expected="${way#*:}" status=0
    "${program[@]}" watch --interval 1ms -- python3 crates/roundtrip/tests/gate/exchange.py "${way%:*}" 12 0 > "$place/report" 2>&1 || status=$?
    [ "$status" = "$expected" ] || { cat "$place/report"; echo "dist: ${program[*]} watch: status $status for $way" >&2; return 1; }
  done
}

for archive in "$DIST_OUT"/roundtrip-*"$version-$target.tar.gz"; do
  mkdir "$place/archive"
  tar -xzf "$archive" -C "$place/archive"
  for file in bin/roundtrip share/man/man1/roundtrip.1.gz share/man/man1/roundtrip-watch.1.gz share/bash-completion/completions/roundtrip; do
    [ -s "$place/archive/$file" ] || { echo "dist: $archive lacks $file" >&2; exit 1; }
  done
  bash -n "$place/archive/share/bash-completion/completions/roundtrip"
  if is_native; then judges "$place/archive/bin/roundtrip"; fi
  rm -r "$place/archive"
  echo "dist: ${archive##*/}: unpacked$(is_native && echo ', started')"
done
for package in "$DIST_OUT"/roundtrip_"${version}_$target".deb; do
  [ -e "$package" ] || continue
  if type -P dpkg-deb > /dev/null; then
    dpkg-deb --info "$package" > /dev/null
    dpkg-deb --extract "$package" "$place/deb"
  else
    mkdir "$place/deb" && (cd "$place/deb" && ar p "$package" data.tar.gz | tar -xz)
  fi
  if is_native; then
    [ "$("${enter[@]}" "$place/deb" /usr/bin/roundtrip --version)" = "roundtrip $version" ]
    # Installed by dpkg itself, into a directory of its own.
    if [ "$(id -u)" = 0 ] && type -P dpkg > /dev/null; then
      mkdir -p "$place/root/var/lib/dpkg/info" "$place/root/var/lib/dpkg/updates"
      touch "$place/root/var/lib/dpkg/status"
      dpkg --root="$place/root" --force-not-root --force-script-chrootless --install "$package" > /dev/null 2> "$place/dpkg" ||
        { cat "$place/dpkg" >&2; exit 1; }
      [ -x "$place/root/usr/bin/roundtrip" ]
    fi
  fi
  echo "dist: ${package##*/}: unpacked$(is_native && echo ', installed, started in a chroot')"
done
for image in "$DIST_OUT"/roundtrip-*"$version-$target.oci.tar"; do
  mkdir "$place/image" "$place/rootfs"
  tar -xf "$image" -C "$place/image"
  layer="$(cd "$place/image" && python3 - <<'CHECK'
import hashlib, json, pathlib
blobs = pathlib.Path("blobs/sha256")
for blob in blobs.iterdir():
    assert hashlib.sha256(blob.read_bytes()).hexdigest() == blob.name
read = lambda entry: blobs / entry["digest"].split(":")[1]
manifest = json.loads(read(json.load(open("index.json"))["manifests"][0]).read_text())
for entry in [manifest["config"], *manifest["layers"]]:
    assert read(entry).stat().st_size == entry["size"]
config = json.loads(read(manifest["config"]).read_text())
assert config["config"]["Entrypoint"] == ["/roundtrip"]
print(read(manifest["layers"][0]))
CHECK
)"
  tar -xzf "$place/image/$layer" -C "$place/rootfs"
  if is_native; then [ "$("${enter[@]}" "$place/rootfs" /roundtrip --version)" = "roundtrip $version" ]; fi
  rm -r "$place/image" "$place/rootfs"
  echo "dist: ${image##*/}: digests hold$(is_native && echo ', started in a chroot')"
done
for wheel in "$DIST_OUT"/roundtrip_cli-"$version"-*"${target%%-*}".whl; do
  if is_native; then
    python3 -m venv "$place/venv"
    "$place/venv/bin/pip" install --quiet --no-index --no-deps --disable-pip-version-check "$wheel"
    judges "$place/venv/bin/roundtrip"
  else
    python3 -m zipfile --test "$wheel" > /dev/null
  fi
  echo "dist: ${wheel##*/}: valid$(is_native && echo ', installed by pip, started')"
done
