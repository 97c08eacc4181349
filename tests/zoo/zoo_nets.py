"""Nets of the form that Caffe's model zoo has, written down by their papers, in any of Caffe's syntaxes."""

GROUPS = {  # the message of a type's options
    "Convolution": "convolution_param", "Deconvolution": "convolution_param", "Pooling": "pooling_param",
    "LRN": "lrn_param", "InnerProduct": "inner_product_param", "Dropout": "dropout_param",
    "Eltwise": "eltwise_param", "Slice": "slice_param", "Crop": "crop_param", "Scale": "scale_param",
    "DummyData": "dummy_data_param", "ContrastiveLoss": "contrastive_loss_param", "Python": "python_param"}
V1_NAMES = {"ReLU": "RELU", "InnerProduct": "INNER_PRODUCT", "SoftmaxWithLoss": "SOFTMAX_LOSS", "LRN": "LRN",
            "DummyData": "DUMMY_DATA", "ContrastiveLoss": "CONTRASTIVE_LOSS", "EuclideanLoss": "EUCLIDEAN_LOSS",
            "SigmoidCrossEntropyLoss": "SIGMOID_CROSS_ENTROPY_LOSS"}
V0_NAMES = {"Convolution": "conv", "Pooling": "pool", "LRN": "lrn", "ReLU": "relu", "Dropout": "dropout",
            "InnerProduct": "innerproduct", "Softmax": "softmax", "SoftmaxWithLoss": "softmax_loss",
            "Concat": "concat"}


class Net:
    """Layers, and how they are written."""

    def __init__(self, name):
        self.name, self.layers, self.inputs = name, [], []

    def input(self, blob, *dims):
        self.inputs.append((blob, dims))
        return blob

    def add(self, kind, name, bottoms, top=None, phase="", shared=(), **options):
        """A layer; `top`: a name, a list of them, or none at all if it is empty."""
        bottoms = [bottoms] if isinstance(bottoms, str) else list(bottoms)
        top = name if top is None else top
        tops = [top] if isinstance(top, str) and top else list(top)
        self.layers.append((kind, name, bottoms, tops, phase, shared, options))
        return tops[0] if tops else ""

    def conv(self, name, bottom, outputs, kernel, **options):
        return self.add("Convolution", name, bottom, num_output=outputs, kernel_size=kernel, **options)

    def ip(self, name, bottom, outputs, **options):
        return self.add("InnerProduct", name, bottom, num_output=outputs, **options)

    def pool(self, name, bottom, kernel, stride, method="MAX", **options):
        return self.add("Pooling", name, bottom, pool=method, kernel_size=kernel, stride=stride, **options)

    def in_place(self, kind, name, blob, **options):
        return self.add(kind, name, blob, blob, **options)

    def relu(self, blob, name=None):
        return self.in_place("ReLU", name or blob + "_relu", blob)

    def global_pool(self, name, bottom):
        return self.add("Pooling", name, bottom, pool="AVE", global_pooling="true")

    def text(self, version=2):
        writer = {0: layer_v0, 1: layer_v1, 2: layer_v2}[version]
        return f'name: "{self.name}"\n' + self.input_text(version) + "".join(
            writer(*layer) for layer in self.layers)

    def input_text(self, version):
        text = ""
        for blob, dims in self.inputs:
            if version < 2:
                four = list(dims) + [1] * (4 - len(dims))
                text += f'input: "{blob}" ' + " ".join(f"input_dim: {size}" for size in four) + "\n"
            else:
                shape = " ".join(f"dim: {size}" for size in dims)
                text += (f'layer {{ name: "{blob}" type: "Input" top: "{blob}" '
                         f'input_param {{ shape {{ {shape} }} }} }}\n')
        return text


def ends(bottoms, tops):
    return " ".join([f'bottom: "{name}"' for name in bottoms] + [f'top: "{name}"' for name in tops])


def fields(options):
    return " ".join(f"{key} {value}" if str(value).startswith("{") else f"{key}: {value}"
                    for key, values in options.items()
                    for value in (values if isinstance(values, list) else [values]))


def group_of(kind, options):
    return f"{GROUPS[kind]} {{ {fields(options)} }}" if options else ""


def rule(phase):
    return f"include {{ phase: {phase} }}" if phase else ""


def layer_v2(kind, name, bottoms, tops, phase, shared, options):
    params = " ".join(f'param {{ name: "{name}" }}' for name in shared)
    return (f'layer {{ name: "{name}" type: "{kind}" {ends(bottoms, tops)} {rule(phase)} {params} '
            f'{group_of(kind, options)} }}\n')


