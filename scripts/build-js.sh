#!/usr/bin/env bash
# Builds a sink plugin written in JavaScript with componentize-qjs, unless COMPONENT is newer than everything it is made of.
#
#   build-js.sh EXAMPLE WORLD COMPONENT
#
# EXAMPLE holds the modules, of which sink.js is the first, wit/ with the world, and package-lock.json with the builder's version.
# The builder lives in the cache folder.
set -euo pipefail
. "$(dirname "$0")/common.sh"

[ $# = 3 ] || die "usage: build-js.sh EXAMPLE WORLD COMPONENT"
example=$root/$1
world=$2
component=$root/$3
stale "$component" "$example"/*.js "$example/wit" "$example/package-lock.json" "$root/scripts/build-js.sh" || exit 0

builder=$cache/js-builder
lock js-builder
if ! cmp -s "$example/package-lock.json" "$builder/installed-lock.json"; then
  say "installing componentize-qjs"
  rm -rf "$builder"
  mkdir -p "$builder"
  cp "$example"/package.json "$example"/package-lock.json "$builder/"
  (cd "$builder" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
  cp "$example/package-lock.json" "$builder/installed-lock.json"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$(dirname "$component")"
# --sync: the contract is of WASI 0.2; without it the component would want the asynchronous calls of 0.3.
"$builder/node_modules/.bin/componentize-qjs" --sync --wit "$example/wit" --world "$world" --js "$example/sink.js" \
  --output "$work/component.wasm" > "$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
python3 "$root/scripts/check-component.py" "$work/component.wasm" 2> "$work/check" || { cat "$work/check" >&2; exit 1; }
cp "$work/component.wasm" "$component.partial"
mv "$component.partial" "$component"
sed "s#$work/component.wasm#$component#" "$work/check" >&2
