"""Nets for compare_runtimes.py: a few whole ones, and each layer in many forms."""
import itertools

CONV = 'layer {{ name: "{0}" type: "Convolution" bottom: "{1}" top: "{0}" convolution_param {{ {2} }} }}\n'
IN_PLACE = 'layer {{ name: "{0}" type: "{1}" bottom: "{2}" top: "{2}" {3} }}\n'


def input_layer(shapes):
    """Inputs in0, in1, ... of these shapes."""
    text = ""
    for i, shape in enumerate(shapes):
        dims = " ".join(f"dim: {size}" for size in shape)
        text += f'layer {{ name: "in{i}" type: "Input" top: "in{i}" input_param {{ shape {{ {dims} }} }} }}\n'
    return text


def one(kind, shapes, options="", tops=1):
    """A net of one layer."""
    bottoms = " ".join(f'bottom: "in{i}"' for i in range(len(shapes)))
    names = " ".join(f'top: "out{i}"' for i in range(tops))
    return (f'name: "{kind}"\n{input_layer(shapes)}'
            f'layer {{ name: "it" type: "{kind}" {bottoms} {names} {options} }}\n')


SEGMENTATION = (
    'name: "segmentation"\n' + input_layer([(1, 3, 45, 37)]) +
    CONV.format("conv1", "in0", "num_output: 16 kernel_size: 3 pad: 10 bias_term: false") +
    IN_PLACE.format("bn1", "BatchNorm", "conv1", "") +
    IN_PLACE.format("scale1", "Scale", "conv1", "scale_param { bias_term: true }") +
    IN_PLACE.format("prelu1", "PReLU", "conv1", "") +
    'layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1" '
    'pooling_param { pool: MAX kernel_size: 2 stride: 2 } }\n' +
    CONV.format("conv2", "pool1", "num_output: 24 kernel_size: 3 pad: 1 group: 2") +
    IN_PLACE.format("elu2", "ELU", "conv2", "elu_param { alpha: 0.5 }") +
    'layer { name: "pool2" type: "Pooling" bottom: "conv2" top: "pool2" '
    'pooling_param { pool: AVE kernel_size: 3 stride: 2 } }\n' +
    CONV.format("conv3", "pool2", "num_output: 24 kernel_size: 3 pad: 2 dilation: 2") +
    CONV.format("score3", "conv3", "num_output: 5 kernel_size: 1") +
    'layer { name: "up3" type: "Deconvolution" bottom: "score3" top: "up3" convolution_param { '
    'num_output: 5 kernel_size: 4 stride: 2 bias_term: false } }\n' +
    CONV.format("score2", "conv2", "num_output: 5 kernel_size: 1") +
    'layer { name: "crop3" type: "Crop" bottom: "up3" bottom: "score2" top: "crop3" '
    'crop_param { axis: 2 offset: 1 } }\n'
    'layer { name: "sum" type: "Eltwise" bottom: "crop3" bottom: "score2" top: "sum" }\n'
    'layer { name: "up" type: "Deconvolution" bottom: "sum" top: "up" convolution_param { '
    'num_output: 5 kernel_size: 4 stride: 2 group: 5 } }\n'
    'layer { name: "crop" type: "Crop" bottom: "up" bottom: "in0" top: "crop" '
    'crop_param { axis: 2 offset: 7 offset: 9 } }\n'
    'layer { name: "prob" type: "Softmax" bottom: "crop" top: "prob" }\n')

AUTOENCODER = (
    'name: "autoencoder"\n'
    'layer { name: "data" type: "DummyData" top: "data" dummy_data_param { shape { dim: 4 dim: 1 '
    'dim: 28 dim: 28 } } }\n'
    'layer { name: "flat" type: "Flatten" bottom: "data" top: "flat" }\n'
    'layer { name: "encode" type: "InnerProduct" bottom: "data" top: "encode" inner_product_param {'
    ' num_output: 50 } }\n'
    'layer { name: "sigmoid" type: "Sigmoid" bottom: "encode" top: "code" }\n'
    'layer { name: "decode" type: "InnerProduct" bottom: "code" top: "decode" inner_product_param {'
    ' num_output: 784 } }\n'
    'layer { name: "loss" type: "SigmoidCrossEntropyLoss" bottom: "decode" bottom: "flat" '
    'top: "loss" }\n')

