#!/usr/bin/env python3
"""Pairs of MNIST images for a siamese net.

    examples/siamese/pairs.py IMAGES-idx3-ubyte LABELS-idx1-ubyte OUTPUT

Writes OUTPUT-images-idx3-ubyte, as many pairs as there are images, one image above the other, and
OUTPUT-labels-idx1-ubyte, 1 for two images of one digit and 0 for others. Pairs are drawn with a fixed seed.
"""
import random
import struct
import sys


def main():
    images_file, labels_file, output = sys.argv[1:]
    with open(images_file, "rb") as file:
        _, count, rows, columns = struct.unpack(">4i", file.read(16))
        images = file.read()
    with open(labels_file, "rb") as file:
        file.read(8)
        labels = file.read()
    size = rows * columns
    draw = random.Random(1)
    pairs, same = bytearray(), bytearray()
    for _ in range(count):
        for image in (first := draw.randrange(count)), (second := draw.randrange(count)):
            pairs += images[image * size:(image + 1) * size]
        same.append(labels[first] == labels[second])
    with open(f"{output}-images-idx3-ubyte", "wb") as file:
        file.write(struct.pack(">4i", 0x803, count, 2 * rows, columns) + pairs)
    with open(f"{output}-labels-idx1-ubyte", "wb") as file:
        file.write(struct.pack(">2i", 0x801, count) + same)


if __name__ == "__main__":
    main()
