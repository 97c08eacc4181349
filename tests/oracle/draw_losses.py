"""Draws losses and Accuracy."""

import math

from drawing import Unfit


class LossLayers:
    """Part of the generator: see random_net.py."""

    def loss_options(self, layer, modes=True):
        if modes and self.chance(0.5):
            layer.loss_param.normalization = self.between(0, 3)
        elif modes and layer.type != "InfogainLoss" and self.chance(0.3):
            layer.loss_param.normalize = self.chance(0.5)
        if self.chance(0.4):
            layer.loss_weight.append(self.pick([0.5, 2.0, 1.0, -0.25, 0.0]))
        return layer

    def loss(self):
        kind = self.pick(
            [
                "SoftmaxWithLoss",
                "SoftmaxWithLoss",
                "EuclideanLoss",
                "SigmoidCrossEntropyLoss",
                "HingeLoss",
                "ContrastiveLoss",
                "InfogainLoss",
                "MultinomialLogisticLoss",
            ]
        )
        getattr(self, "loss_" + kind)(kind)

    def loss_SoftmaxWithLoss(self, kind):
        n = self.open(lambda s, f: len(s) >= 2 and math.prod(s) < (3000 if self.wide else 600))
        s = self.shape(n)
        a = self.between(1, len(s) - 1) if self.chance(0.3) else 1
        if s[0] != self.batch or s[a] < 2:
            raise Unfit()
        m = self.whole(s[1:a] + s[a + 1 :], s[a])
        layer = self.layer(kind, [n, m], 1)
        layer.softmax_param.axis = a
        if self.chance(0.3):
            layer.loss_param.ignore_label = self.between(0, s[a] - 1)
        self.commit(self.loss_options(layer))
        if self.chance(0.3):
            q = self.layer("Accuracy", [n, m])
            q.accuracy_param.axis = a
            q.accuracy_param.top_k = self.between(1, min(3, s[a]))
            if self.chance(0.3):
                q.accuracy_param.ignore_label = self.between(0, s[a] - 1)
            if self.chance(0.3):
                q.include.add(phase=self.between(0, 1))
            if not q.include or q.include[0].phase == 0:
                self.commit(q, dead=True)
            else:
                self.layers.append(q)
            self.facts[n].fixed = True

    def loss_InfogainLoss(self, kind):
        n = self.open(lambda s, f: len(s) >= 2 and math.prod(s) < (3000 if self.wide else 600))
        s = self.shape(n)
        a = self.between(1, len(s) - 1) if self.chance(0.3) else 1
        if s[0] != self.batch or s[a] < 2 or s[a] > 8:
            raise Unfit()
        k = s[a]
        m = self.whole(s[1:a] + s[a + 1 :], k)
        h = self.layer("Parameter", [])
        h.parameter_param.shape.dim.extend([1, 1, k, k])
        h.param.add(lr_mult=0, decay_mult=0)
        self.commit(h)
        self.facts[h.top[0]].closed = True
        layer = self.layer(kind, [n, m, h.top[0]])
        layer.infogain_loss_param.axis = a
        if self.chance(0.3):
            layer.loss_param.ignore_label = self.between(0, k - 1)
        self.commit(self.loss_options(layer))

    def loss_EuclideanLoss(self, kind):
        n = self.open(lambda s, f: len(s) >= 1)
        try:
            if self.chance(0.5):
                raise Unfit()
            m = self.open(lambda s, f: s == self.shape(n))
        except Unfit:
            if self.shape(n)[0] != self.batch:
                raise
            m = self.real(self.shape(n)[1:])
        self.commit(self.loss_options(self.layer(kind, [n, m]), False))

    def loss_SigmoidCrossEntropyLoss(self, kind):
        n = self.open(lambda s, f: len(s) >= 1)
        s = self.shape(n)
        if s[0] != self.batch:
            raise Unfit()
        m = self.whole(s[1:], 2)
        layer = self.layer(kind, [n, m])
        if self.chance(0.3):
            layer.loss_param.ignore_label = self.between(0, 1)
        self.commit(self.loss_options(layer))

    def loss_HingeLoss(self, kind):
        n = self.open(lambda s, f: len(s) >= 2 and math.prod(s) < (3000 if self.wide else 600))
        s = self.shape(n)
        if s[0] != self.batch:
            raise Unfit()
        m = self.whole([], math.prod(s[1:]))
        layer = self.layer(kind, [n, m])
        layer.hinge_loss_param.norm = self.between(1, 2)
        self.commit(self.loss_options(layer, False))

    def loss_MultinomialLogisticLoss(self, kind):
        n = self.open(lambda s, f: len(s) >= 2 and math.prod(s) < (3000 if self.wide else 600))
        s = self.shape(n)
        if s[0] != self.batch:
            raise Unfit()
        q = self.layer("Softmax", [n])
        self.commit(q)
        m = self.whole([], math.prod(s[1:]))
        self.commit(self.loss_options(self.layer(kind, [q.top[0], m]), False))

    def loss_ContrastiveLoss(self, kind):
        n = self.open(lambda s, f: len(s) == 2)
        m = self.open(lambda s, f: s == self.shape(n))
        if n == m or self.shape(n)[0] != self.batch:
            raise Unfit()
        sim = self.whole([], 2)
        layer = self.layer(kind, [n, m, sim])
        layer.contrastive_loss_param.margin = self.decimal(0.5, 4)
        layer.contrastive_loss_param.legacy_version = self.chance(0.3)
        self.commit(self.loss_options(layer, False))
