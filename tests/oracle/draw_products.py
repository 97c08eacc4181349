"""Draws layers with weights, windows and the towers that they make."""

import math

from drawing import Unfit
from protos import pb


class ProductLayers:
    """Part of the generator: see random_net.py."""

    def windows_of(self, p, n, least=1, repeated=True, pad=True, dilate=True):
        s = self.shape(n)
        h, w = s[-2], s[-1]
        k = [self.between(least, min(4, h)), self.between(least, min(4, w))]
        st = [self.between(1, 3), self.between(1, 3)]
        pd = (
            [self.between(0, k[0] - 1), self.between(0, k[1] - 1)]
            if pad and self.chance(0.5)
            else [0, 0]
        )
        if self.chance(0.4):
            p.kernel_h, p.kernel_w = k
            p.stride_h, p.stride_w = st
            p.pad_h, p.pad_w = pd
        elif repeated:
            p.kernel_size.extend(k)
            p.stride.extend(st)
            p.pad.extend(pd)
        else:
            p.kernel_size, p.stride, p.pad = min(k), st[0], min(pd)
        if repeated and dilate and self.chance(0.3):
            p.dilation.append(2)

    def convolution(self, kind="Convolution"):
        n = self.open(lambda s, f: len(s) == 4)
        layer = self.layer(kind, [n])
        p = layer.convolution_param
        self.windows_of(p, n)
        c = self.shape(n)[1]
        p.group = self.pick([g for g in (1, 1, 2, 3, c) if c % g == 0])
        p.num_output = p.group * self.between(1, 3)
        if self.wide and self.chance(0.75):
            p.group = self.pick([1, 1, 1, 2, c if c % 8 == 0 else 1])
            if c % p.group:
                raise Unfit()
            p.num_output = self.pick([8, 16, 16, 24, 32])
            if p.num_output % p.group:
                p.num_output = c
        p.bias_term = self.chance(0.7)
        if kind == "Deconvolution" and p.stride and max(p.stride) > 2:
            raise Unfit()
        self.param_specs(layer, 2 if p.bias_term else 1)
        self.share(
            layer,
            2 if p.bias_term else 1,
            (
                kind,
                c,
                p.num_output,
                p.group,
                tuple(p.kernel_size),
                p.kernel_h,
                p.kernel_w,
                p.bias_term,
            ),
        )
        if kind == "Convolution" and self.chance(0.1):
            layer.bottom.append(self.open(lambda s, f: s == self.shape(n)))
            layer.top[:] = [layer.name + "_0", layer.name + "_1"]
        self.commit(self.weigh(layer))

    def twin(self):
        """A layer with the parameters of an earlier one, as Siamese nets have."""
        kinds = ("Convolution", "Deconvolution", "InnerProduct")
        able = [each for each in self.layers if each.type in kinds and len(each.bottom) == 1]
        if not able:
            raise Unfit()
        earlier = self.pick(able)
        n = self.open(lambda s, f: s == self.shape(earlier.bottom[0]))
        layer = pb.LayerParameter()
        layer.CopyFrom(earlier)
        layer.name = self.named(earlier.type)
        layer.bottom[:], layer.top[:] = [n], [layer.name]
        for field in ("loss_weight", "propagate_down", "param"):
            layer.ClearField(field)
        for i in range(sum(key[0] == earlier.name for key in self.params.of)):
            self.share_parameter(earlier, i, layer.param.add())
        self.commit(layer)

    def share_parameter(self, earlier, i, spec):
        """Names the parameter where it has no name; its new user may then say its multipliers."""
        while len(earlier.param) <= i:
            earlier.param.add()
        first = earlier.param[i]
        if not first.name:
            first.name = f"{earlier.name}_p{i}"
            self.params.named[first.name] = self.params.of[earlier.name, i]
            if not first.HasField("lr_mult") and self.chance(0.4):
                spec.lr_mult = self.pick([0.5, 2.0])
            if not first.HasField("decay_mult") and self.chance(0.4):
                spec.decay_mult = self.pick([0.0, 0.5, 3.0])
        spec.name = first.name

    def tower(self):
        """Convolution or InnerProduct with the usual layers behind it, mostly in place."""
        self.pick([self.convolution, self.convolution, self.inner_product])()
        n = self.layers[-1].top[0]
        if self.layers[-1].loss_weight or len(self.layers[-1].top) > 1:
            return
        for kind in self.pick(
            [
                ["ReLU"],
                ["BatchNorm", "Scale", "ReLU"],
                ["BatchNorm", "ReLU"],
                ["Scale", "ReLU"],
                ["PReLU"],
                ["ELU"],
                ["BatchNorm", "Scale"],
                ["Sigmoid"],
                ["Scale", "TanH"],
                ["BatchNorm", "Scale", "ELU"],
                ["Bias", "ReLU"],
                ["ReLU", "BatchNorm", "Scale"],
            ]
        ):
            layer = self.fill_elementwise(kind, n)
            if kind in ("Scale", "Bias") and self.chance(0.7):
                p = layer.scale_param if kind == "Scale" else layer.bias_param
                p.axis, p.num_axes = min(1, len(self.shape(n)) - 1), 1
            layer.name = self.named(kind)
            layer.bottom.append(n)
            place = self.chance(0.75)
            layer.top.append(n if place else layer.name)
            if kind in ("Scale", "PReLU"):
                self.param_specs(layer, 1)
            self.commit(layer)
            n = layer.top[0]

    def residual(self):
        self.tower()
        n = self.layers[-1].top[0]
        m = self.open(lambda s, f: s == self.shape(n))
        if m == n:
            raise Unfit()
        layer = self.layer("Eltwise", [m, n] if self.chance(0.5) else [n, m])
        layer.eltwise_param.operation = self.pick([1, 1, 1, 0, 2])
        self.commit(layer)
        if self.chance(0.7):
            r = pb.LayerParameter(
                name=self.named("ReLU"), type="ReLU", bottom=layer.top, top=layer.top
            )
            self.commit(r)

    def deconvolution(self):
        self.convolution("Deconvolution")

    def im2col(self):
        n = self.open(lambda s, f: len(s) == 4)
        layer = self.layer("Im2col", [n])
        self.windows_of(layer.convolution_param, n)
        self.commit(self.weigh(layer))

    def inner_product(self):
        n = self.open(lambda s, f: len(s) >= 1 and math.prod(s) <= (6000 if self.wide else 1500))
        s = self.shape(n)
        layer = self.layer("InnerProduct", [n])
        p = layer.inner_product_param
        p.num_output = self.between(1, 6)
        if self.wide and self.chance(0.3):
            p.num_output = self.pick([8, 16, 32])
        if len(s) == 1 or self.chance(0.3):
            p.axis = self.between(-len(s), len(s) - 1)
        if self.chance(0.3):
            p.transpose = True
        p.bias_term = self.chance(0.7)
        blobs = 2 if p.bias_term else 1
        a = p.axis + len(s) if p.axis < 0 else p.axis
        self.param_specs(layer, blobs)
        self.share(
            layer, blobs, ("InnerProduct", math.prod(s[a:]), p.num_output, p.transpose, p.bias_term)
        )
        self.commit(self.weigh(layer))

    def embed(self):
        k = self.between(2, 6)
        n = self.whole(self.pick([[], [3], [2, 2]]), k)
        layer = self.layer("Embed", [n])
        p = layer.embed_param
        p.input_dim, p.num_output, p.bias_term = k, self.between(1, 5), self.chance(0.6)
        blobs = 2 if p.bias_term else 1
        self.param_specs(layer, blobs)
        self.share(layer, blobs, ("Embed", k, p.num_output, p.bias_term))
        self.commit(self.weigh(layer))

    def pooling(self):
        n = self.open(lambda s, f: len(s) == 4)
        two = self.chance(0.1)
        layer = self.layer("Pooling", [n], 2 if two else 1)
        p = layer.pooling_param
        p.pool = 0 if two else self.between(0, 1)
        if self.chance(0.15):
            p.global_pooling = True
        else:
            self.windows_of(p, n, 1, False)
            if self.chance(0.2):
                p.round_mode = 1
        if not two:
            self.weigh(layer)
        self.commit(layer)
        if two:
            self.facts[layer.top[1]].dead = self.facts[layer.top[1]].closed = True

    def spp(self):
        n = self.open(lambda s, f: len(s) == 4 and min(s[2:]) >= 4)
        layer = self.layer("SPP", [n])
        layer.spp_param.pyramid_height, layer.spp_param.pool = self.between(1, 2), self.between(
            0, 1
        )
        self.commit(layer)

    def lrn(self):
        n = self.open(lambda s, f: len(s) == 4)
        layer = self.layer("LRN", [n])
        p = layer.lrn_param
        p.local_size, p.alpha, p.beta = (
            self.pick([1, 3, 5]),
            self.decimal(0.1, 2),
            self.decimal(0.3, 1),
        )
        p.norm_region = self.between(0, 1)
        if p.norm_region == 0 and self.chance(0.5):
            p.k = self.decimal(0.5, 2)
        self.commit(self.weigh(layer))
