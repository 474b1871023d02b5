#!/usr/bin/env python3
"""Reads the event files of a run with TensorBoard's own reader and compares every number with metrics.jsonl.

    pip install tensorboard
    python tests/clients/event_files.py --run runs/first
"""

import argparse
import json
from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

NO_NUMBERS = ("split", "update", "epoch", "seconds")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", required=True)
    run = Path(parser.parse_args().run)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for split in ("train", "valid"):
        expected = {}
        for line in lines:
            if line["split"] == split:
                for name, value in line.items():
                    if name not in NO_NUMBERS:
                        expected.setdefault(name, {})[line["update"]] = value
        reader = EventAccumulator(str(run / "tensorboard" / split), size_guidance={"scalars": 0}, purge_orphaned_data=True)
        reader.Reload()
        found = {tag: [(event.step, event.value) for event in reader.Scalars(tag)] for tag in reader.Tags()["scalars"]}
        assert found.keys() == expected.keys(), (found.keys(), expected.keys())
        for name, values in expected.items():
            assert [step for step, _ in found[name]] == list(values), f"{split} {name}: other steps"
            for step, value in found[name]:
                assert abs(value - values[step]) <= 1e-6 * abs(values[step]), f"{split} {name} {step}"
        n = sum(map(len, found.values()))
        print(f"{split}: {n} numbers under {len(found)} names are those of metrics.jsonl")


if __name__ == "__main__":
    main()
