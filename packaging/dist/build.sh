#!/usr/bin/env bash
# What a release consists of, in target/dist-packages: for each target an archive and a Debian package of the whole program,
# an archive and an image of the slim one (`diagnose` and `watch`), a wheel, and SBOMs; checksums of all.
# Each is started. Needs Python 3.8, musl-gcc, and for aarch64 its cross compiler and qemu.
# Targets: `build.sh [TARGET...]`; otherwise x86_64, and aarch64 where its compiler is installed.
set -euo pipefail
cd "$(dirname "$0")/../.."

here=packaging/dist
target_directory="${CARGO_TARGET_DIR:-$PWD/target}"
out="$target_directory/dist-packages"
MAX_SLIM_BYTES=8000000
VERSION="$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)"
SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2> /dev/null || echo 0)}"
export SOURCE_DATE_EPOCH
# Paths of the building host are not part of a program.
export RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$PWD=/roundtrip --remap-path-prefix=$HOME=/home"
export CC_x86_64_unknown_linux_musl="${CC_x86_64_unknown_linux_musl:-musl-gcc}"
export CC_aarch64_unknown_linux_musl="${CC_aarch64_unknown_linux_musl:-aarch64-linux-gnu-gcc}"
# The cross compiler's headers are those of glibc: without its checked functions, the objects need only what musl has.
export CFLAGS_aarch64_unknown_linux_musl="${CFLAGS_aarch64_unknown_linux_musl:--U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=0}"
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER="${CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER:-rust-lld}"

fail() { echo "dist: $*" >&2; exit 1; }
for program in python3 musl-gcc; do
  type -P "$program" > /dev/null || fail "$program is missing; install it (Debian: python3 musl-tools)"
done
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  targets=(x86_64-unknown-linux-musl)
  if type -P "$CC_aarch64_unknown_linux_musl" > /dev/null; then targets+=(aarch64-unknown-linux-musl)
  else echo "dist: not built for aarch64: no $CC_aarch64_unknown_linux_musl (Debian: gcc-aarch64-linux-gnu)"; fi
fi

# Starts a program in an empty root directory, as in an image without any file but it.
started_alone() { # PROGRAM TARGET ARGUMENT...
  local root emulator=() program=$1 target=$2
  shift 2
  root="$(mktemp -d)"
  mkdir -p "$root/tmp"
  cp "$program" "$root/roundtrip"
  if [ "${target%%-*}" != "$(uname -m)" ]; then
    type -P "qemu-${target%%-*}-static" > /dev/null || { echo "dist: $target is not started: no qemu-${target%%-*}-static" >&2; rm -r "$root"; return 0; }
    cp "$(type -P "qemu-${target%%-*}-static")" "$root/qemu"
    emulator=(/qemu)
  fi
  local enter=(chroot)
  if [ "$(id -u)" != 0 ]; then enter=(unshare -r chroot); fi
  "${enter[@]}" "$root" "${emulator[@]}" /roundtrip "$@" || { echo "dist: $program does not run alone" >&2; return 1; }
  rm -r "$root"
}

is_static() { ! readelf --program-headers "$1" | grep -q INTERP || fail "$1 is not static"; }

rm -rf "$out"
mkdir -p "$out"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
host="$(rustc -vV | sed -n 's/^host: //p')"

# The page that the whole program contains.
if [ -z "${DIST_SLIM_ONLY:-}" ]; then
  rustup target list --installed 2> /dev/null | grep -qx wasm32-unknown-unknown || rustup target add wasm32-unknown-unknown
  RUSTFLAGS="" cargo build --locked --release --package roundtrip
  RUSTFLAGS="" browser/build.sh "$target_directory/lab" "$target_directory/release/roundtrip"
  export ROUNDTRIP_LAB="$target_directory/lab"
fi

