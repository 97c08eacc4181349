#!/usr/bin/env bash
# The bill of materials names every library that the programs load, as dpkg knows it.
#   tests/install/sbom.sh BUILD
set -euo pipefail
programs=("$1/bin/speedo" "$1/bin/speedo-master" "$1/bin/speedo-worker" "$1/bin/speedo-parser")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

SOURCE_DATE_EPOCH=1700000000 conf/packages/sbom.py "${programs[@]}" >"$place/bom.json"
SOURCE_DATE_EPOCH=1700000000 conf/packages/sbom.py "${programs[@]}" | cmp - "$place/bom.json"
if conf/packages/sbom.py "$place/absent" 2>"$place/errors"; then exit 1; fi
grep -q 'absent is no program' "$place/errors"

python3 - "$place/bom.json" "${programs[@]}" <<'END'
import hashlib, json, subprocess, sys
bom = json.load(open(sys.argv[1]))
assert (bom["bomFormat"], bom["specVersion"]) == ("CycloneDX", "1.5")
assert bom["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"
assert bom["serialNumber"].startswith("urn:uuid:")
parts = {each["name"]: each for each in bom["components"]}
assert len(parts) == len(bom["components"]), "a component stands there twice"
refs = {each["bom-ref"] for each in bom["components"]} | {"SpeeDO"}
for each in bom["dependencies"]:
    assert each["ref"] in refs and set(each["dependsOn"]) <= refs, each
for program in sys.argv[2:]:
    name = program.rsplit("/", 1)[-1]
    assert parts[name]["hashes"][0]["content"] == hashlib.sha256(open(program, "rb").read()).hexdigest()
for package in ("libc6", "libstdc++6", "libssl3", "libcaf-io0.17", "libhiredis0.14", "libhwy-dev"):
    version = subprocess.check_output(["dpkg-query", "-W", "-f", "${Version}", package], text=True)
    assert parts[package]["version"] == version, package
    assert parts[package]["purl"].startswith(f"pkg:deb/debian/{package}@"), package
assert any(name.startswith("libopenblas0") for name in parts), "OpenBLAS, which is loaded by name"
END
