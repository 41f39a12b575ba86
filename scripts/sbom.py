#!/usr/bin/env python3
"""Writes the SPDX 2.3 list of the parts of tr, from the output of `cargo metadata` on standard input.

Usage: sbom.py VERSION SECONDS [NAME=VERSION=LICENCE]...

SECONDS since 1970: the time of the sources. The rest: libraries of the system that are linked into tr.
"""
import datetime
import hashlib
import json
import sys


def ident(package):
    """An SPDX identifier: letters, digits, dots and hyphens."""
    name = f"{package['name']}-{package['version']}"
    return "SPDXRef-" + "".join(c if c.isalnum() or c in ".-" else "-" for c in name)


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


def part(package):
    """A package of cargo, or a library of the system."""
    out = {
        "SPDXID": ident(package),
        "name": package["name"],
        "versionInfo": package["version"],
        "downloadLocation": package.get("repository") or "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": (package["license"] or "NOASSERTION").replace("/", " OR "),
        "copyrightText": "NOASSERTION",
    }
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
    parts = []
    parts.extend(part(it) for it in packages)
    libraries = [it.split("=") for it in sys.argv[3:]]
    libraries = [{"name": name, "version": version, "license": licence} for name, version, licence in libraries]
    for it in libraries:
        parts.append(part(it))
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
