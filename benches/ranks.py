#!/usr/bin/env python3
"""What ranks cost: seconds that an update waits for the sum of gradients, on one machine, and what networks would make of it.

    cargo build --release --features mpi
    benches/ranks.py target/release/lookback

Each config is trained for a few updates of four parts by 1, 2 and 4 ranks on loopback. The second table is a model on paper, not a
measurement: bytes that a rank sends, over what its network carries.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile

PARTS = 4
MIB = 2**20
NETWORKS = [1, 10, 100]  # Gbit/s


def train(program, config, ranks, updates, sets, folder):
    run = os.path.join(folder, f"{ranks}")
    command = [program, "train", config, "--run", run, "--dashboard", "none"]
    for key in [f"training.max_updates={updates}", "training.validate_every=100000", "training.save_every=100000",
                "training.sample_size=1", "training.log_every=1", *sets]:
        command += ["--set", key]
    # A run has the same number of parts whatever begins it.
    command += ["--set", f"training.accumulation={PARTS // ranks}"]
    if ranks > 1:
        command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks), *command, "--threads", "1"]
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    with open(os.path.join(run, "metrics.jsonl"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    # The first updates warm up.
    updates = [line for line in lines if line["split"] == "train"][2:]
    seconds = statistics.median(line["tokens"] / line["tokens_per_second"] for line in updates)
    waited = statistics.median(line.get("sum_seconds", 0.0) for line in updates)
    with open(os.path.join(run, "environment.json"), encoding="utf-8") as file:
        parameters = json.load(file)["n_parameters"]
    return parameters, seconds, waited


def sent(parameters, ranks, parts):
    """Bytes that a rank sends in an update: a stretch of each of its parts to each other rank, and its own sum to all."""
    stretch = 4 * parameters / ranks
    return (ranks - 1) * stretch * (parts / ranks) + (ranks - 1) * stretch


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--configs", nargs="+", default=["config/numbers-transformer.toml", "config/vaswani-2017-base.toml"])
    parser.add_argument("--updates", type=int, default=10)
    parser.add_argument("--set", action="append", default=[], help="a key of every config")
    arguments = parser.parse_args()
    print("| config | parameters | ranks | an update, s | waited for the sum, s | sent by a rank, MiB |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    measured = []
    for config in arguments.configs:
        with tempfile.TemporaryDirectory() as folder:
            for ranks in [1, 2, 4]:
                parameters, seconds, waited = train(arguments.program, config, ranks, arguments.updates, arguments.set, folder)
                name = os.path.basename(config).removesuffix(".toml")
                mib = sent(parameters, ranks, PARTS) / MIB
                print(f"| {name} | {parameters / 1e6:.1f} M | {ranks} | {seconds:.2f} | {waited:.3f} | {mib:.0f} |", flush=True)
                if ranks == 1:
                    measured.append((name, parameters))
    print()
    print("On paper, 8 ranks on 8 machines, one part of an update each: seconds for what a rank sends, nothing hidden behind the next part.")
    print()
    print("| model | parameters | sent by a rank, MiB | " + " | ".join(f"{n} Gbit/s" for n in NETWORKS) + " |")
    print("| --- | ---: | ---: | " + " | ".join("---:" for _ in NETWORKS) + " |")
    for name, parameters in [*measured, ("a model of 200 M", 200e6)]:
        total = sent(parameters, 8, 8)
        times = " | ".join(f"{8 * total / (1e9 * n):.3f}" for n in NETWORKS)
        print(f"| {name} | {parameters / 1e6:.1f} M | {total / MIB:.0f} | {times} |")


if __name__ == "__main__":
    main()
