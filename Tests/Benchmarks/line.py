#!/usr/bin/env python3
"""A line to a server: a proxy that delays, limits and varies what passes, for the benchmark of connections.

What it does not shape it hands on as fast as it can. Standard library only.
"""

import argparse
import asyncio
import random
import time


class ThroughputMeter:
    """Bytes a second, granted in the order of asking."""

    def __init__(self, rate, jitter=0.0, drop=None):
        self.rate, self.jitter, self.drop = rate, jitter, drop
        self.free = time.monotonic()
        self.epoch, self.factor = None, 1.0

    def present(self, now):
        """The rate now: it stays for a fifth of a second."""
        if self.jitter and self.epoch != int(now * 5):
            self.epoch, self.factor = int(now * 5), 1 + random.uniform(-self.jitter, self.jitter)
        dropped = self.drop and self.drop[0] <= now < self.drop[1]
        return self.rate * self.factor * (0.25 if dropped else 1)

    async def take(self, count):
        if not self.rate:
            return
        now = time.monotonic()
        # What was not used is lost, but for what a late timer missed.
        self.free = max(self.free, now - 0.02)
        begin = self.free
        self.free += count / self.present(begin)
        if begin > now:
            await asyncio.sleep(begin - now)


class Line:
    def __init__(self, options):
        self.options = options
        self.drop = None
        self.total = ThroughputMeter(options.total * 1024, options.jitter)
        self.count = 0

    async def accept(self, reader, writer):
        options = self.options
        if self.drop is None and options.drop:
            begun = time.monotonic()
            self.drop = (begun + options.drop[0], begun + options.drop[1])
            self.total.drop = self.drop
        self.count += 1
        rate = options.each * 1024
        if options.slow_every and self.count % options.slow_every == 3:
            rate = (rate or options.total * 1024) / 10
        each = ThroughputMeter(rate, options.jitter, self.drop)
        # The handshake, which the kernel has already made.
        await asyncio.sleep(options.latency)
        theirs = None
        try:
            upstream, theirs = await asyncio.open_connection("127.0.0.1", options.upstream, limit=1 << 17)
            await asyncio.gather(self.requests(reader, theirs), self.answers(upstream, writer, each))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            for one in (writer, theirs):
                if one:
                    one.transport.abort()

    async def requests(self, reader, theirs):
        while data := await reader.read(1 << 16):
            await asyncio.sleep(self.options.latency / 2)
            theirs.write(data)
        raise ConnectionError

    async def answers(self, upstream, writer, each):
        options = self.options
        latency = options.latency
        rate = min([rate for rate in (each.rate, self.total.rate) if rate] or [1 << 40])
        chunk = int(max(2048, min(65536, rate / 100)))
        flight, window, largest = 0, 14600, options.window * 1024
        landed = asyncio.Event()
        queue = asyncio.Queue()

        async def deliver():
            while True:
                due, data = await queue.get()
                wait = due - time.monotonic()
                if wait > 0.001:
                    await asyncio.sleep(wait)
                if data is None:
                    raise ConnectionError
                writer.write(data)
                await writer.drain()

        def acknowledge(size):
            nonlocal flight, window
            flight -= size
            window = min(largest, window + size)
            landed.set()

        async def fetch():
            nonlocal flight
            loop = asyncio.get_running_loop()
            while data := await upstream.read(chunk):
                await each.take(len(data))
                await self.total.take(len(data))
                if latency:
                    while flight >= window:
                        landed.clear()
                        await landed.wait()
                    flight += len(data)
                    loop.call_later(latency, acknowledge, len(data))
                    await queue.put((time.monotonic() + latency / 2, data))
                else:
                    writer.write(data)
                    await writer.drain()
            await queue.put((time.monotonic() + latency / 2, None))

        await asyncio.gather(fetch(), deliver())


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--upstream", type=int, required=True)
    parser.add_argument("--each", type=float, default=0, help="KiB/s of a connection")
    parser.add_argument("--total", type=float, default=0, help="KiB/s of all")
    parser.add_argument("--latency", type=float, default=0, help="seconds of a round trip")
    parser.add_argument("--window", type=float, default=4096, help="KiB on their way at most")
    parser.add_argument("--jitter", type=float, default=0, help="share by which rates vary")
    parser.add_argument("--slow-every", type=int, default=0, help="one of so many connections has a tenth")
    parser.add_argument("--drop", type=float, nargs=2, help="seconds between which rates are a quarter")
    line = Line(parser.parse_args())
    server = await asyncio.start_server(line.accept, "127.0.0.1", line.options.port, limit=1 << 16)
    async with server:
        await server.serve_forever()


try:
    asyncio.run(main())
except KeyboardInterrupt:
    pass
