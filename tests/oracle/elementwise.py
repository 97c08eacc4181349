"""Layers that act on each element: activations, powers, Eltwise."""

import math

import torch

from layer_tools import Later, from_top, implements
from memory import custom


@implements("ReLU")
def relu(run, layer, bottoms, tops):
    x, s = bottoms[0].value, layer.relu_param.negative_slope
    y = torch.where(x > 0, x, s * x)
    if run.in_place:
        return [from_top(run, x, y, lambda g, t: g * torch.where(t > 0, 1.0, s))]
    return [custom(y, lambda g, v=x.detach(): g * torch.where(v > 0, 1.0, s), x)]


@implements("ELU")
def elu(run, layer, bottoms, tops):
    x, a = bottoms[0].value, layer.elu_param.alpha
    y = torch.where(x > 0, x, a * (torch.exp(torch.clamp(x, max=0)) - 1))
    later = run.later = Later()
    in_place, own = run.in_place, y.detach()

    def rule(g):
        t = later(y.shape) if in_place else own
        return g * torch.where(t > 0, torch.ones_like(t), t + a)

    return [custom(y, rule, x)]


@implements("Sigmoid")
def sigmoid(run, layer, bottoms, tops):
    x = bottoms[0].value
    return [from_top(run, x, torch.sigmoid(x), lambda g, t: g * t * (1 - t))]


@implements("TanH")
def tanh(run, layer, bottoms, tops):
    x = bottoms[0].value
    return [from_top(run, x, torch.tanh(x), lambda g, t: g * (1 - t * t))]


@implements("AbsVal")
def abs_val(run, layer, bottoms, tops):
    return [torch.abs(bottoms[0].value)]


@implements("BNLL")
def bnll(run, layer, bottoms, tops):
    x = bottoms[0].value
    return [torch.clamp(x, min=0) + torch.log1p(torch.exp(-torch.abs(x)))]


@implements("PReLU")
def prelu(run, layer, bottoms, tops):
    x = bottoms[0].value
    shared = layer.prelu_param.channel_shared
    c = x.shape[1]
    w = run.param(layer, 0, [] if shared else [c], init=lambda r, s: r.uniform(-0.5, 0.9, s))
    w = w if shared else w.reshape([1, c] + [1] * (x.dim() - 2))
    return [torch.where(x > 0, x, w * x)]


@implements("Power")
def power(run, layer, bottoms, tops):
    p = layer.power_param
    x = bottoms[0].value
    if p.power * p.scale == 0:
        value = 1.0 if p.power == 0 else p.shift**p.power
        return [torch.full_like(x, value) + 0 * x]
    return [(p.shift + p.scale * x) ** p.power if p.power != 1 else p.shift + p.scale * x]


@implements("Exp")
def exp(run, layer, bottoms, tops):
    p = layer.exp_param
    inner = 1.0 if p.base == -1 else math.log(p.base)
    x = bottoms[0].value
    y = torch.exp(inner * (p.scale * x + p.shift))
    return [from_top(run, x, y, lambda g, t: g * t * inner * p.scale)]


@implements("Log")
def log(run, layer, bottoms, tops):
    p = layer.log_param
    base = 1.0 if p.base == -1 else 1 / math.log(p.base)
    return [torch.log(p.scale * bottoms[0].value + p.shift) * base]


@implements("Clip")
def clip(run, layer, bottoms, tops):
    return [torch.clamp(bottoms[0].value, layer.clip_param.min, layer.clip_param.max)]


@implements("Swish")
def swish(run, layer, bottoms, tops):
    x = bottoms[0].value
    return [x * torch.sigmoid(layer.swish_param.beta * x)]


@implements("Threshold")
def threshold(run, layer, bottoms, tops):
    return [(bottoms[0].value > layer.threshold_param.threshold).to(run.dtype)]


@implements("Eltwise")
def eltwise(run, layer, bottoms, tops):
    p = layer.eltwise_param
    xs = [x.value for x in bottoms]
    if p.operation == 0:
        y = xs[0]
        for x in xs[1:]:
            y = y * x
        if p.stable_prod_grad:
            return [y]
        later = run.later = Later()
        kept = [x.detach() for x in xs]
        return [custom(y, lambda g: tuple(g * later(y.shape) / k for k in kept), *xs)]
    if p.operation == 1:
        coeff = list(p.coeff) or [1.0] * len(xs)
        return [sum(c * x for c, x in zip(coeff, xs))]
    which = torch.where(xs[0] > xs[1], 0, 1)
    y = torch.where(which == 0, xs[0], xs[1])
    for i, x in enumerate(xs[2:], 2):
        better = x > y
        which = torch.where(better, i, which)
        y = torch.where(better, x, y)
    return [custom(y, lambda g: tuple(g * (which == i) for i in range(len(xs))), *xs)]
