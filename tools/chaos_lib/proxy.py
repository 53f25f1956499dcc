"""A TCP proxy that does to connections what networks do, on one thread of its own.

Every connection has a path, a name that faults are addressed to: that of its listener, or what the listener's `observe`
makes of its first bytes. Both ways of a path ("up": from who dialled, "down": back) have conditions:

  hold            nothing passes. It is late, not lost, as behind a network that lets nothing through for a while: TCP would
                  send it again. The ends of connections are held as well.
  delay, jitter   seconds; the order is kept
  flip            one bit, after so many bytes, once
  cut             after so many bytes the connection is reset, once

Conditions hold for the connections that are there and for those to come, until they are cleared.

Threads: the public functions may be called from any thread; hooks run on the proxy's, and must not wait.
"""
import asyncio
import concurrent.futures
import random
import socket
import struct
import threading

WAYS = ("up", "down")
CHUNK_BYTES = 65536
CHUNKS_AT_ONCE = 64  # of one way that wait to be sent: then nothing more is read, and the sender's buffers fill
END, RESET = object(), object()


def abort(writer):
    """RST instead of an end in order."""
    sock = writer.get_extra_info("socket")
    if sock is not None and sock.fileno() >= 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


class Conditions:
    """Of one way of a path. The proxy's thread only."""

    def __init__(self, rng):
        self.hold = False
        self.delay = self.jitter = 0.0
        self.flip = None  # (bytes before it, bit 0 to 7)
        self.cut = None  # bytes before it
        self.flipped = self.cuts = 0
        self.bytes = 0
        self.changed = asyncio.Event()
        self._rng = rng

    def set(self, **what):
        for name, value in what.items():
            setattr(self, name, value)
        self.changed.set()
        self.changed = asyncio.Event()

    def latency(self):
        return self.delay + self._rng.random() * self.jitter if self.delay or self.jitter else 0.0

    def spoil(self, data):
        """What is sent in place of data, and whether the connection ends behind it."""
        if self.flip is not None:
            before, bit = self.flip
            if before < len(data):
                data = bytearray(data)
                data[before] ^= 1 << bit
                data = bytes(data)
                self.flip = None
                self.flipped += 1
            else:
                self.flip = before - len(data), bit
        if self.cut is not None:
            if self.cut <= len(data):
                data, self.cut = data[:self.cut], None
                self.cuts += 1
                return data, True
            self.cut -= len(data)
        return data, False


class Connection:
    def __init__(self, proxy, path, observer, client, server):
        self.proxy, self.path, self.observer = proxy, path, observer
        self.ends = {"up": (client[0], server[1]), "down": (server[0], client[1])}
        self.writers = [client[1], server[1]]
        self.tasks = []

    def reset(self):
        """RST to both sides, at once: nothing that waits is sent."""
        for writer in self.writers:
            abort(writer)
        for task in self.tasks:
            task.cancel()

    async def run(self):
        self.tasks = [asyncio.ensure_future(self._pass(way)) for way in WAYS]
        try:
            await asyncio.gather(*self.tasks)
        except (OSError, asyncio.CancelledError):
            self.reset()
        finally:
            for task in self.tasks:
                task.cancel()
            for writer in self.writers:
                writer.close()

    async def _pass(self, way):
        queue = asyncio.Queue(CHUNKS_AT_ONCE)
        reading = asyncio.ensure_future(self._read(way, queue))
        try:
            await self._send(way, queue)
        finally:
            reading.cancel()

    async def _read(self, way, queue):
        loop = asyncio.get_running_loop()
        reader, last = self.ends[way][0], 0.0
        while True:
            try:
                data = await reader.read(CHUNK_BYTES) or END
            except OSError:
                data = RESET
            last = max(last, loop.time() + self.proxy.conditions(self.path, way).latency())
            await queue.put((last, data))
            if data in (END, RESET):
                return

    async def _send(self, way, queue):
        loop = asyncio.get_running_loop()
        writer = self.ends[way][1]
        while True:
            due, data = await queue.get()
            if due > loop.time():
                await asyncio.sleep(due - loop.time())
            if data not in (END, RESET) and self.observer is not None:
                # Before it goes on: who acts on what passes acts before the other side knows of it.
                self.path = self.observer(self, way, data) or self.path
            while self.proxy.conditions(self.path, way).hold:
                await self.proxy.conditions(self.path, way).changed.wait()
            if data is RESET:
                raise ConnectionResetError
            if data is END:
                if writer.can_write_eof():
                    writer.write_eof()
                return
            conditions = self.proxy.conditions(self.path, way)
            data, ends = conditions.spoil(data)
            conditions.bytes += len(data)
            writer.write(data)
            await writer.drain()
            if ends:
                # Who sent is reset. What stands before the cut arrives: a reset could overtake it in the kernel.
                abort(self.ends["down" if way == "up" else "up"][1])
                writer.close()
                await writer.wait_closed()
                raise ConnectionResetError