for target in "${targets[@]}"; do
  rustup target list --installed 2> /dev/null | grep -qx "$target" || rustup target add "$target"
  # Both have the name `roundtrip`: the first is moved away before the second is built.
  cargo build --locked --profile dist --target "$target" --package roundtrip --no-default-features
  slim="$scratch/slim-$target"
  cp "$target_directory/$target/dist/roundtrip" "$slim"
  if [ -z "${DIST_SLIM_ONLY:-}" ]; then
    cargo build --locked --profile dist --target "$target" --package roundtrip --features full
    full="$scratch/full-$target"
    cp "$target_directory/$target/dist/roundtrip" "$full"
  fi
  for kind in full slim; do
    program="$scratch/$kind-$target"
    [ -e "$program" ] || continue
    is_static "$program"
    [ "$(started_alone "$program" "$target" --version)" = "roundtrip $VERSION" ] || [ "${target%%-*}" != "$(uname -m)" ] ||
      fail "$program --version says something else"
    name="roundtrip-$VERSION-$target"
    flags=(--features full)
    if [ "$kind" = slim ]; then name="roundtrip-slim-$VERSION-$target"; flags=(--no-default-features); fi
    # The manual and completions come from the definition of the command line, which is the same on every target.
    runs="$program"
    if [ "${target%%-*}" != "$(uname -m)" ]; then runs="$scratch/$kind-${host%%-*}-unknown-linux-musl"; fi
    [ -e "$runs" ] || fail "the manual of $target needs the program of ${host%%-*}-unknown-linux-musl; build that first"
    tree="$scratch/$name"
    mkdir -p "$tree/usr/bin" "$tree/usr/share/man/man1" "$tree/usr/share/doc/roundtrip" \
      "$tree/usr/share/bash-completion/completions" "$tree/usr/share/zsh/vendor-completions" "$tree/usr/share/fish/vendor_completions.d"
    install -m 755 "$program" "$tree/usr/bin/roundtrip"
    "$runs" man | gzip -9n > "$tree/usr/share/man/man1/roundtrip.1.gz"
    for verb in $("$runs" --help | sed -n '/^Verbs:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
      if [ "$verb" = help ]; then continue; fi
      "$runs" man "$verb" | gzip -9n > "$tree/usr/share/man/man1/roundtrip-$verb.1.gz"
    done
    "$runs" completions bash > "$tree/usr/share/bash-completion/completions/roundtrip"
    "$runs" completions zsh > "$tree/usr/share/zsh/vendor-completions/_roundtrip"
    "$runs" completions fish > "$tree/usr/share/fish/vendor_completions.d/roundtrip.fish"
    cp LICENSE-MIT LICENSE-APACHE README.md "$tree/usr/share/doc/roundtrip/"
    tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C "$tree/usr" -c . | gzip -9n > "$out/$name.tar.gz"
    cargo metadata --format-version 1 --locked --filter-platform "$target" --manifest-path crates/roundtrip/Cargo.toml "${flags[@]}" |
      python3 $here/sbom.py "$name" "$target" > "$out/$name.cdx.json"
    python3 $here/check_sbom.py "$out/$name.cdx.json"
    if [ "$kind" = full ]; then
      python3 $here/bundle.py deb "$tree" "$VERSION" "$target" "$out/roundtrip_${VERSION}_$target.deb"
      python3 $here/bundle.py wheel "$program" "$VERSION" "$target" "$out"
    else
      bytes="$(stat --format %s "$program")"
      [ "$bytes" -le "$MAX_SLIM_BYTES" ] || fail "the slim program has $bytes bytes, more than $MAX_SLIM_BYTES"
      if [ ! -e "$scratch/full-$target" ]; then python3 $here/bundle.py wheel "$program" "$VERSION" "$target" "$out"; fi
    fi
    python3 $here/bundle.py image "$program" "$VERSION" "$target" "$out/$name.oci.tar"
  done
  DIST_OUT="$out" bash $here/start.sh "$target" "$VERSION"
done
(cd "$out" && sha256sum -- * > SHA256SUMS && sha256sum --quiet --check SHA256SUMS)
echo "dist: sizes in bytes"
for target in "${targets[@]}"; do
  for kind in full slim; do
    if [ -e "$scratch/$kind-$target" ]; then stat --format "%s  $kind program, $target" "$scratch/$kind-$target"; fi
  done
done
(cd "$out" && stat --format '%s  %n' -- *)
