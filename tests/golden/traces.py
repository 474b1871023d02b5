"""Recomputes in NumPy what `lookback explain --json` exports, for any run.

    lookback explain --run RUN "source text" --json > trace.json
    python3 tests/golden/traces.py RUN trace.json [RUN trace.json]...

From the exported numbers alone: weights from scores (softmax, windows, the Gaussian of local-p), contexts from weights and
values, probabilities from logits. With the run's model.safetensors: scores from queries and keys, for each kind of score,
and logits from readouts. Everything must agree to 1e-5 of the largest element. Needs Python 3.11 or newer and NumPy.
"""

import json
import pathlib
import struct
import sys
import tomllib

import numpy as np

TOLERANCE = 1e-5


def load_safetensors(path):
    """The tensors of a file of 32-bit floats, by name."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            values = np.frombuffer(data[8 + length + first : 8 + length + last], dtype="<f4")
            tensors[name] = values.reshape(entry["shape"]).astype(np.float64)
    return tensors


def load_run(folder):
    folder = pathlib.Path(folder)
    config = tomllib.loads((folder / "config.toml").read_text())["model"]
    pointer = folder / "best"
    name = (pointer if pointer.exists() else folder / "last").read_text().strip()
    return config, load_safetensors(folder / "checkpoints" / name / "model.safetensors")


def softmax(scores):
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


class Checker:
    """Compares, and remembers the largest difference of each kind."""

    def __init__(self):
        self.worst = {}

    def close(self, kind, found, expected):
        found, expected = np.asarray(found, dtype=np.float64), np.asarray(expected, dtype=np.float64)
        assert found.shape == expected.shape, f"{kind}: {found.shape} and {expected.shape}"
        difference = np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-3)
        self.worst[kind] = max(self.worst.get(kind, 0.0), difference)

    def report(self, name):
        for kind, difference in self.worst.items():
            print(f"{name:<40} {kind:<24} {difference:.1e}  {'agrees' if difference <= TOLERANCE else 'DISAGREES'}")
        return all(difference <= TOLERANCE for difference in self.worst.values())


def recurrent_scores(config, weights, row, memory):
    """The scores of a recurrent decoder's attention; memory["values"] are the encoder's states."""
    kind = config["attention"].get("score", {"kind": "additive"})["kind"]
    query, states = np.array(row["query"]), np.array(memory["values"])

    def part(name):
        return weights[f"attention.alignment.score.{name}"]

    if kind == "dot":
        return states @ query
    if kind == "scaled-dot":
        return states @ query / np.sqrt(len(query))
    if kind == "general":
        return (states @ part("key.weight")) @ query
    if kind == "additive":
        inner = query @ part("query.weight") + states @ part("key.weight") + part("key.bias")
        return (np.tanh(inner) @ part("vector"))[:, 0]
    if kind == "concat":
        pairs = np.concatenate([np.tile(query, (len(states), 1)), states], axis=1)
        return (np.tanh(pairs @ part("weight")) @ part("vector"))[:, 0]
    if kind == "cosine":
        norms = np.linalg.norm(states, axis=1) * np.linalg.norm(query)
        return np.exp(part("log_sharpness")[0]) * (states @ query) / norms
    if kind == "location":
        return (query @ part("position.weight"))[: len(states)]
    raise ValueError(f"unknown score {kind}")


def adds_positions(config, name):
    """Whether a position scheme adds to the scores of the attention `name`, beyond queries and keys."""
    side = config.get("decoder_positions") if name.startswith("decoder") else None
    kind = (side or config["positions"])["kind"]
    return name.endswith("self_attention") and kind in ("alibi", "t5", "shaw"), kind


def row_weights(config, row):
    scores = np.array(row["scores"])
    window = config.get("attention", {}).get("window", {"kind": "global"})
    if "center" not in row:
        return softmax(scores)
    distance = np.arange(1, len(scores) + 1) - row["center"]
    half = window["half_width"]
    weights = softmax(np.where(np.abs(distance) <= half, scores, -np.inf))
    if window["kind"] == "local-p":
        weights = weights * np.exp(-(distance**2) / (2 * (half / 2) ** 2))
    return weights


def check_row(check, config, weights, memories, row):
    check.close("weights from scores", row["weights"], row_weights(config, row))
    memory = memories[row["name"], row["head"]]
    n_seen = len(row["weights"])
    is_shaw = False
    if config["kind"] == "rnn":
        check.close("scores from states", row["scores"], recurrent_scores(config, weights, row, memory))
    else:
        adds, kind = adds_positions(config, row["name"])
        is_shaw = adds and kind == "shaw"
        if not adds:
            scores = np.array(memory["keys"])[:n_seen] @ np.array(row["query"]) / np.sqrt(len(row["query"]))
            check.close("scores from queries", row["scores"], scores)
    if not is_shaw:
        check.close("contexts from weights", row["context"], np.array(row["weights"]) @ np.array(memory["values"])[:n_seen])


def check_output(check, weights, step):
    readout = np.array(step["readout"])
    if "output.projection.weight" in weights:
        logits = readout @ weights["output.projection.weight"] + weights["output.projection.bias"]
    else:
        logits = weights["target_embedding.weight"] @ readout
    check.close("logits from readouts", step["logits"], logits)
    probabilities = softmax(np.array(step["logits"]))
    for choice in [step["chosen"], *step["top"]]:
        check.close("probabilities", choice["probability"], probabilities[choice["id"]])


def check_vectors(check, weights, trace):
    table = weights.get("source_embedding.weight", weights["target_embedding.weight"])
    for word in trace["source_words"]:
        check.close("word vectors", word["vector"], table[word["id"]])
        check.close("norms", word["norm"], np.linalg.norm(table[word["id"]]))


def main(arguments):
    if not arguments or len(arguments) % 2:
        sys.exit(__doc__)
    agrees = True
    for folder, path in zip(arguments[::2], arguments[1::2]):
        config, weights = load_run(folder)
        trace = json.loads(pathlib.Path(path).read_text())
        memories = {(memory["name"], memory["head"]): memory for memory in trace["memories"]}
        check = Checker()
        check_vectors(check, weights, trace)
        rows = list(trace["encoder"]["attention"])
        for step in trace["steps"]:
            rows += step["attention"] + step["self_attention"]
            check_output(check, weights, step)
        for row in rows:
            check_row(check, config, weights, memories, row)
        agrees &= check.report(pathlib.Path(folder).name)
    sys.exit(0 if agrees else 1)


if __name__ == "__main__":
    main(sys.argv[1:])
