"""A TCP proxy that injects network faults. It runs as its own process, so that a busy test cannot delay the traffic.

    python3 -m checks.reliability.proxy CONTROL NAME=LISTEN:UPSTREAM …

All ports are on 127.0.0.1. A command on the control port is one line, `NAME MODE`; its answer is `ok` or an error.
"""

import asyncio
import socket
import struct
import sys

HOST = "127.0.0.1"
MODES = {
    "pass": "forwards everything; connections that `hang` silenced continue",
    "refuse": "resets the open connections and refuses new ones, like a stopped server",
    "hang": "forwards nothing, and accepts connections without answering, like a paused server",
    "half-open": "silences the open connections for good, and forwards new ones, like a firewall that lost its state",
    "drop": "resets the open connections once, and forwards new ones",
}
# Closing a socket with this option sends RST instead of FIN.
RESET = struct.pack("ii", 1, 0)
CHUNK = 1 << 16
CONTROL_SECONDS = 10


class Connection:
    """A client's connection and ours to the upstream."""

    def __init__(self, writer):
        self.writers = [writer]
        self.flows = asyncio.Event()
        # A lost connection stays silent whatever comes later, and not even its end is forwarded.
        self.lost = False

    async def pump(self, reader, writer):
        """Forwards one direction until its end."""
        while data := await reader.read(CHUNK):
            await self.flows.wait()
            writer.write(data)
            await writer.drain()
        await self.flows.wait()
        writer.write_eof()

    def reset(self):
        for writer in self.writers:
            if connected := writer.get_extra_info("socket"):
                connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            writer.transport.abort()


class Upstream:
    """A server behind the proxy."""

    def __init__(self, listen, port):
        self.listen, self.port = listen, port
        self.mode = "pass"
        self.server = None
        self.connections = set()

    async def start(self):
        self.server = await asyncio.start_server(self.serve, HOST, self.listen)

    async def set(self, mode):
        if mode not in MODES:
            raise ValueError(f"unknown mode {mode}")
        if mode == "refuse" and self.server:
            self.server.close()
            self.server = None
        if mode in ("refuse", "drop"):
            for connection in self.connections:
                connection.reset()
        for connection in self.connections:
            connection.lost = connection.lost or mode == "half-open"
            self.let_flow(connection, mode)
        # After `drop` and `half-open`, new connections pass.
        self.mode = mode if mode in ("refuse", "hang") else "pass"
        if mode != "refuse" and not self.server:
            await self.start()

    def let_flow(self, connection, mode):
        if mode == "hang" or connection.lost:
            connection.flows.clear()
        else:
            connection.flows.set()

    async def serve(self, reader, writer):
        connection = Connection(writer)
        self.connections.add(connection)
        self.let_flow(connection, self.mode)
        try:
            await connection.flows.wait()
            upstream_reader, upstream_writer = await asyncio.open_connection(HOST, self.port)
            connection.writers.append(upstream_writer)
            await asyncio.gather(connection.pump(reader, upstream_writer), connection.pump(upstream_reader, writer))
        except OSError:
            # The upstream is not there, or one side reset its connection: so does the other.
            connection.reset()
        finally:
            self.connections.discard(connection)
            for each in connection.writers:
                each.close()


async def control(upstreams, reader, writer):
    """Performs one command."""
    try:
        name, mode = (await reader.readline()).decode().split()
        await upstreams[name].set(mode)
        answer = "ok"
    except (KeyError, ValueError, OSError) as error:
        answer = f"{type(error).__name__}: {error}"
    writer.write(f"{answer}\n".encode())
    writer.close()


async def run(control_port, upstreams):
    for upstream in upstreams.values():
        await upstream.start()
    server = await asyncio.start_server(lambda *streams: control(upstreams, *streams), HOST, control_port)
    await server.serve_forever()


def parse(text):
    """Parses `NAME=LISTEN:UPSTREAM`."""
    name, _, ports = text.partition("=")
    listen, _, port = ports.partition(":")
    return name, Upstream(int(listen), int(port))


def command(control_port, routes):
    """Returns the command that starts the proxy. `routes` maps a name to its two ports."""
    pairs = [f"{name}={listen}:{port}" for name, (listen, port) in routes.items()]
    return [sys.executable, "-B", "-m", "checks.reliability.proxy", str(control_port), *pairs]


def send(control_port, name, mode):
    """Sets the mode of an upstream. Returns once it applies."""
    with socket.create_connection((HOST, control_port), timeout=CONTROL_SECONDS) as connection:
        connection.sendall(f"{name} {mode}\n".encode())
        answer = connection.makefile().readline().strip()
    if answer != "ok":
        raise ValueError(f"The proxy refused '{name} {mode}': {answer}")


if __name__ == "__main__":
    asyncio.run(run(int(sys.argv[1]), dict(map(parse, sys.argv[2:]))))
