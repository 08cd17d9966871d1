#!/usr/bin/env python3
"""Prints apt sources (deb822) for a Debian release, derived from the sources that this machine already has.

    apt-sources.py this       this machine's release, with its security updates, and nothing else that is configured here
    apt-sources.py RELEASE    the main archive of another release, from the same mirror with the same keys (a source without it is no harm)

No mirror is named here, so this works with whatever mirror the machine was set up for.
"""

import glob
import re
import sys

OPTIONS = {"signed-by": "Signed-By", "arch": "Architectures", "trusted": "Trusted"}


def this_release():
    try:
        with open("/etc/os-release", encoding="utf-8") as file:
            found = re.search(r'^VERSION_CODENAME="?([a-z]+)"?$', file.read(), re.M)
    except OSError:
        found = None
    if not found:
        sys.exit("apt-sources: /etc/os-release names no release; this needs Debian")
    return found.group(1)


def read(paths):
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                yield file.read()
        except OSError:
            continue


def configured():
    """Yields each source as a dict of deb822 fields."""
    for text in read(sorted(glob.glob("/etc/apt/sources.list.d/*.sources"))):
        text = re.sub(r"^#.*\n", "", text, flags=re.M)
        for stanza in re.split(r"\n[ \t]*\n", text):
            # A line that starts with a blank goes on with the field before it (a key block, for one).
            fields = dict(re.findall(r"^([A-Za-z-]+):[ \t]*(.*(?:\n[ \t].*)*)", stanza, re.M))
            if "deb" in fields.get("Types", "").split() and fields.get("Enabled", "yes") != "no":
                yield {**fields, "Types": "deb"}
    for text in read(["/etc/apt/sources.list", *sorted(glob.glob("/etc/apt/sources.list.d/*.list"))]):
        for options, uri, suite, components in re.findall(
            r"^[ \t]*deb[ \t]+(?:\[([^\]]*)\][ \t]+)?(\S+)[ \t]+(\S+)[ \t]+([^#\n]+)", text, re.M
        ):
            pairs = dict(option.split("=", 1) for option in options.split() if "=" in option)
            kept = {OPTIONS[key]: value.replace(",", " ") for key, value in pairs.items() if key in OPTIONS}
            yield {"Types": "deb", "URIs": uri, "Suites": suite, "Components": components.strip(), **kept}


def main():
    wanted, code = sys.argv[1], this_release()
    sources = [source for source in configured() if "main" in source.get("Components", "").split()]
    if wanted == "this":
        own = {code, f"{code}-updates", f"{code}-security", f"{code}/updates"}
        chosen = []
        for source in sources:
            suites = [suite for suite in source["Suites"].split() if suite in own]
            if suites:
                chosen.append({**source, "Suites": " ".join(suites)})
    else:
        chosen = [{**source, "Suites": wanted, "Components": "main"} for source in sources if code in source["Suites"].split()]
    if not chosen:
        sys.exit(f"apt-sources: this machine's apt configuration has no source for {code}")
    print("\n\n".join("\n".join(f"{key}: {value}" for key, value in source.items()) for source in chosen))


main()