SIAMESE = (
    'name: "siamese"\n'
    'layer { name: "pairs" type: "DummyData" top: "pairs" top: "sim" dummy_data_param { shape { '
    'dim: 3 dim: 2 dim: 12 dim: 12 } shape { dim: 3 } } }\n'
    'layer { name: "slice" type: "Slice" bottom: "pairs" top: "data" top: "data_p" '
    'slice_param { slice_dim: 1 slice_point: 1 } }\n' +
    "".join(
        f'layer {{ name: "conv{p}" type: "Convolution" bottom: "data{p}" top: "conv{p}" '
        f'param {{ name: "conv_w" }} param {{ name: "conv_b" }} '
        f'convolution_param {{ num_output: 4 kernel_size: 5 }} }}\n'
        f'layer {{ name: "relu{p}" type: "ReLU" bottom: "conv{p}" top: "conv{p}" }}\n'
        f'layer {{ name: "feat{p}" type: "InnerProduct" bottom: "conv{p}" top: "feat{p}" '
        f'param {{ name: "feat_w" }} param {{ name: "feat_b" }} '
        f'inner_product_param {{ num_output: 2 }} }}\n' for p in ["", "_p"]) +
    'layer { name: "loss" type: "ContrastiveLoss" bottom: "feat" bottom: "feat_p" bottom: "sim" '
    'top: "loss" }\n')

LSTM = (
    'name: "lstm"\n' + input_layer([(7, 3), (7, 3)]) +
    'layer { name: "embed" type: "Embed" bottom: "in0" top: "x" embed_param { input_dim: 9 '
    'num_output: 6 } }\n'
    'layer { name: "lstm" type: "LSTM" bottom: "x" bottom: "in1" top: "h" recurrent_param { '
    'num_output: 5 } }\n'
    'layer { name: "score" type: "InnerProduct" bottom: "h" top: "score" inner_product_param { '
    'num_output: 9 axis: 2 } }\n'
    'layer { name: "prob" type: "Softmax" bottom: "score" top: "prob" softmax_param { axis: 2 } }\n')

# With whether OpenCV knows all their layers.
NETS = {
    "segmentation": (SEGMENTATION, True),
    "autoencoder": (AUTOENCODER, True),
    "siamese": (SIAMESE, False),
    "lstm": (LSTM, False),
}


