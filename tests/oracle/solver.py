"""Caffe's solvers: iter_size, clipping, decay, the six rules and the policies of rates."""

import math

import torch

from net import TEST, TRAIN, Net, Parameters, included


def rate(s, it):
    p = s.lr_policy
    if p == "fixed":
        return s.base_lr
    if p == "step":
        return s.base_lr * s.gamma ** (it // s.stepsize)
    if p == "exp":
        return s.base_lr * s.gamma**it
    if p == "inv":
        return s.base_lr * (1 + s.gamma * it) ** -s.power
    if p == "multistep":
        step = 0  # one more at most each iteration
        for i in range(it + 1):
            step += step < len(s.stepvalue) and i >= s.stepvalue[step]
        return s.base_lr * s.gamma**step
    if p == "poly":
        return s.base_lr * (1 - it / s.max_iter) ** s.power
    if p == "sigmoid":
        return s.base_lr / (1 + math.exp(-s.gamma * (it - s.stepsize)))
    raise ValueError(p)


class Reader:
    """Rows of data sets in their order, over and over."""

    def __init__(self, data, batch):
        self.data, self.batch, self.at = data, batch, 0

    def next(self):
        n = len(next(iter(self.data.values())))
        rows = [(self.at + i) % n for i in range(self.batch)]
        self.at = (self.at + self.batch) % n
        return {k: v[rows] for k, v in self.data.items()}


class Solver:
    """Trains a job's net. `passes` passes make a gradient: as many workers in rounds are one."""

    def __init__(self, job, dtype=torch.float64, passes=1):
        self.s, self.job, self.dtype, self.passes = job.solver, job, dtype, passes
        self.layers = {
            phase: [
                each for each in job.net.layer if included(each, phase) and each.type != "HDF5Data"
            ]
            for phase in (TRAIN, TEST)
        }
        self.parameters = Parameters(dtype, lambda key, *_: job.weights[key])
        self.net = Net(self.parameters, TRAIN, dtype)
        self.test_net = Net(self.parameters, TEST, dtype)
        self.reader = Reader(job.data, job.batch)
        self.history = self.final = None
        self.losses, self.outputs, self.tests, self.rates = [], [], [], []
        self.magnitude = 0.0

    def test(self):
        reader = Reader(self.job.data, self.job.batch)
        total = {}
        with torch.no_grad():
            for _ in range(self.s.test_iter[0]):
                self.test_net.forward(self.layers[TEST], reader.next())
                for k, v in self.test_net.outputs().items():
                    total[k] = total.get(k, 0) + v / self.s.test_iter[0]
        self.tests.append(total)

    def start(self):
        """Makes the parameters."""
        with torch.no_grad():
            self.net.forward(self.layers[TRAIN], Reader(self.job.data, self.job.batch).next())
        self.net.state = {}
        # The pass above has moved the statistics.
        for o in self.parameters.owners:
            if not o["value"].requires_grad:
                first = torch.tensor(self.job.weights[o["key"]], dtype=self.dtype)
                o["value"].copy_(first.reshape(o["value"].shape))
        count = 2 if self.s.type in ("AdaDelta", "Adam") else 1
        self.history = [
            [torch.zeros_like(o["value"]) for o in self.parameters.owners] for _ in range(count)
        ]

    def step(self, it):
        s = self.s
        owners = self.parameters.owners
        for o in owners:
            o["value"].grad = None
        loss = 0.0
        for _ in range(s.iter_size * self.passes):
            value = self.net.forward(self.layers[TRAIN], self.reader.next())
            self.magnitude = max(self.magnitude, self.net.magnitude)
            if value.requires_grad:
                value.backward()
            # Two summands may have been given one tensor, to which the next pass would add twice.
            for o in owners:
                if o["value"].grad is not None:
                    o["value"].grad = o["value"].grad.clone()
            loss += float(value.detach()) / (s.iter_size * self.passes)
        self.losses.append(loss)
        self.outputs.append(self.net.outputs())
        self.update(it)

    def update(self, it):
        s, owners = self.s, self.parameters.owners
        lr = rate(s, it)
        self.rates.append(lr)
        grads = [
            torch.zeros_like(o["value"]) if o["value"].grad is None else o["value"].grad
            for o in owners
        ]
        grads = [g / self.passes for g in grads]
        if s.clip_gradients >= 0:
            norm = math.sqrt(sum(float((g * g).sum()) for g in grads))
            if norm > s.clip_gradients:
                grads = [g * (s.clip_gradients / norm) for g in grads]
        for i, (o, g) in enumerate(zip(owners, grads)):
            w = o["value"].detach()
            g = g / s.iter_size
            decay = s.weight_decay * o["decay"]
            if decay:
                g = g + decay * (w if s.regularization_type == "L2" else torch.sign(w))
            w -= self.change(i, g, lr * o["lr"], it)

    def change(self, i, g, lr, it):
        s, h = self.s, self.history
        if s.type == "SGD":
            h[0][i] = s.momentum * h[0][i] + lr * g
            return h[0][i]
        if s.type == "Nesterov":
            old = h[0][i]
            h[0][i] = s.momentum * old + lr * g
            return (1 + s.momentum) * h[0][i] - s.momentum * old
        if s.type == "AdaGrad":
            h[0][i] = h[0][i] + g * g
            return lr * g / (h[0][i].sqrt() + s.delta)
        if s.type == "RMSProp":
            h[0][i] = s.rms_decay * h[0][i] + (1 - s.rms_decay) * g * g
            return lr * g / (h[0][i].sqrt() + s.delta)
        if s.type == "AdaDelta":
            h[0][i] = s.momentum * h[0][i] + (1 - s.momentum) * g * g
            u = g * ((h[1][i] + s.delta) / (h[0][i] + s.delta)).sqrt()
            h[1][i] = s.momentum * h[1][i] + (1 - s.momentum) * u * u
            return lr * u
        if s.type == "Adam":
            h[0][i] = s.momentum * h[0][i] + (1 - s.momentum) * g
            h[1][i] = s.momentum2 * h[1][i] + (1 - s.momentum2) * g * g
            t = it + 1
            c = math.sqrt(1 - s.momentum2**t) / (1 - s.momentum**t)
            return lr * c * h[0][i] / (h[1][i].sqrt() + s.delta)
        raise ValueError(s.type)

    def train(self):
        s = self.s
        self.start()
        for it in range(s.max_iter):
            if s.test_interval and it % s.test_interval == 0 and (it > 0 or s.test_initialization):
                self.test()
            self.step(it)
        # A test moves the statistics of a BatchNorm with use_global_stats: false; the last snapshot
        # is of before the last one.
        self.final = [o["value"].detach().clone() for o in self.parameters.owners]
        if s.test_interval:
            self.test()
        value = self.net.forward(self.layers[TRAIN], self.reader.next())
        self.losses.append(float(value.detach()))
        return self
