"""What processes that share memory say there of their records (src/store/shared/record_memory)."""
import contextlib
import os
import pathlib
import struct

from round_view import INPUTS, Round, in_whole_steps

BOARD_MAGIC = 0x314F444545505353
HEAD_WORDS = 6  # of a board, and of each of its slots; marks follow
CHUNK_FLOATS = (1 << 20) // 4


class Board:
    """What a process says of a record that it forms in shared memory."""

    def __init__(self, pid, descriptor):
        self.path = f"/proc/{pid}/fd/{descriptor}"
        with open(self.path, "rb") as file:
            words = file.read(HEAD_WORDS * 8)
        self.words = struct.unpack(f"<{HEAD_WORDS}Q", words) if len(words) == 48 else (0,)
        self.is_one = self.words[0] == BOARD_MAGIC
        if self.is_one:
            self.slots, self.elements = self.words[1:3]
            self.chunks = -(-self.elements // CHUNK_FLOATS)
            size = HEAD_WORDS * (1 + self.slots) + self.slots * self.chunks
            with open(self.path, "rb") as file:
                self.words = struct.unpack(f"<{size}Q", file.read(8 * size))

    def slot(self, number):
        """Generation, version, finished generation, base version, worker, term."""
        at = HEAD_WORDS * (1 + number)
        return self.words[at:at + HEAD_WORDS]

    def final_chunks(self, number):
        at = HEAD_WORDS * (1 + self.slots) + number * self.chunks
        return self.words[at:at + self.chunks].count(self.slot(number)[0])

    def newest(self):
        """Term and version; zeros if there is none."""
        number = self.words[5] - 1
        if number < 0:
            return 0, 0
        slot = self.slot(number)
        return slot[5], slot[1]


def descriptors_of_memory(pid):
    found = []
    for each in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            if os.readlink(each).startswith("/memfd:speedo"):
                found.append(int(each.name))
    return sorted(found)


def boards(pid):
    """Of the records that the process forms in memory that it has made to be shared."""
    made = [Board(pid, each) for each in descriptors_of_memory(pid)]
    return [each for each in made if each.is_one]


def in_memory(master, workers):
    """The same of processes that share memory; a contribution is begun with its run, so it is half
    written only if one of its chunks is final and not all are."""
    weights = boards(master)
    if len(weights) != 1:
        return Round(0, 0, 0, 0)
    weights = weights[0]
    version = weights.newest()[1]
    parts = sum(weights.final_chunks(number) for number in range(weights.slots)
                if weights.slot(number)[1] == version + 1)
    whole, half = 0, 0
    for board in (board for pid in workers for board in boards(pid)):
        generation, _, finished, base, _, _ = board.slot(0)
        if generation and generation == finished:
            whole += base == version
        else:
            half += board.final_chunks(0) > 0
    return Round(version, whole, half, parts)


def counted_in_memory(master, rows):
    """What the newest weights in the master's memory count; it stands still."""
    board = boards(master)[0]
    stride = -(-board.elements // 16) * 16 * 4  # whole cache lines
    for each in descriptors_of_memory(master):
        size = os.stat(f"/proc/{master}/fd/{each}").st_size
        if size >= stride * board.slots and not Board(master, each).is_one:
            with open(f"/proc/{master}/fd/{each}", "rb") as file:
                file.seek((board.words[5] - 1) * stride)
                return in_whole_steps(struct.unpack(f"<{INPUTS * rows}f",
                                                    file.read(4 * INPUTS * rows)))
    raise ValueError("the master has no weights in shared memory")
