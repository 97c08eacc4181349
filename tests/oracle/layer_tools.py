"""What files of layers share: the table of layers by type, axes, gradients that read memory.

A layer is a function of the net (phase, parameters, number type), its message, its bottoms (Blobs)
and the number of its tops; it returns a value or a Blob for each top.
"""

from memory import custom

LAYERS = {}


def implements(name):
    """Registers a function as the layer type `name`."""

    def register(function):
        LAYERS[name] = function
        return function

    return register


def axis_of(axis, count):
    """An axis that may be counted from the end."""
    return axis + count if axis < 0 else axis


class Later:
    """The memory of a top, known after the layer has run."""

    memory = None

    def __call__(self, shape):
        return self.memory.as_shape(shape)


def from_top(run, x, y, rule):
    """y with gradient rule(grad, what the top's memory holds at the time of the backward pass)."""
    later = run.later = Later()
    shape = y.shape
    return custom(y, lambda g: rule(g, later(shape)), x)
