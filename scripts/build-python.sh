#!/usr/bin/env bash
# Builds a sink plugin written in Python with componentize-py, unless COMPONENT is newer than everything it is made of.
#
#   build-python.sh EXAMPLE COMPONENT
#
# EXAMPLE holds the modules, of which app.py is the first, and requirements.txt with the builder's version. The builder lives in a
# virtual environment in the cache folder.
set -euo pipefail
. "$(dirname "$0")/common.sh"

[ $# = 2 ] || die "usage: build-python.sh EXAMPLE COMPONENT"
example=$root/$1
component=$root/$2
contract=$root/wit/since-v0.1.0
stale "$component" "$example"/*.py "$example/requirements.txt" "$contract" "$root/scripts/build-python.sh" || exit 0

builder=$cache/python-builder
lock python-builder
if ! cmp -s "$example/requirements.txt" "$builder/requirements.txt"; then
  say "installing componentize-py"
  rm -rf "$builder"
  python3 -m venv "$builder" ||
    die "Python cannot make a virtual environment (on Debian: apt-get install python3-venv)"
  "$builder/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r "$example/requirements.txt" >&2
  cp "$example/requirements.txt" "$builder/"
fi

# The builder writes beside the modules that it reads.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/modules"
cp "$example"/*.py "$work/modules/"
mkdir -p "$(dirname "$component")"
"$builder/bin/componentize-py" --quiet --wit-path "$contract" --world plugin \
  componentize --python-path "$work/modules" --output "$work/component.wasm" app >&2
python3 "$root/scripts/check-component.py" "$work/component.wasm" 2> "$work/check" || { cat "$work/check" >&2; exit 1; }
cp "$work/component.wasm" "$component.partial"
mv "$component.partial" "$component"
sed "s#$work/component.wasm#$component#" "$work/check" >&2