class Proxy:
    """Listens until `close`; upstreams are asked for at every connection, so a server may come back on another port."""

    def __init__(self, seed=0):
        self._rng = random.Random(f"proxy {seed}")
        self._conditions = {}
        self._connections = set()
        self._servers, self._tasks = [], set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._thread.start()

    def _run(self):
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def _call(self, function):
        """On the proxy's thread; waits for it, unless that is the thread that calls."""
        if threading.current_thread() is self._thread:
            return function()
        done = concurrent.futures.Future()

        def run():
            try:
                done.set_result(function())
            except BaseException as error:  # whoever called hears of it
                done.set_exception(error)
        self._loop.call_soon_threadsafe(run)
        return done.result()

    def conditions(self, path, way):
        """The proxy's thread only."""
        key = path, way
        if key not in self._conditions:
            self._conditions[key] = Conditions(self._rng)
        return self._conditions[key]

    def listen(self, path, upstream, observe=None):
        """A port whose connections are passed on to upstream(), a port or None. `observe`, if given, makes for each connection
        a function of (connection, way, bytes) that gives the connection's path, or None while it keeps its own."""
        async def serve(reader, writer):
            await self._serve(path, upstream, observe, reader, writer)

        async def start():
            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            self._servers.append(server)
            return server.sockets[0].getsockname()[1]
        return asyncio.run_coroutine_threadsafe(start(), self._loop).result()

    async def _serve(self, path, upstream, observe, reader, writer):
        task = asyncio.current_task()
        self._tasks.add(task)
        connection = None
        try:
            port = upstream()
            if port is None:
                raise ConnectionRefusedError
            server = await asyncio.open_connection("127.0.0.1", port)
            connection = Connection(self, path, observe() if observe else None, (reader, writer), server)
            self._connections.add(connection)
            await connection.run()
        except OSError:
            # Nobody listens behind it: as if nobody listened here.
            abort(writer)
        except asyncio.CancelledError:
            pass
        finally:
            self._connections.discard(connection)
            self._tasks.discard(task)

    def set(self, path, way, **what):
        """Conditions of one way, "up" or "down", or of "both"."""
        def apply():
            for each in WAYS if way == "both" else (way,):
                self.conditions(path, each).set(**what)
        self._call(apply)

    def clear(self):
        """Everything passes as it is, on all paths."""
        def apply():
            for conditions in self._conditions.values():
                conditions.set(hold=False, delay=0.0, jitter=0.0, flip=None, cut=None)
        self._call(apply)

    def reset(self, path):
        """Resets the connections that there are; how many they were."""
        def apply():
            found = [connection for connection in self._connections if connection.path == path]
            for connection in found:
                connection.reset()
            return len(found)
        return self._call(apply)

    def counts(self, path, way):
        """{"flipped", "cuts", "bytes"} so far."""
        def read():
            conditions = self.conditions(path, way)
            return {"flipped": conditions.flipped, "cuts": conditions.cuts, "bytes": conditions.bytes}
        return self._call(read)

    def close(self):
        async def end():
            for server in self._servers:
                server.close()
            for connection in list(self._connections):
                connection.reset()
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        asyncio.run_coroutine_threadsafe(end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
