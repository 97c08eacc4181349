#!/usr/bin/env python3
"""Times training steps of a net in PyTorch on the CPU: forward, backward, SGD.

    tests/bench/torch_step.py NET.prototxt [--threads T] [--steps N] [--format nchw|channels_last]
                              [--fused] [--rate R]

The net is built from the prototxt that SpeeDO gets (bench_nets.py writes it), layer by layer, so
that both compute the same: Caffe's ceil-mode pooling, LRN of both kinds, groups, dropout, loss
weights. BatchNorm with the Scale after it is one torch.nn.BatchNorm2d. ReLUs are in place where the
prototxt's are. Prints one JSON object: PyTorch's version, milliseconds of each step, the process's
peak memory.
"""
import argparse
import json
import pathlib
import time

import torch
from torch import nn
from torch.nn import functional as F

import bench_nets


def number(message, name, default=0):
    return int(message.get(name, default))


def lrn_within(x, size, alpha, beta):
    """Caffe's formula, with Caffe's way to compute it."""
    return x * (1 + alpha * F.avg_pool2d(x * x, size, 1, (size - 1) // 2)).pow(-beta)


class PrototxtNet(nn.Module):
    """A Caffe net as operations on named blobs, made while a batch of one passes through."""

    def __init__(self, message, image):
        super().__init__()
        self.parts = nn.ModuleList()
        self.operations = []  # (function of the bottoms, bottoms, top, loss weight)
        layers = [layer for layer in message.all("layer") if self.trains(layer)]
        shapes = {"data": torch.zeros(1, *image), "label": torch.zeros(1, dtype=torch.long)}
        merged = None
        for layer, after in zip(layers, layers[1:] + [None]):
            if layer is merged or layer.text("type") in ("Input", "DummyData"):
                continue
            bottoms, top = layer.texts("bottom"), layer.text("top")
            inputs = [shapes[name] for name in bottoms]
            if layer.text("type") == "BatchNorm" and after and after.text("type") == "Scale" and \
                    after.texts("bottom") == [top]:
                merged = after
                top = after.text("top")
            function = getattr(self, "make_" + layer.text("type"))(layer, inputs)
            if isinstance(function, nn.Module):
                self.parts.append(function)
            is_loss = layer.text("type") == "SoftmaxWithLoss"
            weight = float(layer.get("loss_weight", 1)) if is_loss else 0.0
            self.operations.append((function, bottoms, top, weight))
            with torch.no_grad():
                shapes[top] = function(*inputs)
        self.last_use = {}
        for index, (_, bottoms, _, _) in enumerate(self.operations):
            for name in bottoms:
                self.last_use[name] = index

    @staticmethod
    def trains(layer):
        return all(rule.get("phase", "TRAIN") == "TRAIN" for rule in layer.all("include"))

    # Blobs are let go after their last reader, as they would be in handwritten code.
    def forward(self, data, label):
        blobs, loss = {"data": data, "label": label}, 0.0
        for index, (function, bottoms, top, weight) in enumerate(self.operations):
            inputs = [blobs[name] for name in bottoms]
            for name in bottoms:
                if self.last_use[name] == index:
                    blobs.pop(name, None)
            value = function(*inputs)
            del inputs
            if weight != 0.0:
                loss = loss + weight * value
            else:
                blobs[top] = value
        return loss

    def make_Convolution(self, layer, inputs):
        options = layer.get("convolution_param")
        return nn.Conv2d(inputs[0].shape[1], number(options, "num_output"),
                         number(options, "kernel_size"), number(options, "stride", 1),
                         number(options, "pad"), groups=number(options, "group", 1),
                         bias=options.get("bias_term", "true") == "true")

    def make_InnerProduct(self, layer, inputs):
        linear = nn.Linear(inputs[0].flatten(1).shape[1],
                           number(layer.get("inner_product_param"), "num_output"))
        return nn.Sequential(nn.Flatten(), linear)

    def make_Pooling(self, layer, _):
        options = layer.get("pooling_param")
        sizes = (number(options, "kernel_size"), number(options, "stride", 1),
                 number(options, "pad"))
        function = {"MAX": F.max_pool2d, "AVE": F.avg_pool2d}[options.get("pool", "MAX")]
        return lambda x: function(x, *sizes, ceil_mode=True)

    def make_LRN(self, layer, _):
        options = layer.get("lrn_param")
        size, alpha, beta, k = (number(options, "local_size", 5), float(options.get("alpha", 1)),
                                float(options.get("beta", 0.75)), float(options.get("k", 1)))
        if options.get("norm_region") == "WITHIN_CHANNEL":
            return lambda x: lrn_within(x, size, alpha, beta)
        return lambda x: F.local_response_norm(x, size, alpha, beta, k)

    def make_ReLU(self, layer, _):
        in_place = layer.text("bottom") == layer.text("top")
        return lambda x: F.relu(x, inplace=in_place)

    # Not in place: autograd still needs what the ReLU before it wrote.
    def make_Dropout(self, layer, _):
        ratio = float(layer.get("dropout_param").get("dropout_ratio", 0.5))
        return lambda x: F.dropout(x, ratio)

    def make_BatchNorm(self, _, inputs):
        return nn.BatchNorm2d(inputs[0].shape[1])

    def make_Eltwise(self, _layer, _):
        return lambda *inputs: sum(inputs[1:], inputs[0])

    def make_Concat(self, _layer, _):
        return lambda *inputs: torch.cat(inputs, 1)

    def make_SoftmaxWithLoss(self, _layer, _):
        return lambda x, label: F.cross_entropy(x.flatten(1), label)


def peak_bytes():
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def measure(net, optimizer, data, label, steps, warm_up):
    times = []
    for index in range(warm_up + steps):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        net(data, label).backward()
        optimizer.step()
        if index >= warm_up:
            times.append((time.perf_counter() - start) * 1e3)
    return times


def prepare(options):
    """The net, its optimizer and one batch, as the program's options have them."""
    torch.manual_seed(0)
    message = bench_nets.parse(pathlib.Path(options.prototxt).read_text())
    source = next(layer for layer in message.all("layer") if layer.text("type") == "Input")
    shape = [int(size) for size in source.get("input_param").get("shape").all("dim")]
    memory_format = {"nchw": torch.contiguous_format,
                     "channels_last": torch.channels_last}[options.format]
    net = PrototxtNet(message, shape[1:]).train().to(memory_format=memory_format)
    data = torch.randn(shape).to(memory_format=memory_format)
    label = torch.full((shape[0],), bench_nets.LABEL, dtype=torch.long)
    fused = {"fused": True} if options.fused else {}
    optimizer = torch.optim.SGD(net.parameters(), lr=options.rate, momentum=0.9, weight_decay=5e-4,
                                **fused)
    return net, optimizer, data, label


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prototxt")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=2)
    parser.add_argument("--format", choices=["nchw", "channels_last"], default="nchw")
    parser.add_argument("--fused", action="store_true", help="SGD's fused form, where torch has it")
    parser.add_argument("--rate", type=float, default=1e-4)
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    net, optimizer, data, label = prepare(options)
    times = measure(net, optimizer, data, label, options.steps, options.warm_up)
    print(json.dumps({"torch": torch.__version__, "step_ms": times, "peak_bytes": peak_bytes()}))


if __name__ == "__main__":
    main()
