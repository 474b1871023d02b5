#!/usr/bin/env python3
"""Slow and broken callers: does the server bound what they take, and go on answering others?

    lookback serve --run RUN --timeout 5 &
    python tests/clients/hostile.py --sentence 'ein Hund' --pid $!

Needs Python alone; talks to this machine only.
"""

import argparse
import http.client
import json
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit

from load import resident_mib

HEAD = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


class Server:
    def __init__(self, options: argparse.Namespace):
        url = urlsplit(options.url)
        if url.hostname not in ("127.0.0.1", "localhost", "::1"):
            raise SystemExit("such callers are for a server on this machine")
        self.address = (url.hostname, url.port)
        self.sentence, self.pid = options.sentence, options.pid

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=60)

    def answers(self) -> float:
        """Seconds to the answer to an honest caller."""
        begun = time.monotonic()
        connection = http.client.HTTPConnection(*self.address, timeout=60)
        connection.request("POST", "/translate", json.dumps({"q": self.sentence}), {"Content-Type": "application/json"})
        response = connection.getresponse()
        assert response.status == 200, response.read()
        response.read()
        return time.monotonic() - begun

    def says(self, request: bytes) -> str:
        """The first line of the answer to raw bytes, or what became of the connection."""
        with self.connect() as connection:
            try:
                connection.sendall(request)
                return connection.recv(4096).split(b"\r\n")[0].decode() or "closed"
            except (ConnectionResetError, BrokenPipeError):
                return "closed"

    def report(self, what: str, found: str) -> None:
        print(f"{what:<58} {found}; an honest caller {self.answers():.2f} s; memory {resident_mib(self.pid):.0f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:5000")
    parser.add_argument("--sentence", required=True)
    parser.add_argument("--pid", type=int, required=True)
    parser.add_argument("--slow", type=int, default=300, help="slow connections at once")
    parser.add_argument("--seconds", type=float, default=20, help="how long slow callers go on")
    server = Server(options := parser.parse_args())
    server.report("nobody else", "-")

    # Slowloris: heads that never end, a byte now and then.
    slow = [server.connect() for _ in range(options.slow)]
    begun = time.monotonic()
    open_ones = list(slow)
    while time.monotonic() - begun < options.seconds and open_ones:
        for connection in list(open_ones):
            try:
                connection.sendall(b"POST /translate HTTP/1.1\r\nX: " if time.monotonic() - begun < 0.5 else b"y")
                connection.setblocking(False)
                try:
                    if connection.recv(4096) == b"":
                        open_ones.remove(connection)
                except BlockingIOError:
                    pass
                connection.setblocking(True)
            except OSError:
                open_ones.remove(connection)
        time.sleep(0.5)
    server.report(f"{options.slow} endless heads for {options.seconds:.0f} s", f"{len(open_ones)} still open")
    [connection.close() for connection in slow]

    # Bodies that never come.
    slow = [server.connect() for _ in range(options.slow)]
    [connection.sendall(HEAD + b"Content-Length: 1000\r\n\r\n{\"q\"") for connection in slow]
    server.report(f"{options.slow} half requests, while they wait", "-")
    kinds: dict[str, int] = {}
    for connection in slow:
        connection.settimeout(90)
        try:
            line = connection.recv(4096).split(b"\r\n")[0].decode() or "closed"
        except OSError as fault:
            line = type(fault).__name__
        kinds[line] = kinds.get(line, 0) + 1
        connection.close()
    server.report(f"{options.slow} half requests, after the server's time", str(kinds))

    # A gigabyte that is announced, one that comes, and one in pieces.
    server.report("a gigabyte announced", server.says(HEAD + b"Content-Length: 1073741824\r\n\r\n{\"q\": \""))
    for name, head, piece in (
        ("a gigabyte sent", HEAD + b"Content-Length: 1073741824\r\n\r\n", b"x" * (1 << 20)),
        ("a gigabyte in chunks", HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"100000\r\n" + b"x" * (1 << 20) + b"\r\n"),
    ):
        with server.connect() as connection:
            n = 0
            try:
                connection.sendall(head)
                for _ in range(1024):
                    connection.sendall(piece)
                    n += 1
                found = "all of it taken"
            except OSError:
                found = f"closed after {n} MiB"
        server.report(name, found)

    for name, body in (
        ("bad JSON", b'{"q": '),
        ("bad UTF-8", b'{"q": "\xff\xfe"}'),
        ("deep JSON", b'{"q": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
        ("numbers for texts", b'{"q": 12}'),
        ("a lone surrogate", b'{"q": "\\ud800"}'),
        ("a zero byte", b'{"q": "a\\u0000b"}'),
    ):
        server.report(name, server.says(HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body))
    server.report("no HTTP", server.says(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 600))
    server.report("a head of a megabyte", server.says(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * (1 << 20) + b"\r\n\r\n"))
    server.report("ten thousand heads", server.says(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 10_000 + b"\r\n"))


if __name__ == "__main__":
    main()
