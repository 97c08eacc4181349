"""Draws layers that move, choose or join values, and recurrent ones."""

import math

import numpy as np

from drawing import Unfit


class ShapeLayers:
    """Part of the generator: see random_net.py."""

    def flatten(self):
        n = self.open(lambda s, f: len(s) >= 1 and not f.fixed)
        d = len(self.shape(n))
        a = self.between(0, d - 1)
        layer = self.layer("Flatten", [n])
        if d < 2 or self.chance(0.6):
            layer.flatten_param.axis, layer.flatten_param.end_axis = a, self.between(a, d - 1)
        self.commit(self.weigh(layer), alias=n)

    def reshape(self):
        n = self.open(lambda s, f: len(s) >= 1 and not f.fixed)
        s = self.shape(n)
        layer = self.layer("Reshape", [n])
        p = layer.reshape_param
        how = self.between(0, 3)
        if how == 0:
            p.shape.dim.extend([0, -1])
            if len(s) < 2:
                raise Unfit()
        elif how == 1:
            p.axis = self.between(0, len(s))
            p.num_axes = 0
            p.shape.dim.append(1)
        elif how == 2:
            last = s[-1]
            for k in (2, 3):
                if last % k == 0:
                    p.axis = len(s) - 1
                    p.shape.dim.extend([k, -1])
                    break
            else:
                raise Unfit()
        else:
            p.shape.dim.extend([1, -1])
        self.commit(self.weigh(layer), alias=n)

    def concat(self):
        n = self.open(lambda s, f: len(s) >= 1)
        s = self.shape(n)
        a = self.between(0, len(s) - 1)
        names = [n]
        for _ in range(self.between(1, 3)):
            names.append(
                self.open(
                    lambda t, f: len(t) == len(s)
                    and all(x == y for i, (x, y) in enumerate(zip(t, s)) if i != a)
                )
            )
        layer = self.layer("Concat", names)
        layer.concat_param.axis = a if self.chance(0.7) else a - len(s)
        self.commit(self.weigh(layer))

    def slice(self):
        n = self.open(lambda s, f: len(s) >= 1 and max(s) >= 2)
        s = self.shape(n)
        a = self.pick([i for i, d in enumerate(s) if d >= 2])
        k = self.between(2, min(3, s[a]))
        layer = self.layer("Slice", [n], k)
        p = layer.slice_param
        p.axis = a if self.chance(0.7) else a - len(s)
        if s[a] % k or self.chance(0.5):
            p.slice_point.extend(
                sorted(int(x) for x in self.r.choice(np.arange(1, s[a]), k - 1, replace=False))
            )
        self.commit(self.weigh(layer))

    def split(self):
        n = self.open(lambda s, f: not f.fixed)
        layer = self.layer("Split", [n], self.between(2, 3))
        self.commit(layer)
        for t in layer.top:
            self.facts[t].alias = n
        self.facts[n].closed = True
        for t in layer.top:
            self.facts[t].fixed = True

    def tile(self):
        n = self.open(lambda s, f: len(s) >= 1)
        layer = self.layer("Tile", [n])
        layer.tile_param.axis, layer.tile_param.tiles = self.between(
            0, len(self.shape(n)) - 1
        ), self.between(1, 3)
        self.commit(self.weigh(layer))

    def crop(self):
        n = self.open(lambda s, f: len(s) >= 2)
        s = self.shape(n)
        a = self.between(1, len(s) - 1)
        like = [
            x
            for x in self.facts
            if len(self.shape(x)) == len(s)
            and not self.facts[x].closed
            and all(d <= e for d, e in zip(self.shape(x)[a:], s[a:]))
        ]
        m = (
            self.pick(like)
            if like and self.chance(0.6)
            else self.real(s[1:a] + [self.between(1, d) for d in s[a:]])
        )
        t = self.shape(m)
        layer = self.layer("Crop", [n, m])
        layer.crop_param.axis = a
        if self.chance(0.7):
            layer.crop_param.offset.extend(self.between(0, s[i] - t[i]) for i in range(a, len(s)))
        self.commit(layer)

    def eltwise(self):
        n = self.open()
        names = [n]
        for _ in range(self.between(1, 2)):
            names.append(self.open(lambda t, f: t == self.shape(n)))
        layer = self.layer("Eltwise", names)
        p = layer.eltwise_param
        p.operation = self.between(0, 2)
        if p.operation == 1 and self.chance(0.6):
            p.coeff.extend(self.decimal(-2, 2) for _ in names)
        if p.operation == 0 and self.chance(0.4):
            if any(float(self.value(x).abs().min()) < 1e-3 for x in names):
                raise Unfit()
            p.stable_prod_grad = False
        self.commit(self.weigh(layer))

    def reduction(self):
        n = self.open(lambda s, f: len(s) >= 1)
        layer = self.layer("Reduction", [n])
        p = layer.reduction_param
        p.operation, p.axis, p.coeff = (
            self.between(1, 4),
            self.between(0, len(self.shape(n)) - 1),
            self.decimal(-1, 1),
        )
        self.commit(self.weigh(layer))

    def arg_max(self):
        n = self.open(lambda s, f: len(s) >= 2)
        s = self.shape(n)
        layer = self.layer("ArgMax", [n])
        p = layer.argmax_param
        p.out_max_val = self.chance(0.5)
        if self.chance(0.6):
            p.axis = self.between(0, len(s) - 1)
            p.top_k = self.between(1, min(2, s[p.axis]))
        else:
            p.top_k = self.between(1, min(2, math.prod(s[1:])))
        self.commit(layer, dead=True)

    def threshold(self):
        n = self.open(lambda s, f: not f.need)
        layer = self.layer("Threshold", [n])
        layer.threshold_param.threshold = self.decimal(-0.5, 0.5)
        self.commit(layer)

    def silence(self):
        self.commit(self.layer("Silence", [self.open() for _ in range(self.between(1, 2))], 0))

    def two_bottoms(self):
        kind = self.pick(["Scale", "Bias"])
        n = self.open(lambda s, f: len(s) >= 1)
        s = self.shape(n)

        def fits(t, f):
            return any(t == s[a : a + len(t)] for a in range(len(s)))

        m = self.open(fits)
        t = self.shape(m)
        layer = self.layer(kind, [n, m])
        p = layer.scale_param if kind == "Scale" else layer.bias_param
        p.axis = self.pick([a for a in range(len(s)) if t == s[a : a + len(t)]]) if t else 0
        if kind == "Scale" and self.chance(0.3):
            p.bias_term = True
        f = self.facts[n]
        if n != m and f.readers == 0 and not f.fixed and f.alias is None and self.chance(0.3):
            layer.top[:] = [n]
        else:
            self.weigh(layer)
        self.commit(layer)

    def reindex(self):
        n = self.open(lambda s, f: len(s) >= 1)
        s = self.shape(n)
        m = self.whole([], s[0])
        self.commit(self.weigh(self.layer("BatchReindex", [n, m])))

    def filter(self):
        n = self.open(lambda s, f: len(s) >= 1 and s[0] == self.batch)
        if self.rows % self.batch:
            raise Unfit()
        k = self.between(1, self.batch)
        values = np.concatenate(
            [self.r.permutation(self.batch) < k for _ in range(self.rows // self.batch)]
        )
        m = self.add_data(f"select{len(self.data)}", values)
        self.facts[m].closed = True
        names = [n]
        if self.chance(0.4):
            names.append(self.open(lambda s, f: len(s) >= 1 and s[0] == self.batch))
        self.commit(self.layer("Filter", names + [m], len(names)))

    def parameter(self):
        layer = self.layer("Parameter", [])
        n = self.open(lambda s, f: len(s) >= 1 and math.prod(s) < 300)
        layer.parameter_param.shape.dim.extend(self.shape(n))
        self.param_specs(layer, 1)
        self.commit(layer)

    def recurrent(self):
        kind = self.pick(["LSTM", "RNN"])
        n = self.open(
            lambda s, f: len(s) >= 3
            and s[0] == self.batch
            and s[1] <= 16
            and math.prod(s[2:]) <= 200
        )
        s = self.shape(n)
        names = [n, self.whole([s[1]], 2)]
        if self.chance(0.3):
            names.append(
                self.open(lambda t, f: len(t) >= 2 and t[0] == s[1] and math.prod(t) < 300)
            )
        layer = self.layer(kind, names)
        layer.recurrent_param.num_output = self.between(1, 6)
        # Both draw their weights unless told otherwise.
        layer.recurrent_param.weight_filler.type = "constant"
        self.param_specs(layer, (3 if kind == "LSTM" else 5) + len(names) - 2)
        before = dict(self.run.state)
        try:
            self.commit(self.weigh(layer))
        except Unfit:
            self.run.state = before
            raise
