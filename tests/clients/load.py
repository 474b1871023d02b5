#!/usr/bin/env python3
"""Many callers at once, some of whom hang up: is every answer right, how fast are they, and does memory stay flat?

    lookback translate --run RUN --input text.txt --output expected.txt
    lookback serve --run RUN --max-queue 1000 &
    python tests/clients/load.py --text text.txt --expected expected.txt --seconds 60 --pid $!

Each caller asks for 1 to `--lines` neighbouring lines of the text, checks every line of the answer against `expected.txt`, and asks
again. A part of the requests, `--leave`, is given up after up to 0.1 seconds, in half of the cases before the request is sent whole.
Needs Python alone; talks to this machine only.
"""

import argparse
import http.client
import json
import random
import socket
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit


def resident_mib(pid: int) -> float:
    """What a process holds in memory (Linux)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise SystemExit(f"process {pid} has no VmRSS")


class Caller(threading.Thread):
    def __init__(self, number: int, options: argparse.Namespace, text: list[str], expected: list[str], end: float):
        super().__init__(daemon=True)
        self.random = random.Random(options.seed * 1000 + number)
        self.options, self.text, self.expected, self.end = options, text, expected, end
        self.times: list[float] = []
        self.n_lines = self.n_wrong = self.n_left = self.n_refused = 0
        # When an answer took too long (504).
        self.late: list[float] = []
        self.fault: Exception | None = None

    def run(self) -> None:
        try:
            while time.monotonic() < self.end:
                self.ask()
        except Exception as fault:  # told by the main thread
            self.fault = fault

    def ask(self) -> None:
        n = self.random.randint(1, self.options.lines)
        start = self.random.randrange(max(1, len(self.text) - n))
        body = json.dumps({"q": self.text[start : start + n]}).encode()
        if self.random.random() < self.options.leave:
            self.leave(body)
            return
        begun = time.monotonic()
        connection = http.client.HTTPConnection(self.options.host, self.options.port, timeout=120)
        connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = response.read()
        connection.close()
        if response.status == 503:
            self.n_refused += 1
            time.sleep(float(response.headers["Retry-After"]))
            return
        if response.status == 504:
            self.late.append(time.monotonic())
            return
        if response.status != 200:
            raise RuntimeError(f"status {response.status}: {answer[:200]!r}")
        self.times.append(time.monotonic() - begun)
        found = json.loads(answer)["translatedText"]
        self.n_lines += n
        self.n_wrong += sum(a != b for a, b in zip(found, self.expected[start : start + n], strict=True))

    def leave(self, body: bytes) -> None:
        """Sends a request, or half of it, and goes."""
        head = f"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        request = head.encode() + body
        if self.random.random() < 0.5:
            request = request[: self.random.randrange(len(request))]
        with socket.create_connection((self.options.host, self.options.port), timeout=120) as connection:
            connection.sendall(request)
            time.sleep(self.random.random() * 0.1)
        self.n_left += 1


class Watch(threading.Thread):
    """Notes when this process, and the machine with it, stood still."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.stops: list[tuple[float, float]] = []

    def run(self) -> None:
        before = time.monotonic()
        while True:
            time.sleep(1)
            now = time.monotonic()
            if now - before > 11:
                self.stops.append((now, now - before - 1))
            before = now


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:5000")
    parser.add_argument("--text", required=True, help="a sentence a line, none of them blank")
    parser.add_argument("--expected", required=True, help="their translations")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--callers", type=int, default=16)
    parser.add_argument("--lines", type=int, default=16, help="most lines of a request")
    parser.add_argument("--leave", type=float, default=0.5, help="the part of requests that are given up")
    parser.add_argument("--pid", type=int, help="the server, whose memory is looked at")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    url = urlsplit(options.url)
    options.host, options.port = url.hostname, url.port
    if options.host not in ("127.0.0.1", "localhost", "::1"):
        raise SystemExit("a load is for a server on this machine")
    text, expected = (Path(path).read_text().splitlines() for path in (options.text, options.expected))
    begun = time.monotonic()
    end = begun + options.seconds
    callers = [Caller(i, options, text, expected, end) for i in range(options.callers)]
    watch = Watch()
    watch.start()
    [caller.start() for caller in callers]
    memory = []
    while (left := end - time.monotonic()) > 0:
        if options.pid:
            memory.append(resident_mib(options.pid))
        time.sleep(min(left, options.seconds / 60))
    [caller.join() for caller in callers]
    took = time.monotonic() - begun
    if fault := next((caller.fault for caller in callers if caller.fault), None):
        raise fault
    times = sorted(time for caller in callers for time in caller.times)
    total = lambda of: sum(getattr(caller, of) for caller in callers)
    print(f"{len(times)} answers with {total('n_lines')} lines in {took:.0f} s: {total('n_lines') / took:.1f} lines a second")
    print(f"wrong lines: {total('n_wrong')}; given up: {total('n_left')} requests; refused (503): {total('n_refused')}")
    late = sorted(time - begun for caller in callers for time in caller.late)
    print(f"too late (504): {len(late)}" + "".join(f", after {time:.0f} s" for time in late[:20]))
    print("stood still: " + (", ".join(f"{n:.0f} s until {at - begun:.0f} s" for at, n in watch.stops) or "never longer than 10 s"))
    print("seconds: " + ", ".join(f"p{p} {times[min(len(times) - 1, len(times) * p // 100)]:.3f}" for p in (50, 95, 99)) + f", slowest {times[-1]:.3f}")
    if memory:
        quarters = [memory[len(memory) * i // 4] for i in range(4)] + [memory[-1]]
        print("memory (MiB) at the quarters: " + ", ".join(f"{value:.0f}" for value in quarters))
    if total("n_wrong") or late:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
