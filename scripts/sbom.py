#!/usr/bin/env python3
"""Writes the SPDX 2.3 list of the parts of tr, from the output of `cargo metadata` on standard input.

Usage: sbom.py VERSION SECONDS [NAME=VERSION=LICENCE]...

SECONDS since 1970: the time of the sources. The rest: libraries of the system that are linked into tr.
Checksums are those of Cargo.lock: of the packages as the registry has them. A licence is concluded to be the one that
the package declares, which scripts/deny.sh holds to a list.
"""

import datetime
import hashlib
import json
import os
import re
import sys

LOCK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../Cargo.lock")


def ident(package):
    """An SPDX identifier: letters, digits, dots and hyphens."""
    name = f"{package['name']}-{package['version']}"
    return "SPDXRef-" + "".join(c if c.isalnum() or c in ".-" else "-" for c in name)


def checksums():
    """The SHA-256 of each package of the registry, by its name and version."""
    with open(LOCK, encoding="utf-8") as lock:
        blocks = lock.read().split("[[package]]")
    blocks = (dict(re.findall(r'^(name|version|checksum) = "(.*)"$', block, re.M)) for block in blocks)
    return {(it["name"], it["version"]): it["checksum"] for it in blocks if "checksum" in it}


def linked(metadata):
    """The packages that are linked into tr: no build tools, no tests."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    found, open_ = set(), [metadata["resolve"]["root"]]
    while open_:
        at = open_.pop()
        if at not in found:
            found.add(at)
            for dependency in nodes[at]["deps"]:
                if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                    open_.append(dependency["pkg"])
    return found


def part(package, known):
    """A package of cargo, or a library of the system."""
    licence = (package["license"] or "NOASSERTION").replace("/", " OR ")
    out = {
        "SPDXID": ident(package),
        "name": package["name"],
        "versionInfo": package["version"],
        "downloadLocation": package.get("repository") or "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": licence,
        "licenseDeclared": licence,
        "copyrightText": "NOASSERTION",
    }
    checksum = known.get((package["name"], package["version"]))
    if checksum:
        out["checksums"] = [{"algorithm": "SHA256", "checksumValue": checksum}]
    if package.get("source"):
        url = f"pkg:cargo/{package['name']}@{package['version']}"
        out["externalRefs"] = [
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": url}
        ]
    return out


def main():
    version, seconds = sys.argv[1], int(sys.argv[2])
    metadata = json.load(sys.stdin)
    wanted = linked(metadata)
    packages = [it for it in metadata["packages"] if it["id"] in wanted]
    packages.sort(key=lambda it: (it["name"], it["version"]))
    known = checksums()
    parts = [part(it, known) for it in packages]
    libraries = [it.split("=") for it in sys.argv[3:]]
    libraries = [{"name": name, "version": version, "license": licence} for name, version, licence in libraries]
    for it in libraries:
        parts.append(part(it, known))
    root = next(it for it in packages if it["id"] == metadata["resolve"]["root"])
    names = "\n".join(f"{it['name']} {it['version']}" for it in packages)
    time = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"tr-{version}",
        "documentNamespace": f"urn:tr:{version}:{hashlib.sha256(names.encode()).hexdigest()}",
        "creationInfo": {
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": ["Tool: scripts/sbom.py"],
        },
        "packages": parts,
        "relationships": [
            {
                "spdxElementId": "SPDXRef-DOCUMENT",
                "relationshipType": "DESCRIBES",
                "relatedSpdxElement": ident(root),
            }
        ]
        + [
            {
                "spdxElementId": ident(root),
                "relationshipType": "DEPENDS_ON",
                "relatedSpdxElement": ident(it),
            }
            for it in packages + libraries
            if it is not root
        ],
    }
    json.dump(document, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
