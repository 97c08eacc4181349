"""Losses and Accuracy."""

import math

import torch

from layer_tools import axis_of, implements
from memory import custom

FLT_MIN = 1.1754943508222875e-38


def class_view(x, a):
    """outer x classes x inner"""
    return x.reshape(math.prod(x.shape[:a]), x.shape[a], -1)


def normalizer(mode, outer, inner, valid):
    return max(1.0, {0: outer * inner, 1: valid, 2: outer, 3: 1}[mode])


def mode_of(p, default):
    if not p.HasField("normalization") and p.HasField("normalize"):
        return 1 if p.normalize else 2
    return p.normalization if p.HasField("normalization") else default


def with_ignored(layer, labels):
    p = layer.loss_param
    keep = torch.ones_like(labels, dtype=torch.bool)
    return labels != p.ignore_label if p.HasField("ignore_label") else keep


def labelled_classes(layer, axis, bottoms):
    """Outer x classes x inner; labels, which of them count; what the loss is divided by."""
    v = class_view(bottoms[0].value, axis)
    label = bottoms[1].value.detach().reshape(v.shape[0], v.shape[2]).long()
    keep = with_ignored(layer, label)
    by = normalizer(mode_of(layer.loss_param, 1), v.shape[0], v.shape[2], int(keep.sum()))
    return v, torch.where(keep, label, 0), keep, by


@implements("SoftmaxWithLoss")
def softmax_loss(run, layer, bottoms, tops):
    x = bottoms[0].value
    a = axis_of(layer.softmax_param.axis, x.dim())
    v, label, keep, by = labelled_classes(layer, a, bottoms)
    at = label[:, None]
    prob = torch.softmax(v.detach(), 1)
    logs = torch.log(torch.clamp(prob.gather(1, at)[:, 0], min=FLT_MIN))
    one = torch.zeros_like(prob).scatter(1, at, 1.0)
    out = [custom(-(logs * keep).sum() / by, lambda g: g / by * (prob - one) * keep[:, None], v)]
    if tops == 2:
        out.append(torch.softmax(x, a).detach())
    return out


@implements("InfogainLoss")
def infogain_loss(run, layer, bottoms, tops):
    a = axis_of(layer.infogain_loss_param.axis, bottoms[0].value.dim())
    v, label, keep, by = labelled_classes(layer, a, bottoms)
    h = bottoms[2].value.detach().reshape(v.shape[1], v.shape[1])
    prob = torch.softmax(v.detach(), 1)
    rows = h[label].permute(0, 2, 1) * keep[:, None]
    y = -(rows * torch.log(torch.clamp(prob, min=1e-20))).sum() / by
    return [custom(y, lambda g: g / by * (prob * rows.sum(1, keepdim=True) - rows), v)]


@implements("SigmoidCrossEntropyLoss")
def sigmoid_loss(run, layer, bottoms, tops):
    x, t = bottoms[0].value, bottoms[1].value.detach()
    keep = with_ignored(layer, t.long())
    each = torch.clamp(x, min=0) - x * t + torch.log1p(torch.exp(-x.abs()))
    outer = x.shape[0]
    return [
        (each * keep).sum()
        / normalizer(mode_of(layer.loss_param, 2), outer, x.numel() // outer, int(keep.sum()))
    ]


@implements("EuclideanLoss")
def euclidean_loss(run, layer, bottoms, tops):
    d = bottoms[0].value - bottoms[1].value.reshape(bottoms[0].value.shape)
    return [(d * d).sum() / d.shape[0] / 2]


@implements("HingeLoss")
def hinge_loss(run, layer, bottoms, tops):
    x = bottoms[0].value
    v = x.reshape(x.shape[0], -1)
    label = bottoms[1].value.detach().reshape(-1).long()
    sign = torch.ones_like(v)
    sign[torch.arange(len(label)), label] = -1
    m = torch.clamp(1 + sign * v, min=0)
    return [(m.sum() if layer.hinge_loss_param.norm == 1 else (m * m).sum()) / x.shape[0]]


@implements("MultinomialLogisticLoss")
def multinomial_loss(run, layer, bottoms, tops):
    x = bottoms[0].value
    v = x.reshape(x.shape[0], -1)
    label = bottoms[1].value.detach().reshape(-1).long()
    p = v.gather(1, label[:, None])[:, 0]
    limited = torch.clamp(p.detach(), min=1e-20)
    y = -torch.log(limited).sum() / x.shape[0]
    return [custom(y, lambda g: -g / x.shape[0] / limited, p)]  # Below the limit as well.


@implements("ContrastiveLoss")
def contrastive_loss(run, layer, bottoms, tops):
    p = layer.contrastive_loss_param
    x, y = bottoms[0].value, bottoms[1].value
    num = x.shape[0]
    d = (x - y).reshape(num, -1)
    sim = bottoms[2].value.detach().reshape(-1).long() != 0
    sq = (d * d).sum(1)
    dist = sq.detach().sqrt()
    margin = torch.clamp(p.margin - (sq if p.legacy_version else sq.detach().sqrt()), min=0)
    loss = torch.where(sim, sq, margin if p.legacy_version else margin * margin).sum() / num / 2
    kept = d.detach()

    def rule(g):
        if p.legacy_version:
            far = -kept * (p.margin - sq.detach() > 0)[:, None]
        else:
            far = -kept * ((p.margin - dist) / (dist + 1e-4) * (p.margin - dist > 0))[:, None]
        return (g / num * torch.where(sim[:, None], kept, far)).reshape(x.shape)

    s = custom(loss, rule, x - y)
    return [s]


@implements("Accuracy")
def accuracy(run, layer, bottoms, tops):
    p, x = layer.accuracy_param, bottoms[0].value.detach()
    a = axis_of(p.axis, x.dim())
    v = class_view(x, a)
    label = bottoms[1].value.detach().reshape(v.shape[0], v.shape[2]).long()
    keep = (
        label != p.ignore_label
        if p.HasField("ignore_label")
        else torch.ones_like(label, dtype=torch.bool)
    )
    truth = v.gather(1, torch.where(keep, label, 0)[:, None])
    hit = ((v >= truth).sum(1) - 1 < p.top_k) & keep
    total = int(keep.sum())
    out = [torch.tensor(float(hit.sum()) / total if total else 0.0, dtype=run.dtype)]
    if tops == 2:
        c = v.shape[1]
        per = [
            (
                float((hit & (label == i)).sum()) / float((keep & (label == i)).sum())
                if (keep & (label == i)).any()
                else 0.0
            )
            for i in range(c)
        ]
        out.append(torch.tensor(per, dtype=run.dtype))
    return out
