#!/usr/bin/env bash
# Makes a Rust toolchain for wasm32-wasip2 from Debian's packages, for machines where rustup cannot add the target.
#
#   wasm-toolchain.sh TOOLCHAIN DIR           makes it in DIR; TOOLCHAIN is a rustup toolchain that lends cargo and the linker
#   wasm-toolchain.sh --check TOOLCHAIN DIR   succeeds when DIR is whole and made for this TOOLCHAIN
#
# What goes in, and why it is enough:
#   rustc            Debian's rustc-web, the recent rustc that Debian's stable releases carry for browsers, unpacked into DIR
#   standard library compiled here, once, from the source package that belongs to that rustc
#   wasi-libc        crt1-command.o, crt1-reactor.o and libc.a of a newer Debian release (this release's own is too old)
#   linker           wasm-component-ld and rust-lld, which every rustup toolchain has
#
# Packages are downloaded and unpacked, never installed: no root needed, and neither the system nor its package lists change.
# The mirror is the one that this machine's own apt sources name.
set -euo pipefail
. "$(dirname "$0")/common.sh"

target=wasm32-wasip2
newer_releases="forky trixie sid"
layout=1 # raise it when what this script makes changes

check_only=
[ "${1:-}" != --check ] || { check_only=1; shift; }
[ $# = 2 ] || die "usage: wasm-toolchain.sh [--check] TOOLCHAIN DIR"
toolchain=$1
dir=$2

stamp() { echo "layout $layout, $(rustup run "$toolchain" rustc -V)"; }
whole() { [ -e "$dir/stamp" ] && [ "$(cat "$dir/stamp")" = "$(stamp)" ]; }

if [ -n "$check_only" ]; then whole; exit; fi
lock wasm-toolchain
! whole || exit 0 # another process made it while this one waited

for tool in apt-get apt-cache dpkg-deb python3 cc ar; do
  command -v "$tool" >/dev/null ||
    die "$tool is missing. Without it this needs Debian 12 or newer with a C compiler and Python 3; elsewhere, get the target with
'rustup target add $target' on a network that reaches rustup's servers, or install rustup from a source that has it"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work" # root's apt-get downloads as the user _apt

# apt-get or apt-cache with package lists of its own, made from the sources of one release.
apt() { # RELEASE TOOL ARGS...
  local at=$work/apt-$1 tool=$2; shift 2
  "$tool" -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$at/sources" -o "Dir::State::Lists=$at/lists" \
    -o "Dir::Cache=$at/cache" "$@"
}
fetch_lists() { # RELEASE
  local at=$work/apt-$1
  mkdir -p "$at/sources" "$at/lists/partial" "$at/cache/archives/partial" "$at/packages"
  python3 "$root/scripts/apt-sources.py" "$1" > "$at/sources/weir.sources" || return
  [ "$(id -u)" != 0 ] || chown _apt "$at/lists/partial" "$at/packages" 2>/dev/null || true
  # A source that lacks the release makes this fail although another has it: whether the packages come down is what counts.
  apt "$1" apt-get -qq update >&2 || true
}
unpack() { # RELEASE INTO PACKAGE...
  local at=$work/apt-$1 release=$1 into=$2 package; shift 2
  (cd "$at/packages" && apt "$release" apt-get -qq download "$@" >&2) || return
  for package in "$at"/packages/*.deb; do dpkg-deb -x "$package" "$into"; done
}

rm -rf "$dir"
mkdir -p "$dir/bin" "$dir/debian"

say "downloading rustc and the source of its standard library"
fetch_lists this || die "this release's package lists cannot be read: the message above says why"
# What apt would install now, plus what may be installed already but is needed here as a file.
mapfile -t packages < <({
  printf '%s\n' rustc-web rust-web-src
  apt this apt-get -s -o Debug::NoLocking=1 install --no-install-recommends rustc-web rust-web-src | awk '/^Inst/ { print $2 }'
  apt this apt-cache depends rustc-web | awk '/Depends: libstd-rust-web/ { print $2 }'
} | sort -u)
unpack this "$dir/debian" "${packages[@]}" ||
  die "this release of Debian has no rustc-web and rust-web-src; get the target with 'rustup target add $target' instead"

say "looking for a wasi-libc with $target"
libc=
for release in $newer_releases; do
  if fetch_lists "$release" && unpack "$release" "$work/libc-$release" wasi-libc &&
     [ -e "$work/libc-$release/usr/lib/$target/libc.a" ]; then
    libc=$work/libc-$release/usr/lib/$target
    break
  fi
done
[ -n "$libc" ] || die "none of the Debian releases $newer_releases gave a wasi-libc with $target"
say "wasi-libc from $release"

# --- a folder that rustup takes for a toolchain ---------------------------------------------------------------------------
host_libs=$(dirname "$(find "$dir/debian/usr/lib" -name 'librustc_driver-*.so' | head -n 1)")
# rustc finds its own libraries where Debian would have installed them, and takes no sysroot from its own path.
cat > "$dir/bin/rustc" <<WRAPPER
#!/bin/sh
LD_LIBRARY_PATH="$host_libs\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}" exec "$dir/debian/usr/bin/rustc" --sysroot "$dir" "\$@"
WRAPPER
chmod +x "$dir/bin/rustc"
host=$("$dir/bin/rustc" -vV | sed -n 's/^host: //p')
[ -n "$host" ] || die "Debian's rustc does not run here"
rustlib=$dir/lib/rustlib
mkdir -p "$rustlib/$host" "$rustlib/$target/lib/self-contained"
ln -s "$(rustup which --toolchain "$toolchain" cargo)" "$dir/bin/cargo"
ln -s "$dir/debian/usr/lib/rustlib/$host/lib" "$rustlib/$host/lib"
ln -s "$(rustup run "$toolchain" rustc --print sysroot)/lib/rustlib/$host/bin" "$rustlib/$host/bin"
source=$(dirname "$(find "$dir/debian" -path '*/library/Cargo.lock' | head -n 1)")
mkdir -p "$rustlib/src/rust"
ln -s "$source" "$rustlib/src/rust/library"

cp "$libc"/{crt1-command.o,crt1-reactor.o,libc.a} "$rustlib/$target/lib/self-contained/"
# Before forky the stubs of threads, which the standard library refers to, lie in an archive of their own.
if [ -e "$libc/libwasi-emulated-pthread.a" ]; then
  printf 'create %s\naddlib %s\naddlib %s\nsave\nend\n' "$rustlib/$target/lib/self-contained/libc.a" \
    "$libc/libc.a" "$libc/libwasi-emulated-pthread.a" | ar -M
fi

# --- the standard library, once -------------------------------------------------------------------------------------------
say "compiling the standard library for $target (about a minute)"
mkdir -p "$work/std/src"
: > "$work/std/src/lib.rs"
cat > "$work/std/Cargo.toml" <<'TOML'
[package]
name = "std-for-guests"
version = "0.0.0"
edition = "2024"

[profile.release]
panic = "abort"
debug = 0

[workspace]
TOML
# Without bitcode in the standard library, `lto = true` in a plugin fails.
(cd "$work/std" && env -u RUSTUP_TOOLCHAIN -u CARGO_TARGET_DIR -u CARGO_ENCODED_RUSTFLAGS RUSTC_BOOTSTRAP=1 RUSTC="$dir/bin/rustc" \
  RUSTFLAGS="-C embed-bitcode=yes" "$dir/bin/cargo" build -q --release --target "$target" -Zbuild-std=std,panic_abort >&2)
find "$work/std/target/$target/release" -name '*.rlib' ! -name '*std_for_guests*' -exec cp {} "$rustlib/$target/lib/" \;

# Crates compiled against an earlier standard library of the same rustc version would not be found stale.
rm -rf "$cache/guest-target/$target"
stamp > "$dir/stamp"
say "done"