def layer_v1(kind, name, bottoms, tops, phase, shared, options):
    params = " ".join(f'param: "{name}"' for name in shared)
    return (f'layers {{ name: "{name}" type: {V1_NAMES.get(kind, kind.upper())} {ends(bottoms, tops)} '
            f'{rule(phase)} {params} {group_of(kind, options)} }}\n')


def layer_v0(kind, name, bottoms, tops, phase, shared, options):
    """Padding was a layer of its own. V0 had no phases, no shared weights."""
    assert not phase and not shared
    own = dict(options)
    if "kernel_size" in own:
        own["kernelsize"] = own.pop("kernel_size")
    text = ""
    if "pad" in own:
        pad = own.pop("pad")
        text = (f'layers {{ layer {{ name: "{name}_pad" type: "padding" pad: {pad} }} '
                f'{ends(bottoms, [name + "_padded"])} }}\n')
        bottoms = [name + "_padded"]
    return text + (f'layers {{ layer {{ name: "{name}" type: "{V0_NAMES[kind]}" {fields(own)} }} '
                   f'{ends(bottoms, tops)} }}\n')


def dummy(net, *shapes):
    """Data and label as a training net has them, without files."""
    dims = [("{ " + " ".join(f"dim: {size}" for size in shape) + " }") for shape in shapes]
    return net.add("DummyData", "data", [], ["data", "label"][:len(shapes)], shape=dims)


def classify(net, blob):
    """How training nets end, the loss without a top, as before 2015."""
    net.add("Accuracy", "accuracy", [blob, "label"], phase="TEST")
    net.add("SoftmaxWithLoss", "loss", [blob, "label"], [])


def alexnet(net, data, norm_first):
    """Krizhevsky et al. 2012; CaffeNet has norm and pool the other way round."""
    def stage(number, blob):
        if norm_first:
            normed = net.add("LRN", f"norm{number}", blob, local_size=5, alpha=0.0001, beta=0.75)
            return net.pool(f"pool{number}", normed, 3, 2)
        pooled = net.pool(f"pool{number}", blob, 3, 2)
        return net.add("LRN", f"norm{number}", pooled, local_size=5, alpha=0.0001, beta=0.75)
    blob = stage(1, net.relu(net.conv("conv1", data, 96, 11, stride=4)))
    blob = stage(2, net.relu(net.conv("conv2", blob, 256, 5, pad=2, group=2)))
    blob = net.relu(net.conv("conv3", blob, 384, 3, pad=1))
    blob = net.relu(net.conv("conv4", blob, 384, 3, pad=1, group=2))
    blob = net.relu(net.conv("conv5", blob, 256, 3, pad=1, group=2))
    blob = net.pool("pool5", blob, 3, 2)
    for name in ["fc6", "fc7"]:
        blob = net.in_place("Dropout", f"drop_{name}", net.relu(net.ip(name, blob, 4096)), dropout_ratio=0.5)
    return net.ip("fc8", blob, 1000)


def vgg(net, data, convolutions):
    """Simonyan and Zisserman 2014."""
    blob = data
    for stage, (count, outputs) in enumerate(zip(convolutions, [64, 128, 256, 512, 512]), 1):
        for i in range(1, count + 1):
            blob = net.relu(net.conv(f"conv{stage}_{i}", blob, outputs, 3, pad=1))
        blob = net.pool(f"pool{stage}", blob, 2, 2)
    for name in ["fc6", "fc7"]:
        blob = net.in_place("Dropout", f"drop_{name}", net.relu(net.ip(name, blob, 4096)), dropout_ratio=0.5)
    return net.ip("fc8", blob, 1000)


def inception(net, name, bottom, sizes):
    one, reduce3, three, reduce5, five, project = sizes
    relu_conv = lambda part, blob, outputs, kernel, **more: net.relu(
        net.conv(f"{name}/{part}", blob, outputs, kernel, **more))
    parts = [relu_conv("1x1", bottom, one, 1),
             relu_conv("3x3", relu_conv("3x3_reduce", bottom, reduce3, 1), three, 3, pad=1),
             relu_conv("5x5", relu_conv("5x5_reduce", bottom, reduce5, 1), five, 5, pad=2),
             relu_conv("pool_proj", net.pool(f"{name}/pool", bottom, 3, 1, pad=1), project, 1)]
    return net.add("Concat", f"{name}/output", parts)


