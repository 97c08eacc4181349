#!/usr/bin/env python3
"""Times training steps of a net in PyTorch on the CPU or a GPU: forward, backward, SGD.

    tests/bench/torch_step.py NET.prototxt [--threads T] [--steps N] [--format nchw|channels_last]
                              [--fused] [--rate R]
                              [--gpu N [--precision f32|tf32|bf16] [--compile MODE]]

The net is built from the prototxt that SpeeDO gets (bench_nets.py writes it), layer by layer, so
that both compute the same: Caffe's ceil-mode pooling, LRN of both kinds, groups, dropout, loss
weights. BatchNorm with the Scale after it is one torch.nn.BatchNorm2d. ReLUs are in place where the
prototxt's are. Prints one JSON object: PyTorch's version, milliseconds of each step, the process's
peak memory, or of a GPU's memory the peak that PyTorch's tensors took.

On a GPU steps follow one another without waiting; cuDNN tries its algorithms first; bf16 is
autocast; --compile is torch.compile's mode ("reduce-overhead": with CUDA graphs).
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


LOSSES = ("SoftmaxWithLoss", "SigmoidCrossEntropyLoss", "EuclideanLoss")


class Sequences(nn.Module):
    """nn.LSTM over steps x streams x values, without its states. `cont` is 1 in the nets measured."""

    def __init__(self, inputs, cells):
        super().__init__()
        self.lstm = nn.LSTM(inputs, cells)

    def forward(self, x, _cont):
        return self.lstm(x)[0]


class PrototxtNet(nn.Module):
    """A Caffe net as operations on named blobs, made while a batch of `data` passes through."""

    def __init__(self, message, data, label):
        super().__init__()
        self.parts = nn.ModuleList()
        self.operations = []  # (function of the bottoms, bottoms, top, loss weight)
        layers = [layer for layer in message.all("layer") if self.trains(layer)]
        shapes = {"data": data, "label": label, "cont": None}
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
            if isinstance(function, nn.Module) and is_frozen(layer):
                function.requires_grad_(False)
            is_loss = layer.text("type") in LOSSES
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
        blobs, loss = {"data": data, "label": label, "cont": None}, 0.0
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

    def make_Deconvolution(self, layer, inputs):
        options = layer.get("convolution_param")
        return nn.ConvTranspose2d(inputs[0].shape[1], number(options, "num_output"),
                                  number(options, "kernel_size"), number(options, "stride", 1),
                                  number(options, "pad"), groups=number(options, "group", 1),
                                  bias=options.get("bias_term", "true") == "true")

    def make_LSTM(self, layer, inputs):
        return Sequences(inputs[0].shape[2], number(layer.get("recurrent_param"), "num_output"))

    def make_InnerProduct(self, layer, inputs):
        if number(layer.get("inner_product_param"), "axis", 1) == 2:
            return nn.Linear(inputs[0].shape[2],
                             number(layer.get("inner_product_param"), "num_output"))
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

    def make_Flatten(self, _layer, _):
        return lambda x: x.flatten(1)

    def make_Sigmoid(self, _layer, _):
        return torch.sigmoid

    def make_SigmoidCrossEntropyLoss(self, _layer, _):
        return lambda x, target: F.binary_cross_entropy_with_logits(
            x, target, reduction="sum") / len(x)

    def make_EuclideanLoss(self, _layer, _):
        return lambda x, target: F.mse_loss(x, target, reduction="sum") / (2 * len(x))

    def make_SoftmaxWithLoss(self, layer, inputs):
        if number(layer.get("softmax_param", bench_nets.Message()), "axis", 1) == 2:
            return lambda x, label: F.cross_entropy(x.flatten(0, 1), label.flatten())
        if inputs[1].dim() > 1:
            return F.cross_entropy
        return lambda x, label: F.cross_entropy(x.flatten(1), label)


def is_frozen(layer):
    """Whether no parameter is to be trained, as in FCN's upsampling."""
    rates = [float(param.get("lr_mult", 1)) for param in layer.all("param")]
    return bool(rates) and not any(rates)


def label_of(message, batch):
    """The labels of the net's DummyData layer, whose last filler they have."""
    source = next(layer for layer in message.all("layer") if "label" in layer.texts("top") and
                  layer.text("type") == "DummyData").get("dummy_data_param")
    shape = [int(size) for size in source.get("shape").all("dim")]
    value = int(source.get("data_filler").get("value", bench_nets.LABEL))
    return torch.full(shape if len(shape) > 1 else [batch], value, dtype=torch.long)


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


def set_precision(precision):
    """How a GPU multiplies float32."""
    is_rounded = precision != "f32"
    torch.backends.cuda.matmul.allow_tf32 = is_rounded
    torch.backends.cudnn.allow_tf32 = is_rounded
    torch.backends.cudnn.benchmark = True


def measure_gpu(net, optimizer, data, label, options):
    """Milliseconds between the ends of steps, by the GPU's clock."""
    autocast = torch.autocast("cuda", torch.bfloat16, enabled=options.precision == "bf16")
    ends = [torch.cuda.Event(enable_timing=True) for _ in range(options.steps + 1)]
    for index in range(-options.warm_up, options.steps + 1):
        if index >= 0:
            ends[index].record()
        if index == options.steps:
            break
        optimizer.zero_grad(set_to_none=True)
        with autocast:
            loss = net(data, label)
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
    return [before.elapsed_time(after) for before, after in zip(ends, ends[1:])]


def prepare(options, device="cpu"):
    """The net, its optimizer and one batch on a device, as a program's options have them:
    `prototxt`, `format`, `fused` and `rate`."""
    torch.manual_seed(0)
    message = bench_nets.parse(pathlib.Path(options.prototxt).read_text())
    source = next(layer for layer in message.all("layer") if layer.text("type") == "Input")
    shape = [int(size) for size in source.get("input_param").get("shape").all("dim")]
    memory_format = {"nchw": torch.contiguous_format,
                     "channels_last": torch.channels_last}[options.format]
    label = label_of(message, shape[0])
    # Images are independent, so one is enough to make the net.
    few = [1, *shape[1:]] if len(shape) == 4 else shape
    net = PrototxtNet(message, torch.zeros(few), label[:few[0]]).train()
    net = net.to(memory_format=memory_format)
    data = torch.randn(shape)
    if len(shape) == 4:
        data = data.to(memory_format=memory_format)
    net, data, label = net.to(device), data.to(device), label.to(device)
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
    parser.add_argument("--gpu", type=int, help="its number; default: the CPU")
    parser.add_argument("--precision", choices=["f32", "tf32", "bf16"], default="f32")
    parser.add_argument("--compile", metavar="MODE", help="torch.compile's")
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    if options.gpu is None:
        net, optimizer, data, label = prepare(options)
        times = measure(net, optimizer, data, label, options.steps, options.warm_up)
        peak = peak_bytes()
    else:
        set_precision(options.precision)
        net, optimizer, data, label = prepare(options, torch.device("cuda", options.gpu))
        run = torch.compile(net, mode=options.compile) if options.compile else net
        times = measure_gpu(run, optimizer, data, label, options)
        peak = torch.cuda.max_memory_allocated()
    print(json.dumps({"torch": torch.__version__, "step_ms": times, "peak_bytes": peak}))


if __name__ == "__main__":
    main()
