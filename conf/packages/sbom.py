#!/usr/bin/env python3
"""Writes a CycloneDX 1.5 bill of materials of programs, as JSON on standard output:

    conf/packages/sbom.py build/bin/speedo build/bin/speedo-master build/bin/speedo-worker build/bin/speedo-parser

Its components are the Debian packages of the shared libraries that the programs load, and those of
conf/packages/build.txt whose headers and static libraries are compiled in. The same programs on the
same machine give the same bytes; SOURCE_DATE_EPOCH, if it is set, is its time."""

import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import uuid

# Loaded by its name when a program starts.
LOADED = ["libopenblas.so.0"]
TESTS_ONLY = "librapidcheck-dev"


def told(*command):
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"sbom.py: {' '.join(command)}: {run.stderr.strip() or run.stdout.strip()}")
    return run.stdout


def shared_libraries(program):
    """Absolute paths of what the program loads."""
    listed = told("ldd", program)
    missing = re.findall(r"(\S+) => not found", listed)
    if missing:
        sys.exit(f"sbom.py: {program}: {', '.join(missing)} is not installed here")
    known = told("/sbin/ldconfig", "-p")
    loaded = [re.search(rf"^\s*{re.escape(name)} .*=> (\S+)$", known, re.M) for name in LOADED]
    return set(re.findall(r"(/\S+) \(0x", listed)) | {match[1] for match in loaded if match}


def names_of(library):
    """The names under which a package may list the file."""
    real = os.path.realpath(library)
    return {library, real, real.removeprefix("/usr"), library.removeprefix("/usr")}


def packages_of(libraries):
    """The package that has each file, under any of its names."""
    names = sorted(set().union(*map(names_of, libraries)))
    # It reads what every package has, so it is asked once; that most names are not found is no error.
    run = subprocess.run(["dpkg", "-S", *names], capture_output=True, text=True)
    owners = {path: owner for owner, path in
              re.findall(r"^([a-z0-9.+-]+)(?::\S+)?: (/\S+)$", run.stdout, re.M)}
    result = {}
    for library in libraries:
        found = [owners[name] for name in sorted(names_of(library)) if name in owners]
        if not found:
            sys.exit(f"sbom.py: {library} belongs to no Debian package")
        result[library] = found[0]
    return result


def described(names):
    """Of packages that are installed: name to (version, architecture, source, source's version)."""
    form = "${Package}\t${Version}\t${Architecture}\t${source:Package}\t${source:Version}\t${Status}\n"
    run = subprocess.run(["dpkg-query", "-W", "-f", form, *names], capture_output=True, text=True)
    rows = [line.split("\t") for line in run.stdout.splitlines()]
    return {row[0]: row[1:5] for row in rows if row[5].endswith(" installed")}


def component(name, facts, role):
    version, architecture, source, source_version = facts
    purl = f"pkg:deb/debian/{name}@{version.replace('+', '%2B')}?arch={architecture}"
    return {
        "type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl,
        "properties": [
            {"name": "debian:source", "value": f"{source} {source_version}"},
            {"name": "speedo:role", "value": role},
        ],
    }


def program_component(program):
    content = pathlib.Path(program).read_bytes()
    return {
        "type": "application", "bom-ref": os.path.basename(program),
        "name": os.path.basename(program), "version": told(program, "--version").split()[-1],
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}],
    }


def compiled_in():
    """Packages of headers and static libraries that the build reads."""
    lines = (pathlib.Path(__file__).parent / "build.txt").read_text().splitlines()
    return [line for line in lines if line.endswith("-dev") and line != TESTS_ONLY]


def main(programs):
    if not programs:
        sys.exit("usage: sbom.py PROGRAM...")
    for program in programs:
        if not os.access(program, os.X_OK):
            sys.exit(f"sbom.py: {program} is no program")
    libraries = {program: shared_libraries(program) for program in programs}
    package_of = packages_of(sorted(set().union(*libraries.values())))
    loads = {program: {package_of[each] for each in libraries[program]} for program in programs}
    loaded, built = set().union(*loads.values()), set(compiled_in())
    facts = described(sorted(loaded | built))
    refs, components = {}, [program_component(program) for program in programs]
    for name in sorted(facts):
        made = component(name, facts[name], "loaded" if name in loaded else "compiled in")
        refs[name] = made["bom-ref"]
        components.append(made)
    base = sorted(refs[name] for name in facts if name not in loaded)
    bom = {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"component": {"type": "application", "bom-ref": "SpeeDO", "name": "SpeeDO",
                                   "version": components[0]["version"]}},
        "components": components,
        "dependencies": [{"ref": "SpeeDO", "dependsOn": sorted(map(os.path.basename, programs))}] + [
            {"ref": os.path.basename(program),
             "dependsOn": sorted({refs[name] for name in loads[program]} | set(base))}
            for program in programs],
    }
    if "SOURCE_DATE_EPOCH" in os.environ:
        at = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
        bom["metadata"]["timestamp"] = at.strftime("%Y-%m-%dT%H:%M:%SZ")
    text = json.dumps(bom, indent=2)
    bom["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, text)}"
    print(json.dumps(bom, indent=2))


if __name__ == "__main__":
    main(sys.argv[1:])
