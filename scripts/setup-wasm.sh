#!/usr/bin/env bash
# Prints the rustup toolchain that compiles Rust for wasm32-wasip2, after making one where there is none:
#
#   RUSTUP_TOOLCHAIN=$(scripts/setup-wasm.sh) cargo build --release --target wasm32-wasip2
#
# 1. The active toolchain has the target: nothing to do.
# 2. An earlier run made the fallback: nothing to do.
# 3. `rustup target add` can fetch the target.
# 4. The fallback, on Debian: Debian's rustc, the source of its standard library, and wasi-libc become a toolchain in the cache
#    folder (wasm-toolchain.sh). Needs no root and changes nothing outside the cache.
#
# WEIR_WASM_NO_RUSTUP=1 leaves out 1 and 3, so that the fallback can be tested where rustup has the target.
set -euo pipefail
. "$(dirname "$0")/common.sh"

target=wasm32-wasip2
fallback=$cache/wasm-toolchain
rustup_seconds=120

command -v rustup >/dev/null ||
  die "rustup is missing; it is how this project gets its Rust: install it, then a stable toolchain with 'rustup toolchain install stable'"

# Called from a build that already runs on the fallback: judge the toolchain beneath it.
[ "${RUSTUP_TOOLCHAIN:-}" != "$fallback" ] || unset RUSTUP_TOOLCHAIN
active=$(cd "$root" && rustup show active-toolchain | awk 'NR == 1 { print $1 }')
[ -n "$active" ] || die "rustup has no active toolchain: 'rustup default stable' makes one"

has_target() { rustup target list --installed --toolchain "$active" 2>/dev/null | grep -qx "$target"; }
may_use_rustup() { [ "${WEIR_WASM_NO_RUSTUP:-}" != 1 ]; }

if may_use_rustup && has_target; then
  echo "$active"
elif "$root/scripts/wasm-toolchain.sh" --check "$active" "$fallback"; then
  echo "$fallback"
elif may_use_rustup && timeout "$rustup_seconds" rustup target add --toolchain "$active" "$target" >&2 && has_target; then
  echo "$active"
else
  say "no $target from rustup; making a toolchain from Debian's packages in $fallback"
  "$root/scripts/wasm-toolchain.sh" "$active" "$fallback" >&2
  echo "$fallback"
fi
