#!/usr/bin/env python3
"""Training steps of a net in PyTorch: one process, or several that exchange by DDP over gloo.

    tests/bench/ddp_step.py NET.prototxt [--processes P] [--steps N] [--warm-up N]
                            [--format nchw|channels_last] [--fused]

Each process has one thread, a batch of its own and the net that torch_step.py builds. One process
trains without DDP. Prints one JSON object: PyTorch's version, and the milliseconds of a step, the
mean over the steps of all processes.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import bench_nets

JOIN_SECONDS = 120


def train(options):
    """Milliseconds a step of this process."""
    import torch
    import torch_step
    torch.set_num_threads(1)
    net, optimizer, data, label = torch_step.prepare(options)
    if options.processes > 1:
        from datetime import timedelta
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{options.meet}", rank=options.rank,
            world_size=options.processes, timeout=timedelta(seconds=JOIN_SECONDS))
        net = torch.nn.parallel.DistributedDataParallel(net)
    torch_step.measure(net, optimizer, data, label, 0, options.warm_up)
    start = time.perf_counter()
    torch_step.measure(net, optimizer, data, label, options.steps, 0)
    milliseconds = 1e3 * (time.perf_counter() - start) / options.steps
    if options.processes > 1:
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()
    return {"torch": torch.__version__, "step_ms": milliseconds}


def lead(options):
    """Starts the processes, which are this program again, and returns the mean of what they say."""
    environment = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1",
                       MKL_NUM_THREADS="1")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, *sys.argv, "--meet", os.path.join(folder, "meet"), "--rank"]
        processes = [subprocess.Popen([*command, str(rank)], stdout=subprocess.PIPE, text=True,
                                      env=environment, preexec_fn=bench_nets.end_with_parent)
                     for rank in range(options.processes)]
        said = [process.communicate()[0] for process in processes]
        failed = [process.returncode for process in processes if process.returncode != 0]
        if failed:
            bench_nets.fail(f"a process of PyTorch ended with {failed[0]}")
    reports = [json.loads(text.splitlines()[-1]) for text in said]
    mean = sum(report["step_ms"] for report in reports) / len(reports)
    return {"torch": reports[0]["torch"], "step_ms": mean}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prototxt", type=pathlib.Path)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=2)
    parser.add_argument("--format", choices=["nchw", "channels_last"], default="nchw")
    parser.add_argument("--fused", action="store_true", help="SGD's fused form, where torch has it")
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--meet", help=argparse.SUPPRESS)
    options = parser.parse_args()
    print(json.dumps(lead(options) if options.rank is None else train(options)))


if __name__ == "__main__":
    main()
