#!/usr/bin/env python3
"""conf/kubernetes: the files agree with each other and with the images.

    tests/style/kubernetes.py [--schemas FOLDER]

With --schemas each object is checked against Kubernetes' schemas, by PyPI's kubernetes-validate in a virtual
environment in FOLDER. Exit code 77: there is no PyYAML here.
"""
import argparse
import pathlib
import subprocess
import sys
import venv

try:
    import yaml
except ImportError:
    print("skipped: this needs python3-yaml")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "conf/kubernetes"
SECRET, SECRET_KEY = "speedo-redis", "redis_password"
PASSWORD = "/run/secrets/redis_password"
TOKEN_SECRET, TOKEN_KEY, TOKEN = "speedo-token", "speedo_token", "/run/secrets/speedo_token"
USER = 10001
GRACE = {"speedo-master": 25, "speedo-worker": 25, "speedo-redis": 0}
OF_THE_USER = {"speedo-data"}  # claims that the README asks for
faults = []


def check(holds, what):
    if not holds:
        faults.append(what)


def objects():
    listed = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["resources"]
    files = {path.name for path in FOLDER.glob("*.yaml")} - {"kustomization.yaml"}
    check(set(listed) == files, f"kustomization.yaml lists {listed}, there are {sorted(files)}")
    for name in listed:
        for each in yaml.safe_load_all((FOLDER / name).read_text()):
            yield name, each


def check_pod(where, name, pod):
    security = pod["securityContext"]
    check(security["runAsNonRoot"] and security["runAsUser"] == USER, f"{where}: runs as another user")
    check(pod.get("terminationGracePeriodSeconds", 30) > GRACE[name], f"{where}: no time for a snapshot")
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    (container,) = pod["containers"]
    own = container["securityContext"]
    check(own["readOnlyRootFilesystem"] and not own["allowPrivilegeEscalation"] and
          own["capabilities"]["drop"] == ["ALL"], f"{where}: is not confined")
    mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
    check({mount["name"] for mount in mounts.values()} == set(volumes), f"{where}: volumes, mounts")
    secret = volumes[mounts[PASSWORD]["name"]]["secret"]
    check(secret["secretName"] == SECRET and mounts[PASSWORD]["subPath"] == SECRET_KEY,
          f"{where}: another secret")
    if name != "speedo-redis":
        token = volumes[mounts[TOKEN]["name"]]["secret"]
        check(token["secretName"] == TOKEN_SECRET and mounts[TOKEN]["subPath"] == TOKEN_KEY,
              f"{where}: another token")
    ports = {port["name"] for port in container.get("ports", [])}
    for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
        probe = container.get(kind, {})
        port = (probe.get("httpGet") or probe.get("tcpSocket") or {}).get("port")
        check(port is None or port in ports, f"{where}: {kind} asks the port {port}")
        command = probe.get("exec", {}).get("command", [])
        check(not command or (ROOT / "docker" / pathlib.Path(command[0]).name).exists(),
              f"{where}: {kind} runs {command}")
    return container, {volume["persistentVolumeClaim"]["claimName"] for volume in volumes.values()
                       if "persistentVolumeClaim" in volume}


def check_all(found):
    pods, services, claims, used = {}, {}, set(OF_THE_USER), set()
    for where, each in found:
        name = each["metadata"]["name"]
        if each["kind"] == "Service":
            services[name] = each["spec"]
        elif each["kind"] == "PersistentVolumeClaim":
            claims.add(name)
        elif each["kind"] in ("Deployment", "Job"):
            template = each["spec"]["template"]
            labels = template["metadata"]["labels"]
            selector = each["spec"].get("selector", {}).get("matchLabels", labels)
            check(selector.items() <= labels.items(), f"{where}: selects other pods")
            container, claimed = check_pod(where, name, template["spec"])
            used |= claimed
            pods[name] = (labels, container)
            if each["kind"] == "Job":
                pods[name] += (each["spec"].get("parallelism"),)
    check(used == claims, f"claims used {used}, there {claims}")
    for name, spec in services.items():
        matching = [pod for labels, pod, *_ in pods.values() if spec["selector"].items() <= labels.items()]
        check(len(matching) == 1, f"service {name} selects {len(matching)} kinds of pods")
        names = {port["name"] for port in matching[0]["ports"]}
        check({port["targetPort"] for port in spec["ports"]} <= names, f"service {name}: ports")
    return pods, services


def check_words(pods, services):
    """The images' own words, and the names that one says to another."""
    master, worker = pods["speedo-master"][1]["args"], pods["speedo-worker"][1]["args"]
    check(master[0] == "master" and worker[0] == "worker", "not the words of docker/entry.sh")
    check(master[1] in services and worker[1] == master[1], "the master's address is no service")
    check(int(master[2]) == pods["speedo-worker"][2], "another number of workers than pods")
    check(master[master.index("--redis") + 1] in services, "Redis' address is no service")
    env = {each["name"]: each.get("value") for each in pods["speedo-master"][1]["env"]}
    port = {each["name"]: each["containerPort"] for each in pods["speedo-master"][1]["ports"]}["http"]
    check(env["SPEEDO_METRICS_ADDR"].endswith(f":{port}"), "the page is at another port")
    entry = (ROOT / "docker/entry.sh").read_text()
    for spec in services.values():
        for each in spec["ports"]:
            check(each["name"] == "http" or str(each["port"]) in entry, f"port {each['port']} is nobody's")
    check(PASSWORD in entry, "the password lies elsewhere in the images")
    readme = (FOLDER / "README.md").read_text()
    for word in (SECRET, SECRET_KEY, *OF_THE_USER):
        check(word in readme, f"README.md does not name {word}")


def check_schemas(folder):
    python = folder / "venv/bin/python"
    if not python.exists():
        venv.create(folder / "venv", with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "kubernetes-validate"], check=True)
    for path in sorted(FOLDER.glob("*.yaml")):
        if path.name == "kustomization.yaml":
            continue
        done = subprocess.run([python.parent / "kubernetes-validate", "--strict", path],
                              capture_output=True, text=True)
        print(done.stdout, end="")
        check(done.returncode == 0, f"{path.name}: {done.stdout}{done.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schemas", type=pathlib.Path)
    options = parser.parse_args()
    pods, services = check_all(objects())
    check_words(pods, services)
    if options.schemas:
        options.schemas.mkdir(parents=True, exist_ok=True)
        check_schemas(options.schemas)
    for fault in faults:
        print(f"FAILED: {fault}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
