#!/usr/bin/env python3
"""One process of PyTorch DDP over gloo whose net sleeps instead of computing; for rig_speedup.py.

    tests/bench/ddp_emulated.py --rank R --processes P --meet tcp://HOST:PORT --layers FILE
                                --step MS [--steps N] [--warm-up N]

FILE is JSON: for each layer, first to last, the sizes of its parameters in floats, and its part of
a pass. DDP itself, with its defaults, puts their gradients into buckets and all-reduces these while
backward goes on. Forward is a third of the step, backward the rest; a layer's gradients, zeros, are
there when its part of backward ends. There is no optimizer: its time is one with the step's.

Rank 0 says `ready` after the warm-up and goes on when it reads a line, the others with it; in the
end it prints one JSON object: PyTorch's version and the milliseconds of a step.
"""
import argparse
import json
import pathlib
import sys
import time
from datetime import timedelta

import torch
from torch import distributed, nn

FORWARD_SHARE = 1 / 3
JOIN_SECONDS = 300


class Clock:
    """Sleeps through the parts of a pass; a part that begins late does not end later for it."""

    def __init__(self, step_seconds):
        self.seconds = {"forward": step_seconds * FORWARD_SHARE,
                        "backward": step_seconds * (1 - FORWARD_SHARE)}
        self.end = 0.0

    def begin(self):
        self.end = time.perf_counter()

    def sleep(self, direction, part):
        self.end += self.seconds[direction] * part
        time.sleep(max(0.0, self.end - time.perf_counter()))


class Sleep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, clock, part, *weights):
        ctx.clock, ctx.part = clock, part
        ctx.shapes = [weight.shape for weight in weights]
        clock.sleep("forward", part)
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        ctx.clock.sleep("backward", ctx.part)
        return (gradient, None, None, *(torch.zeros(shape) for shape in ctx.shapes))


class Layer(nn.Module):
    def __init__(self, sizes, part):
        super().__init__()
        self.part = part
        self.weights = nn.ParameterList(nn.Parameter(torch.zeros(size)) for size in sizes)

    def forward(self, x, clock):
        return Sleep.apply(x, clock, self.part, *self.weights)


class Net(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(Layer(*layer) for layer in layers)

    def forward(self, x, clock):
        for layer in self.layers:
            x = layer(x, clock)
        return x


def step(net, clock, x):
    net.zero_grad(set_to_none=True)
    clock.begin()
    loss = net(x, clock).sum()
    clock.begin()
    loss.backward()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--processes", type=int, required=True)
    parser.add_argument("--meet", required=True)
    parser.add_argument("--layers", type=pathlib.Path, required=True)
    parser.add_argument("--step", type=float, required=True)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--warm-up", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=options.meet, rank=options.rank,
                                   world_size=options.processes,
                                   timeout=timedelta(seconds=JOIN_SECONDS))
    layers = json.loads(options.layers.read_text())
    net = nn.parallel.DistributedDataParallel(Net(layers))
    clock, x = Clock(options.step / 1e3), torch.zeros(1, requires_grad=True)
    for _ in range(options.warm_up):
        step(net, clock, x)
    distributed.barrier()
    if options.rank == 0:
        print("ready", flush=True)
        sys.stdin.readline()
    distributed.barrier()
    start = time.perf_counter()
    for _ in range(options.steps):
        step(net, clock, x)
    distributed.barrier()
    milliseconds = 1e3 * (time.perf_counter() - start) / options.steps
    if options.rank == 0:
        print(json.dumps({"torch": torch.__version__, "step_ms": milliseconds}), flush=True)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
