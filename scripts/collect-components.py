#!/usr/bin/env python3
"""Reads cargo's messages from stdin and copies each component that was built to FOLDER/<crate's folder>.wasm.

    cargo build --message-format json ... | collect-components.py FOLDER

A copy that is the same already is left alone, so that nothing that depends on it looks out of date.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys


def components(messages):
    """Yields (name, path) of each component that cargo made or found up to date."""
    for line in messages:
        if not line.startswith("{"):
            continue
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and "cdylib" in message["target"]["crate_types"]:
            for path in message["filenames"]:
                if path.endswith(".wasm"):
                    yield pathlib.Path(message["manifest_path"]).parent.name, pathlib.Path(path)


def main():
    folder = pathlib.Path(sys.argv[1])
    changed = []
    for name, built in components(sys.stdin):
        target = folder / f"{name}.wasm"
        if target.exists() and target.read_bytes() == built.read_bytes():
            continue
        # Never half a file under the final name: a host may be reading the folder.
        partial = target.with_suffix(".partial")
        shutil.copyfile(built, partial)
        os.replace(partial, target)
        changed.append(str(target))
    if changed:
        check = pathlib.Path(__file__).with_name("check-component.py")
        sys.exit(subprocess.run([sys.executable, check, *changed], check=False).returncode)


main()