def side_head(net, name, bottom):
    blob = net.relu(net.conv(f"{name}/conv", net.pool(f"{name}/ave_pool", bottom, 5, 3, "AVE"), 128, 1))
    blob = net.relu(net.ip(f"{name}/fc", blob, 1024))
    blob = net.ip(f"{name}/classifier", net.in_place("Dropout", f"{name}/drop", blob, dropout_ratio=0.7), 1000)
    net.add("SoftmaxWithLoss", f"{name}/loss", [blob, "label"], [f"{name}/loss"])


def googlenet(net, data, side_heads):
    """Szegedy et al. 2014."""
    blob = net.relu(net.conv("conv1", data, 64, 7, stride=2, pad=3))
    blob = net.add("LRN", "norm1", net.pool("pool1", blob, 3, 2), local_size=5, alpha=0.0001)
    blob = net.relu(net.conv("conv2", net.relu(net.conv("conv2_reduce", blob, 64, 1)), 192, 3, pad=1))
    blob = net.pool("pool2", net.add("LRN", "norm2", blob, local_size=5, alpha=0.0001), 3, 2)
    for name, sizes in [("3a", (64, 96, 128, 16, 32, 32)), ("3b", (128, 128, 192, 32, 96, 64)), ("pool3", 0),
                        ("4a", (192, 96, 208, 16, 48, 64)), ("4b", (160, 112, 224, 24, 64, 64)),
                        ("4c", (128, 128, 256, 24, 64, 64)), ("4d", (112, 144, 288, 32, 64, 64)),
                        ("4e", (256, 160, 320, 32, 128, 128)), ("pool4", 0),
                        ("5a", (256, 160, 320, 32, 128, 128)), ("5b", (384, 192, 384, 48, 128, 128))]:
        blob = inception(net, name, blob, sizes) if sizes else net.pool(name, blob, 3, 2)
        if side_heads and name in ["4a", "4d"]:
            side_head(net, f"loss_{name}", blob)
    blob = net.in_place("Dropout", "drop5", net.pool("pool5", blob, 7, 1, "AVE"), dropout_ratio=0.4)
    return net.ip("classifier", blob, 1000)


def nin(net, data):
    """Lin et al. 2013, for ImageNet."""
    blob = data
    for stage, (outputs, kernel, more) in enumerate(
            [(96, 11, {"stride": 4}), (256, 5, {"pad": 2}), (384, 3, {"pad": 1}), (1024, 3, {"pad": 1})], 1):
        blob = net.relu(net.conv(f"conv{stage}", blob, outputs, kernel, **more))
        last = 1000 if stage == 4 else outputs
        for i, size in enumerate([outputs, last], 1):
            blob = net.relu(net.conv(f"cccp{stage}_{i}", blob, size, 1))
        if stage < 4:
            blob = net.pool(f"pool{stage}", blob, 3, 2)
    return net.global_pool("pool4", blob)


def normalized(net, name, bottom, outputs, kernel, relu=True, **options):
    blob = net.conv(name, bottom, outputs, kernel, bias_term="false", **options)
    net.in_place("BatchNorm", f"bn_{name}", blob)
    net.in_place("Scale", f"scale_{name}", blob, bias_term="true")
    return net.relu(blob) if relu else blob


def resnet50(net, data):
    """He et al. 2015."""
    blob = net.pool("pool1", normalized(net, "conv1", data, 64, 7, stride=2, pad=3), 3, 2)
    for stage, (blocks, width) in enumerate([(3, 64), (4, 128), (6, 256), (3, 512)], 2):
        for block in range(blocks):
            name = f"res{stage}{chr(ord('a') + block)}"
            stride = 2 if block == 0 and stage > 2 else 1
            left = blob
            if block == 0:
                left = normalized(net, f"{name}_1", blob, 4 * width, 1, relu=False, stride=stride)
            right = normalized(net, f"{name}_2a", blob, width, 1, stride=stride)
            right = normalized(net, f"{name}_2b", right, width, 3, pad=1)
            right = normalized(net, f"{name}_2c", right, 4 * width, 1, relu=False)
            blob = net.relu(net.add("Eltwise", name, [left, right]))
    return net.ip("fc1000", net.pool("pool5", blob, 7, 1, "AVE"), 1000)


