#!/usr/bin/env python3
"""Data larger than memory, measured: the table of docs/results/scale.md.

    cargo build --release
    python3 benches/prepare.py --pairs 10000 1000000 20000000

For each number of generated pairs: the seconds of `lookback data prepare`, the size of its files, the seconds from the start of
`lookback train` to its first update, and its memory while it makes updates: what is its own (RssAnon of /proc/PID/status) and what it
has mapped of files (RssFile, which the system takes back when it needs room). `--unprepared N` trains on at most N pairs without
prepared data too, for comparison. Linux only.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import time

CONFIG = """seed = 1
backend = "flex"
[data]
task = {{ kind = "reverse", n_symbols = 26, min_len = 2, max_len = 14 }}
n_train = {pairs}
n_valid = 200
[tokenizer]
kind = "word"
shared = true
[model]
kind = "transformer"
d_model = 64
d_feed_forward = 128
n_heads = 2
n_encoder_layers = 1
n_decoder_layers = 1
[training]
max_updates = 60
validate_every = 60
save_every = 60
sample_size = 10
score = "sequence-accuracy"
"""


def status(pid):
    """The memory of a process in MiB, by its kind; nothing once it has ended."""
    try:
        text = pathlib.Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    lines = (line.split() for line in text.splitlines())
    return {line[0].rstrip(":"): int(line[1]) / 1024 for line in lines if line and line[-1] == "kB"}


def watched(command, at_each, log):
    """Runs a command and calls `at_each` with its memory, some hundred times a second; how many seconds it took."""
    start = time.monotonic()
    with open(log, "wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        while process.poll() is None:
            at_each(status(process.pid), time.monotonic() - start)
            time.sleep(0.01)
    if process.returncode != 0:
        raise SystemExit(f"{command} failed: {pathlib.Path(log).read_text()}")
    return time.monotonic() - start


def updates(run):
    """Updates that a run has written down."""
    try:
        return sum('"split":"train"' in line for line in (run / "metrics.jsonl").open())
    except FileNotFoundError:
        return 0


def prepare(lookback, folder, log):
    peak = {}

    def at_each(memory, _):
        for kind in ("RssAnon", "VmRSS"):
            peak[kind] = max(peak.get(kind, 0), memory.get(kind, 0))

    seconds = watched([lookback, "data", "prepare", folder / "config.toml", "--out", folder / "prepared"], at_each, log)
    size = sum(file.stat().st_size for file in (folder / "prepared").iterdir())
    return {"seconds": seconds, "bytes": size, **peak}


def train(lookback, folder, name, settings, log):
    found = {"first": None, "RssAnon": 0, "RssFile": 0, "VmRSS": 0, "peak": 0}
    run = folder / name

    def at_each(memory, seconds):
        found["peak"] = max(found["peak"], memory.get("RssAnon", 0))
        n = updates(run)
        if n >= 1 and found["first"] is None:
            found["first"] = seconds
        if 20 <= n < 60:
            for kind in ("RssAnon", "RssFile", "VmRSS"):
                found[kind] = max(found[kind], memory.get(kind, 0))

    watched([lookback, "train", folder / "config.toml", "--run", run, "--dashboard", "none", *settings], at_each, log)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--unprepared", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--lookback", default="target/release/lookback")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("target/prepare"))
    arguments = parser.parse_args()
    print("| pairs | prepare, s | its memory, MiB | files, MiB | first update, s | own memory, MiB | at most | mapped, MiB |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    results = []
    for pairs in arguments.pairs:
        folder = arguments.out / str(pairs)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        (folder / "config.toml").write_text(CONFIG.format(pairs=pairs))
        made = prepare(arguments.lookback, folder, folder / "prepare.log")
        settings = ["--set", f"data.prepared={folder / 'prepared'}"]
        ways = [("prepared", made, train(arguments.lookback, folder, "run", settings, folder / "train.log"))]
        if pairs <= arguments.unprepared:
            ways.append(("not prepared", None, train(arguments.lookback, folder, "plain", [], folder / "plain.log")))
        for way, made, trained in ways:
            results.append({"pairs": pairs, "way": way, "prepare": made, "train": trained})
            own = [f"{made['seconds']:.1f}", f"{made['RssAnon']:.0f}", f"{made['bytes'] / 2**20:.1f}"] if made else ["-"] * 3
            rest = [f"{trained['first']:.2f}"] + [f"{trained[kind]:.0f}" for kind in ("RssAnon", "peak", "RssFile")]
            name = f"{pairs}" if made else f"{pairs}, not prepared"
            print("| " + " | ".join([name, *own, *rest]) + " |", flush=True)
        shutil.rmtree(folder / "prepared")
    (arguments.out / "results.json").write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
