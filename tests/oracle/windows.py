"""Poolings and normalisations."""

import numpy as np
import torch
import torch.nn.functional as F

from layer_tools import Later, axis_of, from_top, implements
from memory import custom


def windows(size, k, s, p, floor):
    out = (size + 2 * p - k) // s + 1 if floor else -(-(size + 2 * p - k) // s) + 1
    if p and (out - 1) * s >= size + p:
        out -= 1
    return out


@implements("Pooling")
def pooling(run, layer, bottoms, tops):
    p, x = layer.pooling_param, bottoms[0].value
    h, w = x.shape[2:]
    if p.global_pooling:
        k = [h, w]
    else:
        k = [p.kernel_size] * 2 if p.HasField("kernel_size") else [p.kernel_h, p.kernel_w]
    s = [p.stride_h, p.stride_w] if p.HasField("stride_h") else [p.stride] * 2
    pad = [p.pad_h, p.pad_w] if p.HasField("pad_h") else [p.pad] * 2
    y, masks = pool(x, (k, s, pad), p.pool == 0, p.round_mode == 1)
    return [y, masks] if tops == 2 else [y]


def pool(x, window, is_max, floor=False):
    """What a window (kernel, strides, padding) gives at each place, and of which element."""
    k, s, pad = window
    h, w = x.shape[2:]
    oh, ow = windows(h, k[0], s[0], pad[0], floor), windows(w, k[1], s[1], pad[1], floor)
    rows, masks = [], []
    for i in range(oh):
        for j in range(ow):
            y0, x0 = i * s[0] - pad[0], j * s[1] - pad[1]
            y1, x1 = min(y0 + k[0], h + pad[0]), min(x0 + k[1], w + pad[1])
            area = (y1 - y0) * (x1 - x0)
            if is_max:
                y1, x1 = min(y0 + k[0], h), min(x0 + k[1], w)
            y0, x0, y1, x1 = max(y0, 0), max(x0, 0), min(y1, h), min(x1, w)
            if y1 <= y0 or x1 <= x0:
                raise ValueError("a window outside of the input")
            v = x[:, :, y0:y1, x0:x1].reshape(x.shape[0], x.shape[1], -1)
            if is_max:
                best = torch.from_numpy(np.argmax(v.detach().numpy(), -1))
                rows.append(v.gather(-1, best[..., None])[..., 0])
                masks.append((y0 + best // (x1 - x0)) * w + x0 + best % (x1 - x0))
            else:
                rows.append(v.sum(-1) / area)
    shape = [x.shape[0], x.shape[1], oh, ow]
    y = torch.stack(rows, -1).reshape(shape)
    return y, torch.stack(masks, -1).reshape(shape).to(x.dtype) if is_max else None


@implements("SPP")
def spp(run, layer, bottoms, tops):
    p, x = layer.spp_param, bottoms[0].value
    parts = []
    for level in range(p.pyramid_height):
        bins = 2**level
        k = [-(-d // bins) for d in x.shape[2:]]
        pad = [(k[i] * bins - x.shape[2 + i] + 1) // 2 for i in range(2)]
        y = pool(x, (k, k, pad), p.pool == 0)[0]
        if p.pyramid_height == 1:
            return [y]
        parts.append(y.reshape(x.shape[0], -1))
    return [torch.cat(parts, 1)]


@implements("LRN")
def lrn(run, layer, bottoms, tops):
    p, x = layer.lrn_param, bottoms[0].value
    half = (p.local_size - 1) // 2
    if p.norm_region == 0:
        sq = F.pad(x * x, (0, 0, 0, 0, half, half))
        s = p.k + p.alpha / p.local_size * sum(
            sq[:, i : i + x.shape[1]] for i in range(p.local_size)
        )
        y = x * s**-p.beta
        later = run.later = Later()
        v, s = x.detach(), s.detach()

        def rule(g):
            t = later(y.shape)
            r = F.pad(g * t / s, (0, 0, 0, 0, half, half))
            acc = sum(r[:, i : i + v.shape[1]] for i in range(p.local_size))
            return g * s**-p.beta - 2 * p.alpha * p.beta / p.local_size * v * acc

        return [custom(y, rule, x)]
    means = pool(x * x, ([p.local_size] * 2, [1, 1], [half] * 2), False)[0]
    return [x * (1 + p.alpha * means) ** -p.beta]


@implements("MVN")
def mvn(run, layer, bottoms, tops):
    p, x = layer.mvn_param, bottoms[0].value
    v = x.reshape(x.shape[0], -1) if p.across_channels else x.reshape(x.shape[0] * x.shape[1], -1)
    d = v - v.mean(1, keepdim=True)
    if not p.normalize_variance:
        return [d.reshape(x.shape)]
    sd = (d * d).mean(1, keepdim=True).sqrt() + p.eps
    y = d / sd
    sd = sd.detach()
    later = run.later = Later()

    def rule(g):
        t = later(y.shape)
        return (g - g.mean(1, keepdim=True) - t * (g * t).mean(1, keepdim=True)) / sd

    return [custom(y, rule, v).reshape(x.shape)]


@implements("BatchNorm")
def batch_norm(run, layer, bottoms, tops):
    p, x = layer.batch_norm_param, bottoms[0].value
    c = 1 if x.dim() == 1 else x.shape[1]
    v = x.reshape(x.shape[0], c, -1)
    stats = [run.statistic(layer, i, s) for i, s in enumerate([[c], [c], [1]])]
    use = p.use_global_stats if p.HasField("use_global_stats") else run.phase == 1
    if use:
        f = 0 if float(stats[2]) == 0 else 1 / float(stats[2])
        mean, var = stats[0] * f, stats[1] * f
    else:
        mean = v.mean((0, 2))
        var = ((v - mean[:, None]) ** 2).mean((0, 2))
        m = v.shape[0] * v.shape[2]
        f = p.moving_average_fraction
        with torch.no_grad():
            stats[2].mul_(f).add_(1)
            stats[0].mul_(f).add_(mean.detach())
            stats[1].mul_(f).add_(var.detach() * (m / (m - 1) if m > 1 else 1))
    return [((v - mean[:, None]) / torch.sqrt(var + p.eps)[:, None]).reshape(x.shape)]


@implements("Softmax")
def softmax(run, layer, bottoms, tops):
    x = bottoms[0].value
    a = axis_of(layer.softmax_param.axis, x.dim())
    return [
        from_top(run, x, torch.softmax(x, a), lambda g, t: (g - (g * t).sum(a, keepdim=True)) * t)
    ]
