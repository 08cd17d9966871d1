#!/usr/bin/env bash
# Checks that this machine has what the project is built with, and names all that is missing at once, with what to install.
# Then makes sure that Rust can be compiled to WebAssembly components.
set -euo pipefail
. "$(dirname "$0")/common.sh"

missing=()
need() { # COMMAND REMEDY
  command -v "$1" >/dev/null || missing+=("$1: $2")
}
at_least() { [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; } # MINIMUM VERSION

rust_wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -n 1)
python_wanted=3.9
node_wanted=18

need rustup "install Rust with rustup"
need cc "a C compiler; on Debian: apt-get install build-essential"
need python3 "on Debian: apt-get install python3 python3-venv"
need node "Node.js $node_wanted or newer; on Debian: apt-get install nodejs npm"
need npm "comes with Node.js; on Debian: apt-get install npm"

if command -v rustup >/dev/null; then
  rust=$(cd "$root" && rustc -V 2>/dev/null | awk '{ print $2 }') || true
  [ -n "$rust" ] || missing+=("rustc: rustup has no toolchain; 'rustup default stable' installs one")
  [ -z "$rust" ] || at_least "$rust_wanted" "$rust" || missing+=("rustc $rust_wanted or newer: this is $rust; run 'rustup update stable'")
fi
if command -v python3 >/dev/null; then
  if python=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])'); then
    at_least "$python_wanted" "$python" || missing+=("python3 $python_wanted or newer: this is $python")
    python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=("python3's venv; on Debian: apt-get install python3-venv")
  else
    missing+=("python3: it is there and does not run; the message above says why")
  fi
fi
if command -v node >/dev/null; then
  if node=$(node -p process.versions.node); then
    at_least "$node_wanted" "$node" || missing+=("node $node_wanted or newer: this is $node")
  else
    missing+=("node: it is there and does not run; the message above says why")
  fi
fi

if [ ${#missing[@]} -gt 0 ]; then
  say "this machine lacks:"
  printf '  %s\n' "${missing[@]}" >&2
  exit 1
fi
say "Rust $rust, Python $python, Node.js $node, a C compiler: all there"
say "plugins are compiled with the toolchain $("$root/scripts/setup-wasm.sh")"
