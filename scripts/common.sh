# shellcheck shell=bash
# What the scripts of this folder share. Sourced, never run.

# shellcheck disable=SC2034 # for the scripts that source this
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Everything that is costly to make and cheap to lose: toolchains, builders, compiled crates.
cache=${WEIR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/weir}
me=$(basename "$0" .sh)
mkdir -p "$cache"

# Text for people goes to stderr: stdout carries results.
say() { echo "$me: $*" >&2; }
die() { say "$*"; exit 1; }

# Waits until no other process holds the lock NAME, and keeps it until this one ends. Where there is no flock (macOS),
# two builds at once are the caller's risk.
lock() { # NAME
  command -v flock >/dev/null || return 0
  exec 9> "$cache/$1.lock"
  flock 9
}

# True when OUTPUT is missing or older than any of the files and folders given.
stale() { # OUTPUT INPUT...
  local output=$1; shift
  [ -e "$output" ] || return 0
  [ -n "$(find -L "$@" -type f -newer "$output" -print -quit)" ]
}
