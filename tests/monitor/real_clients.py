#!/usr/bin/env python3
"""Debian's prometheus, promtool and chromium look at a training with three workers.

    tests/monitor/real_clients.py --bin BUILD/bin --scratch FOLDER

FOLDER keeps the screenshots of the page (wide, narrow, each light and dark). A worker is killed while
prometheus scrapes, which must see it go and return. Exit code 0: all of them saw what they should.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

SOLVER = """max_iter: 100000000 base_lr: 0.05 lr_policy: "fixed" random_seed: 3
test_iter: 2 test_interval: 500 snapshot_prefix: "{folder}/snap"
net_param {{ name: "noise"
  layer {{ name: "data" type: "DummyData" top: "data" top: "label"
          dummy_data_param {{ shape {{ dim: 32 dim: 200 }} shape {{ dim: 32 }}
                             data_filler {{ type: "gaussian" std: 1 }}
                             data_filler {{ type: "constant" value: 0 }} }} }}
  layer {{ name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
          inner_product_param {{ num_output: 64 weight_filler {{ type: "xavier" }} }} }}
  layer {{ name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy"
          include {{ phase: TEST }} }}
  layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }} }}
"""
PROMETHEUS = """global: {{ scrape_interval: 1s }}
scrape_configs:
  - job_name: speedo
    static_configs: [{{ targets: ["127.0.0.1:{port}"] }}]
"""
SIZES = {"wide": "1400,1100", "narrow": "390,1900"}


def fail(text):
    sys.exit(f"FAILED: {text}")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def eventually(what, holds, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if holds():
                return
        except OSError:
            pass
        time.sleep(0.3)
    fail(f"not within {seconds} s: {what}")


def start_training(options, page):
    solver = options.scratch / "solver.prototxt"
    solver.write_text(SOLVER.format(folder=options.scratch))
    return subprocess.Popen(
        [f"{options.bin}/speedo", "run", "--solver", solver, "--workers", "3", "--sync",
         "--max-restarts", "3", "--metrics-addr", f"127.0.0.1:{page}"],
        stdout=subprocess.DEVNULL, stderr=open(options.scratch / "training.log", "w"))


def start_prometheus(options, page, port):
    config = options.scratch / "prometheus.yml"
    config.write_text(PROMETHEUS.format(port=page))
    subprocess.run(["promtool", "check", "config", config], check=True, capture_output=True)
    shutil.rmtree(options.scratch / "prometheus", ignore_errors=True)
    return subprocess.Popen(
        ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={options.scratch}/prometheus",
         f"--web.listen-address=127.0.0.1:{port}"],
        stdout=subprocess.DEVNULL, stderr=open(options.scratch / "prometheus.log", "w"))


def value(port, query):
    """The first value of a query, or None."""
    found = json.loads(get(f"http://127.0.0.1:{port}/api/v1/query?query={query}"))["data"]["result"]
    return float(found[0]["value"][1]) if found else None


def check_prometheus(page, port):
    metrics = get(f"http://127.0.0.1:{page}/metrics")
    checked = subprocess.run(["promtool", "check", "metrics"], input=metrics, text=True,
                             capture_output=True)
    if checked.returncode != 0 or checked.stderr.strip():
        fail(f"promtool: {checked.stdout}{checked.stderr}")
    eventually("prometheus sees iterations go on",
               lambda: (value(port, "rate(speedo_iterations_total[5s])") or 0) > 0)
    alive = "sum(speedo_workers)"
    eventually("prometheus sees three workers", lambda: value(port, alive) == 3)
    names = json.loads(get(f"http://127.0.0.1:{page}/status.json"))["workers"]
    joined = value(port, "speedo_workers_joined_total")
    os.kill(int(names[1]["name"].split("/")[1]), signal.SIGKILL)
    eventually("prometheus sees a worker that was killed return",
               lambda: value(port, "speedo_workers_joined_total") > joined and
               value(port, alive) == 3)
    eventually("prometheus has the histogram of staleness", lambda: value(
        port, "histogram_quantile(0.5,speedo_gradient_staleness_bucket)") is not None)


def chromium(options, page, *flags):
    return subprocess.run(
        ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
         "--virtual-time-budget=5000", f"--user-data-dir={options.scratch}/chromium", *flags,
         f"http://127.0.0.1:{page}/"], check=True, capture_output=True, text=True,
        timeout=120).stdout


def check_page(options, page):
    shown = chromium(options, page, "--dump-dom")
    rows = re.findall(r"<td>(worker\d/\d+/0)</td>", shown)
    if len({row.split("/")[0] for row in rows}) != 3:
        fail(f"the page shows the workers {rows}")
    for figure in ("Images/s", "gone: ", "iteration "):
        if figure not in shown:
            fail(f"the page does not show '{figure}'")
    curves = shown.count('class="curve"')
    if curves != 4:
        fail(f"the page shows {curves} curves")
    for name, size in SIZES.items():
        for scheme in ("light", "dark"):
            picture = options.scratch / f"{name}-{scheme}.png"
            dark = ["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []
            chromium(options, page, f"--window-size={size}", f"--screenshot={picture}", *dark)
            if picture.stat().st_size < 10000:
                fail(f"{picture} is empty")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--scratch", required=True, type=pathlib.Path)
    options = parser.parse_args()
    options.scratch.mkdir(parents=True, exist_ok=True)
    page, port = free_port(), free_port()
    programs = [start_training(options, page), start_prometheus(options, page, port)]
    try:
        eventually("the master is ready", lambda: get(f"http://127.0.0.1:{page}/readyz") == "ok\n")
        check_prometheus(page, port)
        check_page(options, page)
    finally:
        for program in programs:
            program.terminate()
        codes = [program.wait(30) for program in programs]
    if codes[0] != 0:
        fail(f"the training ended with {codes[0]}, see {options.scratch}/training.log")
    print(f"prometheus, promtool and chromium agree; pictures in {options.scratch}")


if __name__ == "__main__":
    main()
