"""What drawing a random net needs: its layers so far, their values, and what may be done with them.

A layer is tried on real values as it is added, and left out if it makes none that are sound.
"""

import math

import numpy as np
import torch

from net import TRAIN, Net, Parameters, is_in_place
from protos import pb


class Unfit(Exception):
    """What was drawn makes no layer or net to be compared."""


class Facts:
    """Of a blob: whether a gradient reaches it, and what may still be done with it."""

    def __init__(self, need):
        self.need = need
        self.readers = 0
        self.closed = False  # no more readers
        self.fixed = False  # not to be overwritten in place
        self.dead = False  # nothing may send a gradient to it
        self.alias = None  # the blob whose memory it shares


class Drawing:
    """A net in the making, and how its parts are drawn."""

    def __init__(self, seed, size=None):
        self.r = np.random.default_rng(seed)
        self.size = size or int(self.r.integers(2, 11))
        self.batch = int(self.r.integers(2, 6))
        self.rows = int(self.r.integers(self.batch, 4 * self.batch + 1))
        if self.chance(0.5):
            self.rows = self.rows // self.batch * self.batch
        self.wide = self.r.random() < 0.45  # channels by eights, as blocked layouts want them
        self.data, self.weights = {}, {}
        self.net = pb.NetParameter(name="oracle")
        self.layers = []
        self.params = Parameters(torch.float64, self.source)
        self.run = Net(self.params, TRAIN, torch.float64)
        self.run.begin()
        self.facts = {}
        self.count = 0
        self.sharable = {}
        self.types = []

    def source(self, key, shape, init, fan):
        if key not in self.weights:
            if init is not None:
                v = init(self.r, shape)
            else:
                v = self.r.normal(0, 1 / math.sqrt(fan) if fan else 0.4, shape)
            self.weights[key] = np.asarray(v, dtype=np.float32)
        return self.weights[key]

    def chance(self, p):
        return self.r.random() < p

    def pick(self, xs):
        return xs[int(self.r.integers(len(xs)))]

    def between(self, lo, hi):
        return int(self.r.integers(lo, hi + 1))

    def decimal(self, lo, hi):
        return float(np.float32(round(self.r.uniform(lo, hi), 3)))

    def add_data(self, name, values):
        self.data[name] = values.astype(np.float32)
        self.run.feed({name: self.data[name][[i % self.rows for i in range(self.batch)]]})
        self.facts[name] = Facts(False)
        return name

    def real(self, shape):
        return self.add_data(
            f"real{len(self.data)}", self.r.normal(0, 1, [self.rows] + list(shape))
        )

    def whole(self, shape, high):
        name = self.add_data(
            f"int{len(self.data)}", self.r.integers(0, high, [self.rows] + list(shape))
        )
        self.facts[name].closed = True
        return name

    def open(self, test=lambda shape, facts: True):
        names = [
            n
            for n, f in self.facts.items()
            if not f.closed
            and not f.dead
            and test(self.run.blobs[n].shape, f)
            and self.run.blobs[n].value.numel() > 0
        ]
        if not names:
            raise Unfit()
        # Newer and unread ones come more often.
        weights = np.array(
            [(3.0 if self.facts[n].readers == 0 else 1.0) * (1 + i) for i, n in enumerate(names)]
        )
        return names[int(self.r.choice(len(names), p=weights / weights.sum()))]

    def value(self, n):
        return self.run.blobs[n].value.detach()

    def shape(self, n):
        return self.run.blobs[n].shape

    def named(self, kind):
        self.count += 1
        return f"{kind.lower()}{self.count}"

    def layer(self, kind, bottoms, tops=1, name=None):
        layer = pb.LayerParameter(name=name or self.named(kind), type=kind, bottom=bottoms)
        layer.top.extend(layer.name if tops == 1 else f"{layer.name}_{i}" for i in range(tops))
        return layer

    def param_specs(self, layer, blobs):
        if self.chance(0.4):
            for i in range(blobs):
                s = layer.param.add()
                if self.chance(0.7):
                    s.lr_mult = self.pick([0.0, 0.5, 1.0, 2.0])
                if self.chance(0.5):
                    s.decay_mult = self.pick([0.0, 0.5, 1.0, 3.0])
        return layer

    def share(self, layer, blobs, signature):
        """Sometimes takes the parameters of an earlier layer of the same shapes."""
        if signature in self.sharable and self.chance(0.6):
            other = self.pick(self.sharable[signature])
            del layer.param[:]
            for i in range(blobs):
                s = layer.param.add()
                if other[i]:
                    s.name = other[i]
            if blobs > 1 and self.chance(0.2):
                layer.param[1].ClearField("name")
        elif self.chance(0.5):
            while len(layer.param) < blobs:
                layer.param.add()
            for i in range(blobs):
                layer.param[i].name = f"{layer.name}_p{i}"
            self.sharable.setdefault(signature, []).append([s.name for s in layer.param])
        return layer

    def commit(self, layer, dead=False, alias=None):
        """Runs the layer and keeps it if all that comes out is sound."""
        self.try_on(layer)
        own = any(key[0] == layer.name for key in (*self.weights, *self.params.of))
        need = own or any(self.facts[name].need for name in layer.bottom)
        for name in layer.bottom:
            self.facts[name].readers += 1
        in_place = is_in_place(layer)
        if in_place:
            self.overwrite(self.facts[layer.top[0]], need)
        for name in layer.top[1:] if in_place else layer.top:
            f = self.facts[name] = Facts(need)
            f.dead = dead and need
            f.closed = bool(dead)
            f.alias = alias
        for name, weight in zip(layer.top, layer.loss_weight):
            self.facts[name].fixed |= bool(weight)
        self.layers.append(layer)
        self.types.append(layer.type + ("*" if in_place else ""))
        return layer

    def try_on(self, layer):
        """Runs the layer; leaves all as it was if that fails or gives what cannot be compared."""
        saved = dict(self.run.blobs), dict(self.run.unread), dict(self.run.maker)
        memory = {name: blob.memory.data for name, blob in self.run.blobs.items()}
        drawn, loss = set(self.weights), self.run.loss
        try:
            self.run.apply(layer)
            if not all(self.is_sound(self.value(name)) for name in layer.top):
                raise Unfit()
            if not abs(float(self.run.loss.detach())) < 1e3:
                raise Unfit()
        except (Unfit, ValueError, RuntimeError, IndexError, ZeroDivisionError) as error:
            self.run.blobs, self.run.unread, self.run.maker = saved
            for name, blob in self.run.blobs.items():
                blob.memory.data = memory[name]
            self.run.loss = loss
            self.forget(set(self.weights) - drawn)
            raise Unfit() from error

    def is_sound(self, value):
        most = 20000 if self.wide else 4000
        if not 0 < value.numel() <= most or not torch.isfinite(value).all():
            return False
        return bool(value.abs().max() <= 60)

    def forget(self, keys):
        """Takes parameters back."""
        for key in keys:
            del self.weights[key]
            self.params.of.pop(key, None)
        self.params.owners = [o for o in self.params.owners if o["key"] in self.weights]
        self.params.named = {k: o for k, o in self.params.named.items() if o["key"] in self.weights}

    def overwrite(self, f, need):
        f.readers -= 1
        f.need = need
        alias = f.alias
        while alias:
            self.facts[alias].closed = True
            alias = self.facts[alias].alias

    def weigh(self, layer):
        """A loss weight on a layer that is no loss."""
        if self.chance(0.12) and len(layer.top):
            weights = [self.pick([0.0, 0.1, -0.3, 1.0]) for _ in layer.top]
            layer.loss_weight.extend(weights)
        if self.chance(0.04) and len(layer.bottom) and layer.type not in ("Flatten", "Reshape"):
            layer.propagate_down.extend(
                [
                    bool(self.chance(0.5))
                    and layer.type not in ("LSTM", "RNN")
                    and not self.facts[b].closed
                    for b in layer.bottom
                ]
            )
        return layer
