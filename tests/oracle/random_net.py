"""The random net of a seed, with its data and first weights, and a random solver for it."""

from draw_elementwise import ElementwiseLayers
from draw_losses import LossLayers
from draw_products import ProductLayers
from draw_shapes import ShapeLayers
from drawing import Drawing, Unfit
from protos import pb

# What is drawn more often is there more often.
KINDS = (
    ["tower"] * 5 + ["residual"] * 3 + ["elementwise"] * 5 + ["chain"] * 3 + ["convolution"] * 4
    + ["inner_product"] * 4 + ["eltwise"] * 3 + ["pooling", "concat", "slice", "two_bottoms"] * 2
    + ["deconvolution", "im2col", "embed", "spp", "lrn", "flatten", "reshape", "split", "tile"]
    + ["crop", "reduction", "arg_max", "threshold", "silence", "reindex", "filter", "parameter"]
    + ["recurrent"] + ["twin"] * 4
)  # fmt: skip


class Generator(ElementwiseLayers, ProductLayers, ShapeLayers, LossLayers, Drawing):
    """Draws a net."""

    def build(self):
        self.real(
            self.pick(
                [[3, 7, 6], [16, 6, 5], [8, 8, 8], [32, 5, 6]]
                if self.wide
                else [[3, 7, 6], [2, 5, 5], [4, 6, 8], [1, 4, 9]]
            )
        )
        if self.chance(0.5):
            self.real([self.between(2, 7)])
        # Something to learn comes first.
        self.attempt(["convolution", "inner_product"])
        while len(self.layers) < self.size:
            self.attempt(KINDS)
        for _ in range(self.between(1, 3)):
            self.attempt(["loss"])
        return self.finish()

    def attempt(self, kinds):
        for _ in range(60):
            data = set(self.data)
            try:
                getattr(self, self.pick(kinds))()
                return
            except Unfit:
                for n in set(self.data) - data:
                    if n not in {b for layer in self.layers for b in layer.bottom}:
                        del self.data[n], self.facts[n], self.run.blobs[n]
                        self.run.unread.pop(n, None)
        raise Unfit()

    def finish(self):
        if not float(self.run.loss.detach()) or not self.run.loss.requires_grad:
            raise Unfit()
        d = self.net.layer.add(name="data", type="HDF5Data")
        d.top.extend(self.data)
        d.hdf5_data_param.source, d.hdf5_data_param.batch_size = "list.txt", self.batch
        self.net.layer.extend(self.layers)
        return self

    def solver(self):
        s = pb.SolverParameter(net="net.prototxt", snapshot_prefix="out", display=1, solver_mode=0)
        s.max_iter = self.between(2, 5)
        s.base_lr = self.decimal(0.005, 0.05)
        s.type = self.pick(["SGD"] * 5 + ["Nesterov", "AdaGrad", "RMSProp", "AdaDelta", "Adam"])
        s.lr_policy = self.pick(["fixed", "step", "exp", "inv", "multistep", "poly", "sigmoid"])
        s.gamma, s.power = self.decimal(0.3, 0.95), self.decimal(0.5, 2)
        s.stepsize = self.between(1, 3)
        if s.lr_policy == "multistep":
            s.stepvalue.extend([1, self.between(2, 4)])
        if s.type in ("SGD", "Nesterov"):
            s.momentum = self.pick([0.0, 0.9, 0.5])
        elif s.type in ("Adam", "AdaDelta"):
            s.momentum = self.pick([0.9, 0.8])
            s.momentum2 = self.pick([0.999, 0.9])
            s.delta = self.pick([0.1, 1e-3, 1e-6])
        else:
            s.delta = self.pick([0.1, 1e-3])
            if s.type == "RMSProp":
                s.rms_decay = self.pick([0.99, 0.5])
        if self.chance(0.7):
            s.weight_decay = self.decimal(0.001, 0.1)
        if self.chance(0.3):
            s.regularization_type = "L1"
        if self.chance(0.3):
            s.clip_gradients = self.decimal(0.05, 2)
        if self.chance(0.35):
            s.iter_size = self.between(2, 3)
        s.random_seed = 1
        if self.chance(0.4):
            s.test_interval = self.between(1, 3)
            s.test_iter.append(self.between(1, 3))
        return s


def generate(seed, tries=50):
    for attempt in range(tries):
        generator = Generator([seed, attempt])
        try:
            return generator.build()
        except Unfit:
            continue
    raise Unfit()
