"""Blobs as Caffe keeps them: a value of the graph, and the memory that several blobs may share.

Caffe's backward passes read tops and bottoms from memory, which a later layer may have overwritten
in place.
"""

import torch


class Memory:
    def __init__(self, data):
        self.data = data.detach()

    def as_shape(self, shape):
        return self.data.reshape(shape)


class Blob:
    def __init__(self, value, memory=None):
        self.value = value
        self.memory = memory or Memory(value)

    @property
    def shape(self):
        return list(self.value.shape)


class _Custom(torch.autograd.Function):
    @staticmethod
    def forward(ctx, out, rule, *inputs):
        ctx.rule = rule
        return out.detach().clone()

    @staticmethod
    def backward(ctx, grad):
        grads = ctx.rule(grad)
        return (None, None, *(grads if isinstance(grads, tuple) else (grads,)))


def custom(out, rule, *inputs):
    """`out`, whose gradients for `inputs` are what `rule` makes of the gradient of `out`."""
    return _Custom.apply(out, rule, *inputs)
