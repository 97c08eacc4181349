"""What both programs train: a net, its solver, data and first weights, in a folder or in memory."""

import h5py
import numpy as np
from google.protobuf import text_format

from protos import pb


class Job:
    """`data`: rows by top; `weights`: arrays by layer and index, a shared one for each user."""

    def __init__(self, net, solver, data, weights):
        self.net, self.solver, self.data, self.weights = net, solver, data, weights

    @property
    def batch(self):
        reads = [each for each in self.net.layer if each.type == "HDF5Data"]
        return reads[0].hdf5_data_param.batch_size

    @property
    def types(self):
        """The types of its layers, those in place with a star."""
        return {each.type + "*" * (each.bottom[:1] == each.top[:1]) for each in self.net.layer}


def drawn_job(generator):
    weights = {}
    for key, owner in generator.params.of.items():
        shape = owner.get("reshape") or list(owner["value"].shape)
        weights[key] = generator.weights[owner["key"]].reshape(shape)
    return Job(generator.net, generator.solver(), generator.data, weights)


def write_job(job, folder):
    """The files that `speedo train` is given, in a folder that is there."""
    with h5py.File(folder / "data.h5", "w") as file:
        for name, values in job.data.items():
            file[name] = values
    (folder / "list.txt").write_text("data.h5\n")
    (folder / "net.prototxt").write_text(text_format.MessageToString(job.net))
    (folder / "solver.prototxt").write_text(text_format.MessageToString(job.solver))
    weights = pb.NetParameter(name="weights")
    for layer in job.net.layer:
        keys = sorted(key for key in job.weights if key[0] == layer.name)
        if keys:
            message = weights.layer.add(name=layer.name, type=layer.type)
        for key in keys:
            blob = message.blobs.add()
            blob.shape.dim.extend(job.weights[key].shape)
            blob.data.extend(job.weights[key].reshape(-1).tolist())
    (folder / "init.caffemodel").write_bytes(weights.SerializeToString())


def read_job(folder):
    """As write_job() writes it; prototxts may have been changed by hand since."""
    net = text_format.Parse((folder / "net.prototxt").read_text(), pb.NetParameter())
    solver = text_format.Parse((folder / "solver.prototxt").read_text(), pb.SolverParameter())
    with h5py.File(folder / "data.h5") as file:
        tops = [top for each in net.layer if each.type == "HDF5Data" for top in each.top]
        data = {top: file[top][()] for top in tops}
    weights = pb.NetParameter.FromString((folder / "init.caffemodel").read_bytes())
    arrays = {
        (layer.name, i): np.array(blob.data, dtype=np.float32).reshape(list(blob.shape.dim))
        for layer in weights.layer
        for i, blob in enumerate(layer.blobs)
    }
    return Job(net, solver, data, arrays)
