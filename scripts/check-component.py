#!/usr/bin/env python3
"""Checks that files are WebAssembly components that export the contract, and says how large each one is.

    check-component.py FILE...

Catches what a builder can get wrong without noticing: a core module instead of a component, or a world without the contract.
The host checks far more when it loads a plugin.
"""

import pathlib
import sys

CONTRACT = "weir:sink/sink@0.1.0"
# A component's first 8 bytes: the magic number, version 13, layer 1 (a core module has version 1, layer 0).
COMPONENT = b"\0asm\x0d\0\x01\0"
EXPORTS = 11  # a section id of the component binary format


def number(data, at):
    """An unsigned LEB128 number, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def sections(data):
    at = len(COMPONENT)
    while at < len(data):
        kind = data[at]
        size, at = number(data, at + 1)
        yield kind, data[at : at + size]
        at += size


def first_name(section):
    """The first name in a section of exports. Tools write one entry a section, which is all that is needed here."""
    _, at = number(section, 0)
    size, at = number(section, at + 1)
    return section[at : at + size].decode()


def complaint(data):
    if not data.startswith(COMPONENT):
        return "is not a component"
    exports = [first_name(section) for kind, section in sections(data) if kind == EXPORTS]
    if CONTRACT not in exports:
        return f"does not export {CONTRACT}, but {', '.join(exports) or 'nothing'}"
    return None


def main():
    failed = False
    for name in sys.argv[1:]:
        data = pathlib.Path(name).read_bytes()
        wrong = complaint(data)
        if wrong:
            failed = True
            print(f"check-component: {name} {wrong}", file=sys.stderr)
        else:
            print(f"{name}: {len(data) // 1024} KiB", file=sys.stderr)
    sys.exit(1 if failed else 0)


main()
