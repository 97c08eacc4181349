"""Passes TCP connections on, late, slowly, damaged or cut at a byte, as a row wants it."""
import asyncio
import random
import socket
import struct
import threading
from dataclasses import dataclass

PIECE = 65536
UP, DOWN = 0, 1  # from the one who connected, and to it


@dataclass
class Strike:
    """A fault that is armed."""
    left: int  # bytes that pass before it
    pattern: object = None  # of bytes, compiled, with which counting begins; None: it has begun
    link: object = None  # whose bytes count; None: those of all


class Proxy:
    """Listens on the loopback of a node; faults are set by any thread, and count what they struck.

    A cut or a flip is armed with the number of bytes that pass before it, and strikes once, in the
    connection that carries that byte; another one is armed after it. With a pattern of bytes, it is
    those of one connection from there on that are counted.
    """

    def __init__(self, place, node, target):
        self.target = target
        self.delay = self.jitter = 0.0  # seconds
        self.rate = 0  # bytes a second, each connection and way; 0: any
        self.frozen = False  # nothing passes, no connection ends
        self.armed = {}  # (kind, way): Strike
        self.tap = None  # a bytearray: gets what passes up
        self.on_cut = None
        self.struck = {"cut": 0, "flip": 0}
        self.passed = [0, 0]
        self.draw, self.loop = random.Random(1), None
        ready = threading.Event()

        def run():
            place.enter(node)
            self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
            self.port = self.listener.getsockname()[1]
            self.loop = asyncio.new_event_loop()
            self.loop.create_task(self.serve())
            ready.set()
            self.loop.run_forever()

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()
        ready.wait()

    def address(self):
        return f"127.0.0.1:{self.port}"

    async def serve(self):
        await asyncio.start_server(self.accept, sock=self.listener)

    async def accept(self, reader, writer):
        try:
            other_reader, other_writer = await asyncio.open_connection(*self.target)
        except OSError:
            writer.transport.abort()
            return
        both = (writer, other_writer)
        ways = [self.pass_on(reader, other_writer, UP, both),
                self.pass_on(other_reader, writer, DOWN, both)]
        await asyncio.gather(*ways)

    async def pass_on(self, reader, writer, way, both):
        try:
            while data := await reader.read(PIECE):
                while self.frozen:
                    await asyncio.sleep(0.02)
                if self.tap is not None and way == UP:
                    self.tap += data
                data = self.flipped(data, way, both)
                data, is_cut = self.until_cut(data, way, both)
                await self.wait(data)
                writer.write(data)
                await writer.drain()
                self.passed[way] += len(data)
                if is_cut:
                    break
        except OSError:
            pass
        if self.frozen:
            return  # as a network does that carries no end of a connection either
        for each in both:
            reset(each)

    async def wait(self, data):
        """A stream keeps its order: the next piece leaves after this one."""
        pause = self.delay + self.draw.uniform(-self.jitter, self.jitter)
        if self.rate:
            pause += len(data) / self.rate
        if pause > 0:
            await asyncio.sleep(pause)

    def flipped(self, data, way, link):
        at = self.count_down("flip", way, data, link)
        if at is None:
            return data
        damaged = bytearray(data)
        damaged[at] ^= 1 << self.draw.randrange(8)
        return bytes(damaged)

    def until_cut(self, data, way, link):
        at = self.count_down("cut", way, data, link)
        if at is None:
            return data, False
        if self.on_cut:
            self.on_cut()
        return data[:at], True

    def count_down(self, kind, way, data, link):
        """Where in `data` the fault strikes; None: not there."""
        strike = self.armed.get((kind, way))
        if strike is None or strike.link not in (None, link):
            return None
        at = strike.left
        if strike.pattern:
            found = strike.pattern.search(data)
            if not found:
                return None
            strike.pattern, strike.link = None, link
            at += found.start()
        if at >= len(data):
            strike.left = at - len(data)
            return None
        del self.armed[kind, way]
        self.struck[kind] += 1
        return at

    def strike(self, kind, way, after, pattern=None):
        """Arms a cut or a flip after so many bytes more, or after the next `pattern` begins."""
        self.armed[kind, way] = Strike(after, pattern)

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.listener.close()


def reset(writer):
    """Ends a connection as a machine does that knows nothing of it."""
    linked = writer.get_extra_info("socket")
    if linked is not None and linked.fileno() >= 0:
        linked.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
