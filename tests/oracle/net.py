"""A net of Caffe's: the layers of a phase, memory in place, shared parameters, the loss."""

import numpy as np
import torch

# These fill LAYERS.
import elementwise  # noqa: F401
import losses  # noqa: F401
import products  # noqa: F401
import shapes  # noqa: F401
import windows  # noqa: F401
from layer_tools import LAYERS
from memory import Blob

TRAIN, TEST = 0, 1
# In place these get memory of their own, so that what they read is kept: src/core/from-caffe.md.
OWN_MEMORY = {"BatchNorm", "Scale", "PReLU", "AbsVal", "BNLL", "Log", "Clip", "Swish"}


def is_in_place(layer):
    return bool(layer.top) and bool(layer.bottom) and layer.top[0] == layer.bottom[0]


def has_variance(layer):
    return layer.type == "MVN" and layer.mvn_param.normalize_variance


def keeps_bottom(layer):
    """Whether the layer, in place, gets memory of its own."""
    power = layer.type == "Power" and layer.power_param.power != 1
    return layer.type in OWN_MEMORY or power or has_variance(layer)


def keeps_top(layer):
    """Whether a later layer that is in place on this one's top gets memory of its own."""
    return layer is not None and (layer.type == "LRN" or has_variance(layer))


def included(layer, phase, stages=(), level=0):
    def meets(r):
        if r.HasField("phase") and r.phase != phase:
            return False
        if r.HasField("min_level") and level < r.min_level:
            return False
        if r.HasField("max_level") and level > r.max_level:
            return False
        return all(s in stages for s in r.stage) and not any(s in stages for s in r.not_stage)

    if layer.include:
        return any(meets(r) for r in layer.include)
    return not any(meets(r) for r in layer.exclude)


def losses_lost(layers):
    """Tops whose loss weight Caffe drops.

    Where it splits a weighted top, the layer's other weights are cleared with that one.
    """
    made, readers = {}, {}
    for layer in layers:
        for b in layer.bottom:
            if b in made:
                readers[made[b]] = readers.get(made[b], 0) + 1
        for i, t in enumerate(layer.top):
            made[t] = (layer.name, i)
    lost = set()
    for layer in layers:
        weighed = [i for i, w in enumerate(layer.loss_weight) if w]
        split = {i for i in weighed if readers.get((layer.name, i), 0) > 0}
        if split:
            lost |= {(layer.name, i) for i in weighed if i not in split}
    return lost


class Parameters:
    """Owners of parameters, shared by name; statistics of BatchNorm are untrained ones."""

    def __init__(self, dtype, source):
        self.dtype, self.source = dtype, source
        self.owners = []  # dicts: value, lr, decay
        self.of = {}  # (layer name, index) -> owner
        self.named = {}

    def get(self, layer, i, shape, init, fan, statistic):
        """Parameter `i` of a layer; `init` and `fan` are hints for one that is drawn."""
        key = (layer.name, i)
        if key in self.of:
            return self.of[key]
        spec = layer.param[i] if i < len(layer.param) else None
        name = spec.name if spec is not None else ""
        if name and name in self.named:
            owner = self.named[name]
            if spec.HasField("lr_mult"):
                owner["lr"] = spec.lr_mult
            if spec.HasField("decay_mult"):
                owner["decay"] = spec.decay_mult
            if list(owner["value"].shape) != list(shape):
                owner = dict(owner, reshape=list(shape))
        else:
            value = torch.tensor(self.source(key, shape, init, fan), dtype=self.dtype)
            value = value.reshape(shape)
            lr = spec.lr_mult if spec is not None else 1.0
            owner = {"key": key, "value": value.requires_grad_(not statistic)}
            owner["lr"] = 0.0 if statistic else lr
            owner["decay"] = spec.decay_mult if spec is not None else 1.0
            self.owners.append(owner)
            if name:
                self.named[name] = owner
        self.of[key] = owner
        return owner


class Net:
    def __init__(self, parameters, phase, dtype):
        self.parameters, self.phase, self.dtype = parameters, phase, dtype
        self.blobs, self.loss = {}, torch.zeros((), dtype=dtype)
        self.later, self.in_place = None, False
        self.unread, self.lost, self.state = {}, set(), {}

    def begin(self):
        self.blobs, self.unread, self.weighed = {}, {}, {}
        self.loss = torch.zeros((), dtype=self.dtype)
        self.magnitude, self.maker = 0.0, {}

    def param(self, layer, i, shape, init=None, fan=None):
        owner = self.parameters.get(layer, i, shape, init, fan, False)
        spec = layer.param[i] if i < len(layer.param) else None
        frozen = spec is not None and spec.lr_mult == 0
        v = owner["value"]
        v = v.detach() if frozen else v
        return v.reshape(shape)

    def statistic(self, layer, i, shape):
        def init(r, s):
            return np.abs(r.uniform(0.5, 1.5, s)) if i else r.uniform(-0.3, 0.3, s)

        return self.parameters.get(layer, i, shape, init, None, True)["value"]

    def feed(self, values):
        for name, v in values.items():
            self.blobs[name] = Blob(torch.tensor(v, dtype=self.dtype))
            self.unread[name] = True

    def apply(self, layer):
        bottoms = []
        for i, name in enumerate(layer.bottom):
            blob = self.blobs[name]
            if self.unread.pop(name, None) and name in self.weighed:
                self.unread[self.weighed[name]] = True
                self.blobs[self.weighed[name]] = blob
            if len(layer.propagate_down) and not layer.propagate_down[i]:
                blob = Blob(blob.value.detach(), blob.memory)
            bottoms.append(blob)
        self.in_place = is_in_place(layer)
        self.later = None
        out = LAYERS[layer.type](self, layer, bottoms, len(layer.top))
        for i, (name, value) in enumerate(zip(layer.top, out)):
            blob = value if isinstance(value, Blob) else Blob(value)
            if i == 0 and not isinstance(value, Blob) and not self.has_own_memory(layer):
                blob = Blob(value, bottoms[0].memory)
                blob.memory.data = value.detach()
            if i == 0 and self.later is not None:
                self.later.memory = blob.memory
            self.blobs[name] = blob
            self.maker[name] = layer
            self.unread[name] = True
            self.add_loss(layer, i, blob)

    def has_own_memory(self, layer):
        if not self.in_place:
            return True
        return keeps_bottom(layer) or keeps_top(self.maker.get(layer.bottom[0]))

    def add_loss(self, layer, i, blob):
        name = layer.top[i]
        if i < len(layer.loss_weight):
            weight = layer.loss_weight[i]
        else:
            weight = float(layer.type.endswith("Loss") and i == 0 and not layer.loss_weight)
        if (layer.name, i) in self.lost or not weight:
            return
        if i < len(layer.loss_weight):
            # A reader of such a top makes Caffe insert a Split, whose first top bears the loss.
            self.weighed[name] = f"{name}_{layer.name}_{i}_split_0"
        part = weight * blob.value.sum()
        self.magnitude += float(part.detach().abs())
        self.loss = self.loss + part

    def forward(self, layers, values):
        self.begin()
        self.feed(values)
        self.lost = losses_lost(layers)
        for layer in layers:
            self.apply(layer)
        return self.loss

    def outputs(self):
        """Blobs that no layer reads, by name."""
        return {k: self.blobs[k].value.detach() for k in sorted(self.unread)}
