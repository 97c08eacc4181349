"""What `speedo train` logged and wrote against what the interpreter computed."""

import re

import numpy as np

from protos import pb

NUMBER = r"(-?(?:[\d.]+(?:e[+-]?\d+)?|inf|nan))"
# Of an array's largest value, or of the largest term of a loss.
LIMIT, STEADY_LIMIT = 5e-4, 2e-5
SHOWN = 32  # elements of an output in the log


class Log:
    """Losses, rates and outputs in their order."""

    def __init__(self, text):
        loss = r"Iteration \d+(?: \([^)]*\))?, loss = "
        self.losses = [float(x) for x in re.findall(loss + NUMBER, text)]
        self.rates = [float(x) for x in re.findall(", lr = " + NUMBER, text)]
        self.outputs = {"Train": [], "Test": []}
        output = r"(Train|Test) net output #(\d+): (\S+) = " + NUMBER
        for net, index, name, value in re.findall(output, text):
            if index == "0":
                self.outputs[net].append([])
            self.outputs[net][-1].append((name, float(value)))


def shown(outputs):
    return [(k, float(x)) for k, v in outputs.items() for x in v.reshape(-1)[:SHOWN]]


def largest(array):
    return np.abs(array).max(initial=0)


def differs(found, wanted, scale, limit):
    """Whether arrays differ, in size or in values; NaNs do."""
    if found.size != wanted.size:
        return True
    return not largest(found - wanted) <= limit * scale + 1e-12


def numbers_differ(found, wanted, scale, limit):
    return not abs(found - wanted) <= limit * scale + 1e-12


def told(what, found, wanted):
    if found.size != wanted.size:
        return f"{what}: {found.size} values for {wanted.size}"
    return f"{what}: off by {largest(found - wanted):.3g} of {largest(wanted):.3g}"


def compare_losses(oracle, log):
    if len(log.losses) != len(oracle.losses):
        yield f"losses: {len(log.losses)} shown, {len(oracle.losses)} due"
    for i, (found, wanted) in enumerate(zip(log.losses, oracle.losses)):
        if numbers_differ(found, wanted, max(1e-2, oracle.magnitude, abs(wanted)), LIMIT):
            yield f"loss {i}: {found} for {wanted}"
            return


def compare_rates(oracle, log):
    if oracle.rates and not log.rates:
        yield "the log has no rates"
    for i, (found, wanted) in enumerate(zip(log.rates, oracle.rates)):
        if numbers_differ(found, wanted, abs(wanted), 1e-4):
            yield f"rate {i}: {found} for {wanted}"
            return


def compare_outputs(what, found, wanted):
    if len(found) != len(wanted) and any(wanted):
        yield f"{what} outputs: {len(found)} times for {len(wanted)}"
    for i, (got, due) in enumerate(zip(found, map(shown, wanted))):
        if [name for name, _ in got] != [name for name, _ in due]:
            names = [sorted({name for name, _ in each}) for each in (got, due)]
            yield f"{what} outputs {i}: names {names[0]} for {names[1]}"
            return
        top = max([abs(value) for _, value in due] + [1e-2])
        for (name, a), (_, b) in zip(got, due):
            if numbers_differ(a, b, top, 2 * LIMIT):
                yield f"{what} outputs {i}: {name} {a} for {b}"
                return


def compare_weights(oracle, folder):
    file = folder / f"out_iter_{oracle.s.max_iter}.caffemodel"
    message = pb.NetParameter.FromString(file.read_bytes())
    found = {
        (layer.name, i): np.array(blob.data)
        for layer in message.layer
        for i, blob in enumerate(layer.blobs)
    }
    finals = {o["key"]: v for o, v in zip(oracle.parameters.owners, oracle.final)}
    for key, owner in oracle.parameters.of.items():
        wanted = finals[owner["key"]].numpy().reshape(-1)
        if key not in found:
            yield f"weights {key}: missing"
        elif differs(found[key], wanted, max(largest(wanted), 1e-3), LIMIT):
            yield told(f"weights {key}", found[key], wanted)


def compare_histories(oracle, folder):
    file = folder / f"out_iter_{oracle.s.max_iter}.solverstate"
    found = [np.array(b.data) for b in pb.SolverState.FromString(file.read_bytes()).history]
    owners = oracle.parameters.owners
    if len(found) != len(oracle.history) * len(owners):
        yield f"histories: {len(found)} for {len(oracle.history) * len(owners)}"
        return
    for k, part in enumerate(oracle.history):
        top = max([largest(each.numpy()) for each in part] + [1e-12])
        for owner, history, array in zip(owners, part, found[k * len(owners) :]):
            wanted = history.numpy().reshape(-1)
            scale = max(largest(wanted), 0.1 * top)
            if owner["value"].requires_grad and differs(array, wanted, scale, 2 * LIMIT):
                yield told(f"history {k} of {owner['key']}", array, wanted)


def compare(oracle, folder, text):
    """All that differs, each a line."""
    log = Log(text)
    return [
        *compare_losses(oracle, log),
        *compare_outputs("train", log.outputs["Train"], oracle.outputs),
        *compare_outputs("test", log.outputs["Test"], oracle.tests),
        *compare_rates(oracle, log),
        *compare_weights(oracle, folder),
        *compare_histories(oracle, folder),
    ]


def compare_learned(oracle, folder):
    """As compare(), of several workers: each logs for itself, and keeps statistics of its own."""
    learned = [*compare_weights(oracle, folder), *compare_histories(oracle, folder)]
    return [each for each in learned if "batchnorm" not in each]


def are_steady(double, single):
    """Whether float32 and float64 agree, so that a difference is no matter of rounding."""
    pairs = [
        (a, b, max(double.magnitude, abs(a), 1e-2)) for a, b in zip(double.losses, single.losses)
    ]
    for a, b in zip(double.outputs, single.outputs):
        pairs += [(a[k].numpy(), b[k].numpy(), max(largest(a[k].numpy()), 1e-2)) for k in a]
    pairs += [
        (a.numpy(), b.numpy(), max(largest(a.numpy()), 1e-3))
        for a, b in zip(double.final, single.final)
    ]
    for part, other in zip(double.history, single.history):
        top = max([largest(each.numpy()) for each in part] + [1e-12])
        pairs += [
            (a.numpy(), b.numpy(), max(largest(a.numpy()), 0.1 * top)) for a, b in zip(part, other)
        ]
    return all(largest(np.asarray(a) - b) <= STEADY_LIMIT * scale for a, b, scale in pairs)