def poolings():
    for pool, size, kernel, stride, pad, mode in itertools.product(
            ["MAX", "AVE", "STOCHASTIC"], [(7, 10), (8, 13)], [2, 3, 5], [1, 2, 3, 4], [0, 1, 2],
            ["CEIL", "FLOOR"]):
        last = size[1] + 2 * pad - kernel
        inside = (-(-last // stride) if mode == "CEIL" else last // stride) * stride
        fits = pad < kernel and (pad == 0 or pool != "STOCHASTIC") and stride <= kernel + 1
        if fits and inside < size[1] + pad and stride <= kernel:
            yield one("Pooling", [(2, 3, *size)], f"pooling_param {{ pool: {pool} kernel_size: {kernel} "
                      f"stride: {stride} pad: {pad} round_mode: {mode} }}")
    for pool in ["MAX", "AVE"]:
        yield one("Pooling", [(2, 3, 5, 7)], f"pooling_param {{ pool: {pool} global_pooling: true }}")
        yield one("Pooling", [(1, 2, 9, 6)], f"pooling_param {{ pool: {pool} kernel_h: 3 kernel_w: 2 "
                  "stride_h: 2 stride_w: 1 pad_h: 1 pad_w: 0 }")
    for pad in [0, 1]:
        yield one("Pooling", [(2, 3, 7, 8)],
                  f"pooling_param {{ kernel_size: 3 stride: 2 pad: {pad} }}", 2)


def convolutions(kind):
    for kernel, stride, pad, dilation, group, bias in itertools.product(
            [1, 3], [1, 2], [0, 1], [1, 2], [1, 2, 4], ["true", "false"]):
        yield one(kind, [(2, 4, 9, 8)],
                  f"convolution_param {{ num_output: 8 kernel_size: {kernel} stride: {stride} pad: {pad} "
                  f"dilation: {dilation} group: {group} bias_term: {bias} }}")
    yield one(kind, [(2, 4, 5, 6, 7)], "convolution_param { num_output: 2 kernel_size: 3 "
              "kernel_size: 1 kernel_size: 2 stride: 2 pad: 1 pad: 0 pad: 1 }")
    yield one(kind, [(2, 4, 9)], "convolution_param { num_output: 2 kernel_size: 3 stride: 2 }")
    yield one(kind, [(2, 3, 4, 9)], "convolution_param { num_output: 2 kernel_size: 3 axis: 2 }")
    yield one(kind, [(2, 4, 6, 6)], "convolution_param { num_output: 2 kernel_h: 3 kernel_w: 1 "
              "pad_h: 1 pad_w: 0 stride_h: 1 stride_w: 2 }")


def recurrent(kind):
    cells = 5
    states = [(1, 3, cells)] * (2 if kind == "LSTM" else 1)
    options = f"recurrent_param {{ num_output: {cells} }}"
    exposed = f"recurrent_param {{ num_output: {cells} expose_hidden: true }}"
    yield one(kind, [(6, 3, 4), (6, 3)], options)
    yield one(kind, [(1, 3, 4), (1, 3)], options)
    yield one(kind, [(6, 3, 2, 2), (6, 3), (3, 2, 2)], options)
    yield one(kind, [(6, 3, 4), (6, 3), *states], exposed, 1 + len(states))
    yield one(kind, [(6, 3, 4), (6, 3), (3, 7), *states], exposed, 1 + len(states))


def reductions():
    for operation, axis, coeff in itertools.product(["SUM", "ASUM", "SUMSQ", "MEAN"], [0, 1, -1],
                                                    [1, 0.5]):
        yield one("Reduction", [(2, 3, 4)],
                  f"reduction_param {{ operation: {operation} axis: {axis} coeff: {coeff} }}")


def arg_maxes():
    for shape, axis, top_k, values in itertools.product([(3, 7), (2, 5, 4, 3)], ["", "axis: 1", "axis: -1"],
                                                       [1, 3], ["true", "false"]):
        yield one("ArgMax", [shape], f"argmax_param {{ top_k: {top_k} {axis} out_max_val: {values} }}")


def elements():
    given = {
        "AbsVal": [""], "BNLL": [""], "Sigmoid": [""], "TanH": [""],
        "ReLU": ["", "relu_param { negative_slope: 0.1 }"],
        "ELU": ["", "elu_param { alpha: 0.3 }"],
        "Clip": ["clip_param { min: -0.3 max: 0.5 }"],
        "Swish": ["", "swish_param { beta: 2 }"],
        "Threshold": ["", "threshold_param { threshold: 0.2 }"],
        "Exp": ["", "exp_param { base: 2 scale: 0.5 shift: 1 }", "exp_param { scale: 3 }"],
        "Log": ["log_param { shift: 2 }", "log_param { base: 10 scale: 0.5 shift: 3 }"],
        "Power": ["", "power_param { power: 2 }", "power_param { power: 3 scale: 0.5 shift: 1 }",
                  "power_param { power: 0.5 shift: 2 }", "power_param { power: -0.75 shift: 2 scale: 0.1 }",
                  "power_param { power: 0 }", "power_param { scale: 0 shift: 3 power: 2 }"],
        "PReLU": ["", "prelu_param { channel_shared: true }"],
        "Dropout": [""],
    }
    for kind, options in given.items():
        yield kind, [one(kind, [shape], option) for option in options
                     for shape in [(2, 3, 4, 5), (3, 4)]]


def sharing():
    """Layers in place on tops that are their bottom's memory, which something else reads, too."""
    product = 'layer {{ name: "{0}" type: "InnerProduct" bottom: "{1}" top: "{0}" inner_product_param {{ num_output: 8 }} }}\n'
    alias = 'layer {{ name: "f" type: "{0}" bottom: "c" top: "f" {1} }}\n'
    for first, kind, options, act in [
            (product, "Reshape", "reshape_param { shape { dim: 4 dim: -1 } }", "Sigmoid"),
            (product, "Concat", "", "TanH"), (product, "Slice", "", "TanH"),
            (CONV, "Flatten", "", "Sigmoid"), (CONV, "Concat", "", "ReLU")]:
        shape = (2, 12) if first is product else (2, 3, 6, 7)
        yield ('name: "sharing"\n' + input_layer([shape]) +
               first.format("c", "in0", "num_output: 5 kernel_size: 3") +
               alias.format(kind, options) + IN_PLACE.format("act", act, "f", "") +
               product.format("p", "c"))
    yield ('name: "split"\n' + input_layer([(2, 3, 4)]) +
           'layer { name: "cut" type: "Split" bottom: "in0" top: "a" top: "c" }\n' +
           alias.format("Flatten", "") + IN_PLACE.format("act", "ReLU", "f", "") +
           product.format("p", "a"))


def names():
    """Layers of one name, and a parameter of two shapes."""
    for kind, first, second in [
            ("Pooling", "pooling_param { pool: AVE kernel_size: 3 stride: 2 }",
             "pooling_param { pool: AVE kernel_size: 4 stride: 3 pad: 2 }"),
            ("Im2col", "convolution_param { kernel_size: 3 }",
             "convolution_param { kernel_size: 2 }")]:
        yield 'name: "names"\n' + input_layer([(2, 3, 8, 8)] * 2) + "".join(
            f'layer {{ name: "it" type: "{kind}" bottom: "in{i}" top: "out{i}" {options} }}\n'
            for i, options in enumerate([first, second]))
    shared = 'param { name: "w" share_mode: PERMISSIVE }'
    yield ('name: "shapes"\n' + input_layer([(2, 6, 3, 3), (2, 6)]) +
           f'layer {{ name: "conv" type: "Convolution" bottom: "in0" top: "conv" {shared} '
           'convolution_param { num_output: 4 kernel_size: 1 } }\n'
           f'layer {{ name: "ip" type: "InnerProduct" bottom: "in1" top: "ip" {shared} '
           'inner_product_param { num_output: 4 } }\n')


def layers():
    found = {
        "sharing": list(sharing()),
        "names": list(names()),
        "Pooling": list(poolings()),
        "Convolution": list(convolutions("Convolution")),
        "Deconvolution": list(convolutions("Deconvolution")),
        "Im2col": [one("Im2col", [(2, 3, 6, 7)], f"convolution_param {{ kernel_size: 3 stride: {s} pad: 1 "
                       f"dilation: {d} }}") for s in [1, 2] for d in [1, 2]],
        "LRN": [one("LRN", [(2, 6, 5, 7)], f"lrn_param {{ local_size: {size} alpha: {alpha} beta: {beta} "
                    f"k: {k} norm_region: {region} }}")
                for size, alpha, beta, k, region in itertools.product(
                    [1, 3, 5], [1, 0.0001], [0.75, 0.5], [1, 2], ["ACROSS_CHANNELS", "WITHIN_CHANNEL"])],
        "BatchNorm": [one("BatchNorm", [shape], option)
                      for shape in [(3, 4, 5, 6), (4, 3), (4, 3, 5), (6,)]
                      for option in ["", "batch_norm_param { eps: 0.001 }",
                                     "batch_norm_param { use_global_stats: false }"]],
        "MVN": [one("MVN", [shape], f"mvn_param {{ across_channels: {across} normalize_variance: {variance} }}")
                for shape in [(2, 3, 4, 5), (3, 4, 6)]
                for across in ["true", "false"] for variance in ["true", "false"]],
        "Scale": [one("Scale", [(2, 3, 4, 5)], f"scale_param {{ axis: {axis} num_axes: {count} bias_term: {bias} }}")
                  for axis, count in [(1, 1), (0, 1), (1, 2), (0, -1), (2, 2), (-1, 1), (1, 0)]
                  for bias in ["true", "false"]] +
                 [one("Scale", [(2, 3, 4, 5), (3, 4)], "scale_param { axis: 1 }"),
                  one("Scale", [(2, 3, 4, 5), (2, 3)], "scale_param { axis: 0 bias_term: true }")],
        "Bias": [one("Bias", [(2, 3, 4, 5)], f"bias_param {{ axis: {axis} num_axes: {count} }}")
                 for axis, count in [(1, 1), (0, -1), (2, 2)]] +
                [one("Bias", [(2, 3, 4, 5), (3, 4)], "bias_param { axis: 1 }")],
        "Softmax": [one("Softmax", [(2, 3, 4, 5)], f"softmax_param {{ axis: {axis} }}") for axis in [0, 1, 2, -1]],
        "InnerProduct": [one("InnerProduct", [shape], f"inner_product_param {{ num_output: 6 axis: {axis} "
                             f"transpose: {transpose} bias_term: {bias} }}")
                         for shape, axis in [((3, 8), 1), ((3, 2, 4), 1), ((3, 2, 4), 2), ((3, 2, 4), 0),
                                             ((2, 3, 4, 5), -2)]
                         for transpose in ["true", "false"] for bias in ["true", "false"]],
        "Embed": [one("Embed", [shape], f"embed_param {{ input_dim: 7 num_output: 4 bias_term: {bias} }}")
                  for shape in [(5,), (3, 4)] for bias in ["true", "false"]],
        "Reduction": list(reductions()),
        "ArgMax": list(arg_maxes()),
        "Concat": [one("Concat", [(2, 3, 4), (2, 3, 4)], f"concat_param {{ axis: {axis} }}") for axis in [0, 1, -1]],
        "Slice": [one("Slice", [(4, 6, 3)], option, 2) for option in
                  ["", "slice_param { axis: 0 }", "slice_param { axis: 1 slice_point: 2 }"]] +
                 [one("Slice", [(4, 6, 3)], "", 1), one("Split", [(2, 3)], "", 2)],
        "Crop": [one("Crop", [(3, 4, 8, 9), (2, 3, 5, 6)], f"crop_param {{ axis: {axis} {offsets} }}")
                 for axis, offsets in [(2, ""), (2, "offset: 1"), (2, "offset: 3 offset: 2"), (1, "offset: 1"),
                                       (0, "offset: 1 offset: 0 offset: 2 offset: 3")]],
        "Flatten": [one("Flatten", [(2, 3, 4, 5)], option) for option in
                    ["", "flatten_param { axis: 2 }", "flatten_param { axis: 0 end_axis: 1 }"]],
        "Reshape": [one("Reshape", [(2, 6, 4)], f"reshape_param {{ shape {{ {dims} }} }}") for dims in
                    ["dim: 0 dim: -1", "dim: 3 dim: 4 dim: 4", "dim: -1"]],
        "Tile": [one("Tile", [(2, 3, 4)], f"tile_param {{ axis: {axis} tiles: {tiles} }}")
                 for axis in [0, 1, -1] for tiles in [1, 3]],
        "Eltwise": [one("Eltwise", [(2, 3, 4)] * 3, f"eltwise_param {{ {option} }}") for option in
                    ["operation: PROD", "operation: SUM", "operation: MAX",
                     "operation: SUM coeff: 0.5 coeff: -1 coeff: 2"]],
        "BatchReindex": [one("BatchReindex", [(4, 3, 2), (6,)])],
        "SPP": [one("SPP", [(2, 3, 9, 11)], f"spp_param {{ pyramid_height: {levels} pool: {pool} }}")
                for levels in [1, 2, 3] for pool in ["MAX", "AVE"]],
        "Parameter": ['name: "p"\nlayer { name: "p" type: "Parameter" top: "p" parameter_param { shape { dim: 2 '
                      'dim: 3 } } }\n' + input_layer([(2, 3)]) +
                      'layer { name: "sum" type: "Eltwise" bottom: "p" bottom: "in0" top: "sum" }\n'],
        "LSTM": list(recurrent("LSTM")),
        "RNN": list(recurrent("RNN")),
        "LSTMUnit": [one("LSTMUnit", [(1, 3, 4), (1, 3, 16), (1, 3)], "", 2)],
    }
    found.update(elements())
    return found
