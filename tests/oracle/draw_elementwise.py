"""Draws layers that may work in place."""

import math

import numpy as np

from drawing import Unfit
from protos import pb

IN_PLACE = [
    "ReLU",
    "PReLU",
    "ELU",
    "Sigmoid",
    "TanH",
    "AbsVal",
    "BNLL",
    "Power",
    "Exp",
    "Log",
    "Clip",
    "Swish",
    "Scale",
    "Bias",
    "BatchNorm",
    "Softmax",
    "MVN",
]

# Those that may write where the layer before them reads.
SHARING = ["ReLU", "ELU", "Sigmoid", "TanH", "Exp", "Bias", "Softmax"]


class ElementwiseLayers:
    """Part of the generator: see random_net.py."""

    def fill_elementwise(self, kind, n):
        layer = pb.LayerParameter(type=kind)
        v = self.value(n)
        if kind == "ReLU" and self.chance(0.4):
            layer.relu_param.negative_slope = self.decimal(0.05, 0.5)
        if kind == "ELU" and self.chance(0.6):
            layer.elu_param.alpha = self.decimal(0.2, 2)
        if kind == "PReLU":
            layer.prelu_param.channel_shared = self.chance(0.3)
        if kind == "Power":
            p = layer.power_param
            p.power = self.pick([1.0, 2.0, 0.5, -1.0, 3.0, 0.0, 1.5, 1.0])
            p.scale = self.pick([1.0, 0.0, self.decimal(-2, 2), self.decimal(0.1, 1)])
            p.shift = self.pick([0.0, self.decimal(-1, 1), 1.0])
            if p.power not in (0.0, 1.0, 2.0, 3.0):
                p.shift = float(np.float32(0.5 - min(0.0, float((p.scale * v).min())) + 4))
        if kind in ("Exp", "Log"):
            p = layer.exp_param if kind == "Exp" else layer.log_param
            p.base = self.pick([-1.0, 2.0, 10.0, 0.5])
            p.scale = self.decimal(0.05, 0.5)
            p.shift = self.decimal(-0.5, 0.5)
            if kind == "Log":
                p.shift = float(np.float32(0.5 - min(0.0, float((p.scale * v).min())) + 4))
        if kind == "Clip":
            layer.clip_param.min, layer.clip_param.max = self.decimal(-1, 0), self.decimal(0.2, 2)
        if kind == "Swish" and self.chance(0.6):
            layer.swish_param.beta = self.decimal(0.5, 2)
        if kind == "Softmax":
            layer.softmax_param.axis = self.between(-v.dim(), v.dim() - 1)
        if kind == "MVN":
            p = layer.mvn_param
            p.normalize_variance, p.across_channels = self.chance(0.7), self.chance(0.5)
            if self.chance(0.3):
                p.eps = self.decimal(0.01, 0.5)
        if kind == "BatchNorm":
            p = layer.batch_norm_param
            if self.chance(0.25):
                p.use_global_stats = self.chance(0.6)
            if self.chance(0.5):
                p.moving_average_fraction = self.decimal(0.5, 0.99)
            p.eps = self.pick([1e-5, 1e-3, 0.1])
        if kind in ("Scale", "Bias"):
            p = layer.scale_param if kind == "Scale" else layer.bias_param
            p.axis = self.between(0, v.dim() - 1)
            p.num_axes = self.pick([-1, 0, 1, 2])
            if p.num_axes > v.dim() - p.axis:
                p.num_axes = 1
            if kind == "Scale":
                p.bias_term = self.chance(0.6)
        return layer

    def elementwise(self, place=None, on=None, kinds=IN_PLACE):
        """A layer, in place or not; on the blob that has the facts `on`, or on any."""
        kind = self.pick(kinds)
        place = self.chance(0.55) if place is None else place
        least = {"MVN": 4, "PReLU": 2}.get(kind, 1)
        most = 4 if kind == "MVN" else math.inf

        def fits(shape, f):
            if not least <= len(shape) <= most or on not in (None, f):
                return False
            if place:
                return f.readers == 0 and not f.fixed and not f.dead and self.alias_alone(f)
            return True

        n = self.open(fits)
        if place and self.is_normalized_relu(n):
            raise Unfit()
        layer = self.fill_elementwise(kind, n)
        layer.name = self.named(kind)
        layer.bottom.append(n)
        layer.top.append(n if place else layer.name)
        if kind in ("Scale", "PReLU", "Bias"):
            self.fill_specs(layer, self.shape(n))
        if not place:
            self.weigh(layer)
        self.commit(layer)

    def fill_specs(self, layer, shape):
        blobs = 2 if layer.type == "Scale" and layer.scale_param.bias_term else 1
        self.param_specs(layer, blobs)
        if layer.type == "PReLU":
            size = shape[1], layer.prelu_param.channel_shared
        else:
            p = layer.scale_param if layer.type == "Scale" else layer.bias_param
            if p.num_axes == 0:
                return
            size = tuple(shape[p.axis :] if p.num_axes == -1 else shape[p.axis :][: p.num_axes])
        self.share(layer, blobs, (layer.type, blobs, size))

    def chain(self):
        """Layers in place one behind the other, where it matters which values a gradient is of."""
        on = None
        for _ in range(self.between(2, 4)):
            self.elementwise(True, on, SHARING if self.chance(0.7) else IN_PLACE)
            on = self.facts[self.layers[-1].top[0]]

    def is_normalized_relu(self, name):
        """Whether a ReLU made it from what a BatchNorm or a Scale made: the program may compute the
        two as one, and whether it does is no rule of Caffe's."""
        made = [layer for layer in self.layers if name in layer.top]
        if not made or made[-1].type != "ReLU":
            return False
        source = made[-1].bottom[0]
        before = [layer for layer in self.layers if source in layer.top and layer is not made[-1]]
        return bool(before) and before[-1].type in ("BatchNorm", "Scale")

    def alias_alone(self, f):
        """Whether no other layer reads the memory; a recurrent layer does, of its own top."""
        a = f.alias
        while a:
            if self.facts[a].readers > 1 or self.facts[a].fixed:
                return False
            maker = self.run.maker.get(a)  # None of a blob of the data layer
            if maker is not None and maker.type in ("LSTM", "RNN"):
                return False
            a = self.facts[a].alias
        return True
