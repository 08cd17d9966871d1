#!/usr/bin/env bash
# Checks the shell scripts with shellcheck and the Python ones for syntax. Where there is no shellcheck, bash's own check has to do;
# with CI set, that is an error.
set -euo pipefail
. "$(dirname "$0")/common.sh"

cd "$root"
if command -v shellcheck >/dev/null; then
  shellcheck -x -P scripts scripts/*.sh
elif [ -n "${CI:-}" ]; then
  die "shellcheck is missing (on Debian: apt-get install shellcheck)"
else
  say "no shellcheck here (on Debian: apt-get install shellcheck); checking syntax only"
  for script in scripts/*.sh; do bash -n "$script"; done
fi
python3 - scripts/*.py guest-examples/*/*.py <<'PY'
import ast, pathlib, sys
for name in sys.argv[1:]:
    ast.parse(pathlib.Path(name).read_text(encoding="utf-8"), name)
PY