def squeezenet(net, data):
    """Iandola et al. 2016, version 1.0."""
    def fire(number, bottom, squeeze, expand):
        name = f"fire{number}"
        small = net.relu(net.conv(f"{name}/squeeze1x1", bottom, squeeze, 1))
        return net.add("Concat", f"{name}/concat",
                       [net.relu(net.conv(f"{name}/expand1x1", small, expand, 1)),
                        net.relu(net.conv(f"{name}/expand3x3", small, expand, 3, pad=1))])
    blob = net.pool("pool1", net.relu(net.conv("conv1", data, 96, 7, stride=2)), 3, 2)
    for number, squeeze, expand in [(2, 16, 64), (3, 16, 64), (4, 32, 128)]:
        blob = fire(number, blob, squeeze, expand)
    blob = net.pool("pool4", blob, 3, 2)
    for number, squeeze, expand in [(5, 32, 128), (6, 48, 192), (7, 48, 192), (8, 64, 256)]:
        blob = fire(number, blob, squeeze, expand)
    blob = fire(9, net.pool("pool8", blob, 3, 2), 64, 256)
    blob = net.relu(net.conv("conv10", net.in_place("Dropout", "drop9", blob), 1000, 1))
    return net.global_pool("pool10", blob)


def mobilenet(net, data):
    """Howard et al. 2017, version 1."""
    blob = normalized(net, "conv1", data, 32, 3, stride=2, pad=1)
    inputs = 32
    for number, (outputs, stride) in enumerate(
            [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + [(512, 1)] * 5 + [(1024, 2), (1024, 1)], 2):
        blob = normalized(net, f"conv{number}/dw", blob, inputs, 3, stride=stride, pad=1, group=inputs)
        blob = normalized(net, f"conv{number}/sep", blob, outputs, 1)
        inputs = outputs
    return net.conv("fc7", net.global_pool("pool6", blob), 1000, 1)


def fcn32s(net, data):
    """Long et al. 2015."""
    blob = data
    for stage, (count, outputs) in enumerate(zip([2, 2, 3, 3, 3], [64, 128, 256, 512, 512]), 1):
        for i in range(1, count + 1):
            pad = 100 if stage == 1 and i == 1 else 1
            blob = net.relu(net.conv(f"conv{stage}_{i}", blob, outputs, 3, pad=pad))
        blob = net.pool(f"pool{stage}", blob, 2, 2)
    blob = net.in_place("Dropout", "drop6", net.relu(net.conv("fc6", blob, 4096, 7)))
    blob = net.in_place("Dropout", "drop7", net.relu(net.conv("fc7", blob, 4096, 1)))
    blob = net.conv("score_fr", blob, 21, 1)
    blob = net.add("Deconvolution", "upscore", blob, num_output=21, kernel_size=64, stride=32, bias_term="false")
    return net.add("Crop", "score", [blob, data], axis=2, offset=19)


def siamese(net):
    """Hadsell et al. 2006: two LeNets of one set of weights."""
    pairs = net.add("DummyData", "pair_data", [], ["pair_data", "sim"],
                    shape=["{ dim: 64 dim: 2 dim: 28 dim: 28 }", "{ dim: 64 }"])
    net.add("Slice", "slice_pair", pairs, ["data", "data_p"], slice_dim=1, slice_point=1)
    for tail in ["", "_p"]:
        def shared(name):
            return {"shared": (name + "_w", name + "_b")}
        blob = net.pool("pool1" + tail, net.conv("conv1" + tail, "data" + tail, 20, 5, **shared("conv1")), 2, 2)
        blob = net.pool("pool2" + tail, net.conv("conv2" + tail, blob, 50, 5, **shared("conv2")), 2, 2)
        blob = net.relu(net.ip("ip1" + tail, blob, 500, **shared("ip1")))
        net.ip("feat" + tail, net.ip("ip2" + tail, blob, 10, **shared("ip2")), 2, **shared("feat"))
    net.add("ContrastiveLoss", "loss", ["feat", "feat_p", "sim"], margin=1)


def autoencoder(net):
    """Hinton and Salakhutdinov 2006."""
    data = net.add("DummyData", "data", [], shape=["{ dim: 100 dim: 1 dim: 28 dim: 28 }"])
    flat = net.add("Flatten", "flatdata", data)
    blob = data
    sizes = [1000, 500, 250, 30, 250, 500, 1000, 784]
    for i, size in enumerate(sizes, 1):
        blob = net.ip(f"code{i}", blob, size)
        if i not in (4, 8):
            blob = net.add("Sigmoid", f"code{i}neuron", blob)
    net.add("SigmoidCrossEntropyLoss", "cross", [blob, flat], "cross_entropy_loss")
    net.add("EuclideanLoss", "loss", [net.add("Sigmoid", "decoden", blob), flat], "l2_error")
