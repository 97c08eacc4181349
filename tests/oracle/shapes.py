"""Layers that move, choose or sum up values: Split to Slice, Reduction, ArgMax."""

import math

import torch

from layer_tools import axis_of, implements
from memory import Blob


@implements("Split")
def split(run, layer, bottoms, tops):
    return [Blob(bottoms[0].value.clone(), bottoms[0].memory) for _ in range(tops)]


@implements("Flatten")
def flatten(run, layer, bottoms, tops):
    x = bottoms[0].value
    s, e = axis_of(layer.flatten_param.axis, x.dim()), axis_of(
        layer.flatten_param.end_axis, x.dim()
    )
    return [
        Blob(
            x.reshape(list(x.shape[:s]) + [math.prod(x.shape[s : e + 1])] + list(x.shape[e + 1 :])),
            bottoms[0].memory,
        )
    ]


@implements("Reshape")
def reshape(run, layer, bottoms, tops):
    x, p = bottoms[0].value, layer.reshape_param
    start = p.axis if p.axis >= 0 else x.dim() + p.axis + 1
    end = x.dim() if p.num_axes == -1 else start + p.num_axes
    middle = [x.shape[start + i] if d == 0 else d for i, d in enumerate(p.shape.dim)]
    if -1 in middle:
        known = math.prod(d for d in middle if d != -1)
        middle[middle.index(-1)] = math.prod(x.shape[start:end]) // known
    return [
        Blob(x.reshape(list(x.shape[:start]) + middle + list(x.shape[end:])), bottoms[0].memory)
    ]


@implements("Concat")
def concat(run, layer, bottoms, tops):
    a = axis_of(layer.concat_param.axis, bottoms[0].value.dim())
    y = torch.cat([x.value for x in bottoms], a)
    return [Blob(y, bottoms[0].memory) if len(bottoms) == 1 else y]


@implements("Slice")
def slice_(run, layer, bottoms, tops):
    x, p = bottoms[0].value, layer.slice_param
    a = axis_of(p.axis, x.dim())
    if tops == 1:
        return [Blob(x.clone(), bottoms[0].memory)]
    points = list(p.slice_point)
    if not points:
        points = [x.shape[a] // tops * i for i in range(1, tops)]
    ends = points + [x.shape[a]]
    begins = [0] + points
    return [x.narrow(a, s, e - s).clone() for s, e in zip(begins, ends)]


@implements("Tile")
def tile(run, layer, bottoms, tops):
    x = bottoms[0].value
    a = axis_of(layer.tile_param.axis, x.dim())
    return [torch.cat([x] * layer.tile_param.tiles, a)]


@implements("Crop")
def crop(run, layer, bottoms, tops):
    x, like, p = bottoms[0].value, bottoms[1].value, layer.crop_param
    a = axis_of(p.axis, x.dim())
    offsets = list(p.offset) or [0]
    for i in range(a, x.dim()):
        o = offsets[0] if len(offsets) == 1 else offsets[i - a]
        x = x.narrow(i, o, like.shape[i])
    return [x.clone()]


@implements("BatchReindex")
def batch_reindex(run, layer, bottoms, tops):
    return [bottoms[0].value[bottoms[1].value.detach().reshape(-1).long()]]


@implements("Filter")
def filter_(run, layer, bottoms, tops):
    keep = bottoms[-1].value.detach().reshape(-1) != 0
    return [x.value[keep] for x in bottoms[:-1]]


@implements("Silence")
def silence(run, layer, bottoms, tops):
    return []


@implements("Reduction")
def reduction(run, layer, bottoms, tops):
    p, x = layer.reduction_param, bottoms[0].value
    a = axis_of(p.axis, x.dim())
    v = x.reshape(list(x.shape[:a]) + [-1])
    y = {
        1: lambda: v.sum(-1),
        2: lambda: v.abs().sum(-1),
        3: lambda: (v * v).sum(-1),
        4: lambda: v.mean(-1),
    }[p.operation]()
    return [p.coeff * y]


def top(x, k, a):
    """The k largest; of equal ones that with the larger index first."""
    order = torch.flip(torch.argsort(x, dim=a, stable=True), [a]).narrow(a, 0, k)
    return x.gather(a, order), order


@implements("ArgMax")
def arg_max(run, layer, bottoms, tops):
    p, x = layer.argmax_param, bottoms[0].value.detach()
    k = p.top_k
    if p.HasField("axis"):
        a = axis_of(p.axis, x.dim())
        values, indices = top(x, k, a)
        return [values if p.out_max_val else indices.to(run.dtype)]
    v = x.reshape(x.shape[0], -1)
    values, indices = top(v, k, 1)
    if p.out_max_val:
        return [torch.stack([indices.to(run.dtype), values], 1)]
    return [indices.to(run.dtype).reshape(x.shape[0], 1, k)]
