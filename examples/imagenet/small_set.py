#!/usr/bin/env python3
"""Enlarges CIFAR-10 images to 256 x 256: a small set for the ImageNet nets.

    examples/imagenet/small_set.py COUNT OUTPUT.datumfile [BATCH.bin...]

BATCH.bin are CIFAR-10's binary files; examples/cifar10/data_batch_1.bin and following by default.
"""
import pathlib
import struct
import sys

SIZE, FACTOR = 32, 8
PLANE = SIZE * SIZE
CIFAR_RECORD = 1 + 3 * PLANE  # label, then the planes red, green, blue


def varint(value):
    parts = []
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(parts + [value])


def enlarge(plane):
    rows = (plane[at:at + SIZE] for at in range(0, PLANE, SIZE))
    return b"".join(bytes(v for v in row for _ in range(FACTOR)) * FACTOR for row in rows)


def datum(record):
    """A caffe.Datum: channels, height, width, data, label (fields 1 to 5)."""
    red, green, blue = (record[1 + i * PLANE:1 + (i + 1) * PLANE] for i in range(3))
    data = enlarge(blue) + enlarge(green) + enlarge(red)
    side = varint(SIZE * FACTOR)
    return (b"\x08\x03" + b"\x10" + side + b"\x18" + side + b"\x22" + varint(len(data)) + data +
            b"\x28" + varint(record[0]))


def records(files, count):
    for file in files:
        content = file.read_bytes()
        for at in range(0, len(content) - CIFAR_RECORD + 1, CIFAR_RECORD):
            if count == 0:
                return
            count -= 1
            yield content[at:at + CIFAR_RECORD]
    if count > 0:
        sys.exit(f"small_set.py: {count} images too few in {', '.join(map(str, files))}")


def main():
    if len(sys.argv) < 3 or not sys.argv[1].isdigit():
        sys.exit(__doc__)
    folder = pathlib.Path(__file__).resolve().parent.parent / "cifar10"
    files = [pathlib.Path(name) for name in sys.argv[3:]] or sorted(folder.glob("data_batch_?.bin"))
    if not files or not all(file.is_file() for file in files):
        sys.exit("small_set.py: no CIFAR-10 files; run examples/cifar10/get_data.sh, or name them")
    with open(sys.argv[2], "wb") as out:
        for index, record in enumerate(records(files, int(sys.argv[1]))):
            key, value = b"%08d" % index, datum(record)
            out.write(struct.pack("<II", 8 + len(key) + len(value), len(key)) + key +
                      struct.pack("<I", len(value)) + value)


if __name__ == "__main__":
    main()
