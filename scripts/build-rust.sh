#!/usr/bin/env bash
# Builds the sink plugins of a Cargo workspace: FOLDER/<crate's folder>.wasm for each library that is a cdylib.
#
#   build-rust.sh WORKSPACE FOLDER
#
# All workspaces share one target folder, so what they have in common (the bindings generator, above all) is compiled once.
set -euo pipefail
. "$(dirname "$0")/common.sh"

[ $# = 2 ] || die "usage: build-rust.sh WORKSPACE FOLDER"
workspace=$root/$1
folder=$root/$2
mkdir -p "$folder"

toolchain=$("$root/scripts/setup-wasm.sh")
cd "$workspace"
# In CI a lock file that does not fit is a mistake; elsewhere somebody is just adding a dependency.
RUSTUP_TOOLCHAIN=$toolchain CARGO_TARGET_DIR=$cache/guest-target \
  cargo build --release --target wasm32-wasip2 ${CI:+--locked} --message-format json-render-diagnostics |
  python3 "$root/scripts/collect-components.py" "$folder"
