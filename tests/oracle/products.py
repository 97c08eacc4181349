"""Layers with weights: convolutions, products, Scale and Bias, recurrent layers."""

import math

import torch
import torch.nn.functional as F

from layer_tools import axis_of, implements


def spatial(p, what, dims, default):
    h, w = what + "_h", what + "_w"
    if what == "kernel" and (p.HasField("kernel_h") or p.HasField("kernel_w")):
        return [p.kernel_h, p.kernel_w]
    if what != "kernel" and hasattr(p, h) and (p.HasField(h) or p.HasField(w)):
        return [getattr(p, h), getattr(p, w)]
    given = list(getattr(p, "kernel_size" if what == "kernel" else what))
    if not given:
        return [default] * dims
    return given * dims if len(given) == 1 else given


@implements("Convolution")
def convolution(run, layer, bottoms, tops, transposed=False):
    p = layer.convolution_param
    a = axis_of(p.axis, bottoms[0].value.dim())
    dims = bottoms[0].value.dim() - a - 1
    k = spatial(p, "kernel", dims, 0)
    stride, pad, dilation = (
        spatial(p, "stride", dims, 1),
        spatial(p, "pad", dims, 0),
        spatial(p, "dilation", dims, 1),
    )
    c = bottoms[0].value.shape[a]
    shape = ([c, p.num_output // p.group] if transposed else [p.num_output, c // p.group]) + k
    w = run.param(layer, 0, shape, fan=shape[1] * math.prod(k))
    bias = run.param(layer, 1, [p.num_output]) if p.bias_term else None
    out = []
    for x in bottoms:
        v = x.value
        lead = list(v.shape[:a])
        v = v.reshape([-1] + list(v.shape[a:]))
        if dims == 0:
            y = F.conv1d(v[..., None], w[..., None], bias, groups=p.group)[..., 0]
        elif transposed:
            f = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}[dims]
            y = f(v, w, bias, stride, pad, 0, p.group, dilation)
        else:
            f = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[dims]
            y = f(v, w, bias, stride, pad, dilation, p.group)
        out.append(y.reshape(lead + list(y.shape[1:])))
    return out


@implements("Deconvolution")
def deconvolution(run, layer, bottoms, tops):
    return convolution(run, layer, bottoms, tops, True)


@implements("Im2col")
def im2col(run, layer, bottoms, tops):
    p, x = layer.convolution_param, bottoms[0].value
    k = spatial(p, "kernel", 2, 0)
    stride, pad, dilation = (
        spatial(p, "stride", 2, 1),
        spatial(p, "pad", 2, 0),
        spatial(p, "dilation", 2, 1),
    )
    size = [
        (x.shape[2 + i] + 2 * pad[i] - (dilation[i] * (k[i] - 1) + 1)) // stride[i] + 1
        for i in range(2)
    ]
    y = F.unfold(x, k, dilation, pad, stride)
    return [y.reshape([x.shape[0], y.shape[1]] + size)]


@implements("InnerProduct")
def inner_product(run, layer, bottoms, tops):
    p, x = layer.inner_product_param, bottoms[0].value
    a = axis_of(p.axis, x.dim())
    k = math.prod(x.shape[a:])
    w = run.param(layer, 0, [k, p.num_output] if p.transpose else [p.num_output, k], fan=k)
    bias = run.param(layer, 1, [p.num_output]) if p.bias_term else None
    y = F.linear(x.reshape(-1, k), w.t() if p.transpose else w, bias)
    return [y.reshape(list(x.shape[:a]) + [p.num_output])]


@implements("Embed")
def embed(run, layer, bottoms, tops):
    p, x = layer.embed_param, bottoms[0].value.detach()
    w = run.param(layer, 0, [p.input_dim, p.num_output])
    y = F.embedding(x.long(), w)
    if p.bias_term:
        y = y + run.param(layer, 1, [p.num_output])
    return [y]


def second_factor(run, layer, p, bottoms, init=None):
    """The learned or given one of Scale and Bias, and its shape beside the first bottom's axes."""
    x = bottoms[0].value
    if len(bottoms) == 1:
        a = axis_of(p.axis, x.dim())
        shape = list(x.shape[a:]) if p.num_axes == -1 else list(x.shape[a : a + p.num_axes])
        w = run.param(layer, 0, shape, init=init)
    else:
        w = bottoms[1].value
        a = 0 if w.dim() == 0 else axis_of(p.axis, x.dim())
    return w, [1] * a + list(w.shape) + [1] * (x.dim() - a - w.dim())


@implements("Scale")
def scale(run, layer, bottoms, tops):
    p = layer.scale_param
    w, spread = second_factor(
        run, layer, p, bottoms, lambda r, s: r.uniform(0.5, 1.5, s) * r.choice([-1, 1], s)
    )
    y = bottoms[0].value * w.reshape(spread)
    if p.bias_term:
        y = y + run.param(layer, 1 if len(bottoms) == 1 else 0, list(w.shape)).reshape(spread)
    return [y]


@implements("Bias")
def bias(run, layer, bottoms, tops):
    w, spread = second_factor(run, layer, layer.bias_param, bottoms)
    return [bottoms[0].value + w.reshape(spread)]


@implements("Parameter")
def parameter(run, layer, bottoms, tops):
    return [run.param(layer, 0, list(layer.parameter_param.shape.dim)).clone()]


def recurrent(run, layer, bottoms):
    """x (T x N x D), what continues (T x N), the hidden size, the state of the last pass."""
    x, cont, h = bottoms[0].value, bottoms[1].value.detach(), layer.recurrent_param.num_output
    t, n = x.shape[:2]
    return x.reshape(t, n, -1), cont, h, run.state.get(layer.name)


@implements("LSTM")
def lstm(run, layer, bottoms, tops):
    x, cont, h, state = recurrent(run, layer, bottoms)
    wx = run.param(layer, 0, [4 * h, x.shape[2]], fan=x.shape[2])
    bias = run.param(layer, 1, [4 * h])
    i = 2
    each = F.linear(x, wx, bias)
    if len(bottoms) == 3:
        s = bottoms[2].value.reshape(x.shape[1], -1)
        each = each + F.linear(s, run.param(layer, 2, [4 * h, s.shape[1]], fan=s.shape[1]))
        i = 3
    wh = run.param(layer, i, [4 * h, h], fan=h)
    hid, cell = state or (torch.zeros(x.shape[1], h, dtype=run.dtype),) * 2
    out = []
    for t in range(x.shape[0]):
        on = cont[t][:, None]
        g = each[t] + F.linear(hid * on, wh)
        i_, f_, o_ = torch.sigmoid(g[:, : 3 * h]).split(h, 1)
        cell = on * f_ * cell + i_ * torch.tanh(g[:, 3 * h :])
        hid = o_ * torch.tanh(cell)
        out.append(hid)
    run.state[layer.name] = (hid.detach(), cell.detach())
    return [torch.stack(out)]


@implements("RNN")
def rnn(run, layer, bottoms, tops):
    x, cont, h, state = recurrent(run, layer, bottoms)
    wx = run.param(layer, 0, [h, x.shape[2]], fan=x.shape[2])
    each = F.linear(x, wx, run.param(layer, 1, [h]))
    i = 2
    if len(bottoms) == 3:
        s = bottoms[2].value.reshape(x.shape[1], -1)
        each = each + F.linear(s, run.param(layer, 2, [h, s.shape[1]], fan=s.shape[1]))
        i = 3
    wh, wo = run.param(layer, i, [h, h], fan=h), run.param(layer, i + 1, [h, h], fan=h)
    bo = run.param(layer, i + 2, [h])
    hid = state if state is not None else torch.zeros(x.shape[1], h, dtype=run.dtype)
    out = []
    for t in range(x.shape[0]):
        hid = torch.tanh(each[t] + F.linear(hid * cont[t][:, None], wh))
        out.append(torch.tanh(F.linear(hid, wo, bo)))
    run.state[layer.name] = hid.detach()
    return [torch.stack(out)]
