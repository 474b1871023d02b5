#!/usr/bin/env python3
"""Lists what a built program consists of: licences with their texts, and a bill of materials (SBOM) in the format CycloneDX 1.5.

    .ci/dependencies.py FOLDER [--target TRIPLE] [--no-default-features] [--features NAMES]

Writes FOLDER/LICENSES-OF-DEPENDENCIES.txt and FOLDER/sbom.cdx.json, of the crates that end up in the program on this platform or on
TRIPLE. Needs cargo and its registry, nothing else.
"""

import json
import subprocess
import sys
from pathlib import Path

TEXTS = ("license", "licence", "copying", "notice", "unlicense")


def cargo(*arguments):
    return subprocess.check_output(["cargo", *arguments], text=True)


def linked(options):
    """The package itself, those that it is linked with, and which of them needs which: not what only builds or tests it.

    `cargo metadata` describes packages, but names optional ones that no feature switches on; `cargo tree` knows which are in."""
    platform = ["--filter-platform" if option == "--target" else option for option in options]
    data = json.loads(cargo("metadata", "--locked", "--format-version", "1", *platform))
    tree = cargo("tree", "--locked", "--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}", *options)
    names = {tuple(line.split()[:2]) for line in tree.splitlines() if line.strip()}
    packages = {package["id"]: package for package in data["packages"] if (package["name"], "v" + package["version"]) in names}
    nodes = {node["id"]: node["deps"] for node in data["resolve"]["nodes"] if node["id"] in packages}
    is_normal = lambda need: any(kind["kind"] is None for kind in need["dep_kinds"])
    edges = {i: [need["pkg"] for need in needs if is_normal(need) and need["pkg"] in packages] for i, needs in nodes.items()}
    root = packages.pop(data["resolve"]["root"])
    return root, sorted(packages.values(), key=lambda package: (package["name"], package["version"])), edges


def name_of(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def licence_texts(package):
    folder = Path(package["manifest_path"]).parent
    named = [folder / package["license_file"]] if package.get("license_file") else []
    files = named or sorted(path for path in folder.iterdir() if path.is_file() and path.name.lower().startswith(TEXTS))
    return [(path.name, path.read_text(errors="replace").strip()) for path in files]


def main():
    out = Path(sys.argv[1])
    root, packages, edges = linked(sys.argv[2:])
    by_id = {package["id"]: package for package in [root, *packages]}
    out.mkdir(parents=True, exist_ok=True)

    seen, pages = {}, []
    for package in packages:
        lines = [f"{package['name']} {package['version']}", f"licence: {package['license'] or 'see its file'}"]
        lines += [f"by: {', '.join(package['authors'])}"] if package["authors"] else []
        for name, text in licence_texts(package):
            where = seen.setdefault(text, f"{package['name']} {package['version']}, {name}")
            lines.append(f"\n{name}:\n\n{text}" if where.startswith(lines[0] + ",") else f"{name}: as that of {where}")
        pages.append("\n".join(lines))
    line = "\n\n" + "=" * 80 + "\n\n"
    head = f"{root['name']} {root['version']} contains {len(packages)} crates of others."
    (out / "LICENSES-OF-DEPENDENCIES.txt").write_text(line.join([head, *pages]) + "\n")

    component = lambda package, kind: {
        "type": kind,
        "bom-ref": name_of(package),
        "name": package["name"],
        "version": package["version"],
        "purl": name_of(package),
        **({"licenses": [{"expression": package["license"].replace("/", " OR ")}]} if package["license"] else {}),
    }
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(root, "application")},
        "components": [component(package, "library") for package in packages],
        "dependencies": [
            {"ref": name_of(package), "dependsOn": sorted(name_of(by_id[i]) for i in edges[package["id"]])} for package in by_id.values()
        ],
    }
    (out / "sbom.cdx.json").write_text(json.dumps(bill, indent=1) + "\n")
    print(f"{out}: {len(packages)} crates")


main()
