"""SBOM of a program in CycloneDX 1.6 (JSON), from `cargo metadata`.

    cargo metadata --format-version 1 --locked --filter-platform TARGET [features] | sbom.py NAME TARGET > NAME.cdx.json

Lists what is linked into the program: packages that its normal and build dependencies reach, without those for tests.
The same input gives the same bytes.
"""

import json
import sys
import uuid


def reached(metadata, root):
    """Identifiers of the packages that are reached from `root`, with each package's dependencies."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    edges, pending = {}, [root]
    while pending:
        package = pending.pop()
        if package in edges:
            continue
        built = [
            dependency["pkg"]
            for dependency in nodes[package]["deps"]
            if any(kind["kind"] != "dev" for kind in dependency["dep_kinds"])
        ]
        edges[package] = sorted(built)
        pending += built
    return edges


def component(package, purl):
    kind = "application" if package["name"] == "roundtrip" else "library"
    entry = {"type": kind, "bom-ref": purl, "name": package["name"], "version": package["version"], "purl": purl}
    if package.get("license"):
        # Cargo once allowed `MIT/Apache-2.0`, which SPDX writes with OR.
        entry["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if package.get("repository"):
        entry["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return entry


def main():
    name, target = sys.argv[1:]
    metadata = json.load(sys.stdin)
    packages = {package["id"]: package for package in metadata["packages"]}
    root = next(key for key, package in packages.items() if package["name"] == "roundtrip")
    edges = reached(metadata, root)
    purls = {key: f"pkg:cargo/{packages[key]['name']}@{packages[key]['version']}" for key in edges}
    libraries = sorted((key for key in edges if key != root), key=lambda key: purls[key])
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": "urn:uuid:" + str(uuid.uuid5(uuid.NAMESPACE_URL, name + "".join(sorted(purls.values())))),
        "version": 1,
        "metadata": {
            "component": component(packages[root], purls[root]),
            "properties": [{"name": "cargo:target", "value": target}],
        },
        "components": [component(packages[key], purls[key]) for key in libraries],
        "dependencies": [
            {"ref": purls[key], "dependsOn": sorted({purls[other] for other in edges[key]})}
            for key in sorted(edges, key=lambda key: purls[key])
        ],
    }
    json.dump(bom, sys.stdout, indent=1)
    print()


main()
