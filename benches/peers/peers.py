"""The same work here and in PyTorch, in one go: same weights, same batch, same loss; then updates of both in turn.

    cargo bench --profile release --bench peers --no-run
    python benches/peers/peers.py [CASE ...]          # all cases, if none is named

What is printed for each case: the losses of the untrained model on both sides, which have to agree; the median seconds of an
update on each side, the lowest and the highest; and ratios of medians, theirs over ours.
"""

import environment

if __name__ == "__main__":
    environment.start()

import argparse
import contextlib
import gzip
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file

import models

ROOT = Path(__file__).resolve().parents[2]
VOCABULARY = 8000


def transformer(d, d_inner, n_heads, n_layers):
    return {
        "kind": "transformer",
        "d_model": d,
        "d_feed_forward": d_inner,
        "n_heads": n_heads,
        "n_encoder_layers": n_layers,
        "n_decoder_layers": n_layers,
        "dropout_rate": 0.1,
        "attention_dropout_rate": 0.1,
        "activation_dropout_rate": 0.1,
    }


BAHDANAU = {
    "kind": "rnn",
    "cell": "gru",
    "d_embedding": 256,
    "d_hidden": 256,
    "directions": "both",
    "attention": {"kind": "bahdanau", "score": {"kind": "additive", "d_attention": 256}},
    "readout": {"kind": "deep-output", "d_maxout": 256},
    "output": "projection",
    "dropout_rate": 0.1,
}
LUONG = {
    "kind": "rnn",
    "cell": "lstm",
    "d_embedding": 256,
    "d_hidden": 256,
    "directions": "forward",
    "attention": {"kind": "luong", "score": {"kind": "general"}, "input_feeding": True},
    "readout": {"kind": "state"},
    "output": "projection",
    "dropout_rate": 0.1,
}


def drawn(n, length):
    """Sentences of `length` tokens, end symbol included."""
    words = random.Random(1)
    sentence = lambda: [words.randrange(4, VOCABULARY) for _ in range(length - 1)]
    return [sentence() for _ in range(n)], [sentence() for _ in range(n)]


def multi30k(folder, n_tokens):
    """Neighbours by length from the captions, one word a token, as many as fill a batch."""
    lines = lambda side: gzip.decompress((folder / f"train.{side}.gz").read_bytes()).decode().splitlines()
    ids = {}
    tokens = lambda line: [4 + ids.setdefault(word, len(ids)) % (VOCABULARY - 4) for word in line.lower().split()]
    pairs = sorted(((tokens(a), tokens(b)) for a, b in zip(lines("de"), lines("en"))), key=lambda pair: len(pair[0]))
    middle = len(pairs) // 2
    batch = []
    while (len(batch) + 1) * (1 + max(len(s) for pair in pairs[middle : middle + len(batch) + 1] for s in pair)) <= n_tokens:
        batch.append(pairs[middle + len(batch)])
    return [pair[0] for pair in batch], [pair[1] for pair in batch]


def cases(data):
    return {
        "a": (transformer(256, 1024, 4, 3), lambda: drawn(32, 32)),
        "b-tiny": (transformer(128, 256, 4, 4), lambda: multi30k(data / "multi30k", 4096)),
        "b-base": (transformer(512, 2048, 8, 6), lambda: drawn(16, 32)),
        "c-bahdanau-32": (BAHDANAU, lambda: drawn(32, 32)),
        "c-bahdanau-128": (BAHDANAU, lambda: drawn(32, 128)),
        "c-luong-32": (LUONG, lambda: drawn(32, 32)),
        "c-luong-128": (LUONG, lambda: drawn(32, 128)),
    }


class Ours:
    """Our program, which waits for lines."""

    def __init__(self, case, backend):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        (self.path / "case.json").write_text(json.dumps(case))
        target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
        built = sorted((target / "release/deps").glob("peers-*"), key=lambda path: path.stat().st_mtime)
        built = [path for path in built if not path.suffix]
        if not built:
            sys.exit("not built: cargo bench --profile release --bench peers --no-run")
        command = [built[-1], self.path, backend, environment.simd()]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment.of_ours())

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"our side ended at: {line}")
        return json.loads(answer)

    def weights(self):
        self.parameters = self.ask("weights")
        return load_file(self.path / "weights.safetensors", device=str(torch.get_default_device()))

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.folder.cleanup()


def adam(model):
    return torch.optim.Adam(model.parameters(), 1e-4, betas=(0.9, 0.98), eps=1e-9)


def updates(model, adam, loss, n):
    """Seconds of each of `n` updates: forward, backward, clipping, Adam."""
    model.train()
    seconds = []
    for _ in range(n):
        start = time.perf_counter()
        adam.zero_grad(set_to_none=True)
        loss().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        if torch.get_default_device().type == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return seconds


class Theirs:
    """PyTorch: eager, in bfloat16 where autocast wants it, or compiled."""

    def __init__(self, config, weights, batch, mode):
        make = models.Transformer if config["kind"] == "transformer" else models.Rnn
        self.model, self.batch, self.mode = make(config, weights), batch, mode
        self.run = torch.compile(self.model) if mode == "compiled" else self.model
        self.adam = adam(self.model)

    def loss_of(self, logits):
        targets = self.batch.target.reshape(-1)
        return F.cross_entropy(logits.flatten(0, 1).float(), targets, ignore_index=models.PAD, label_smoothing=0.1)

    def loss(self):
        self.model.eval()
        with torch.no_grad():
            return self.loss_of(self.model(self.batch)).item()

    def training_loss(self):
        is_half = self.mode == "bf16"
        with torch.autocast(torch.get_default_device().type, torch.bfloat16) if is_half else contextlib.nullcontext():
            return self.loss_of(self.run(self.batch))

    def updates(self, n):
        return updates(self.model, self.adam, self.training_loss, n)


def spread(seconds):
    return f"{statistics.median(seconds):.3f} ({min(seconds):.3f} to {max(seconds):.3f})"


def update_case(name, config, batch, options):
    source, target = batch
    case = {"model": config, "vocabulary": VOCABULARY, "shared": False, "source": source, "target": target}
    sides = {}
    for backend in options.backends:
        sides[f"ours {backend}"] = Ours(case, backend)
    ours = list(sides.values())
    weights = ours[0].weights()
    peers = {mode: Theirs(config, weights, models.Batch(source, target), mode) for mode in options.modes}
    losses = {label: side.ask("loss") for label, side in sides.items()}
    losses |= {f"PyTorch {mode}": peer.loss() for mode, peer in peers.items() if mode == "eager"}
    n_tokens = sum(len(sentence) + 1 for sentence in target)
    longest = max(map(len, target)) + 1
    print(f"{name}: {ours[0].parameters} parameters, {len(source)} pairs, {n_tokens} target tokens, longest {longest}")
    print("  loss:", ", ".join(f"{label} {loss:.5f}" for label, loss in losses.items()))
    # A GPU sums in another order than a CPU, and some multiply with fewer bits unless told not to.
    if max(losses.values()) - min(losses.values()) > 2e-4:
        sys.exit("the sides do not compute the same")
    turns = {label: (lambda n, side=side: side.ask(f"update {n}")) for label, side in sides.items()}
    if options.plain:
        turns["ours flex, not fused"] = lambda n: sides["ours flex"].ask(f"update {n} plain")
    turns |= {f"PyTorch {mode}": peer.updates for mode, peer in peers.items()}
    seconds = {label: [] for label in turns}
    for run in turns.values():
        run(3)
    for _ in range(options.rounds):
        for label, run in turns.items():
            seconds[label] += run(options.updates)
    reference = statistics.median(seconds["PyTorch eager"]) if "PyTorch eager" in seconds else None
    for label, values in seconds.items():
        ratio = f"  {reference / statistics.median(values):.2f} x PyTorch eager" if reference else ""
        print(f"  {label:22} {spread(values)} s{ratio}")
    for side in ours:
        side.close()
    sys.stdout.flush()


def attention_case(options):
    """E: causal attention alone, forward and backward, 4 sentences, 8 heads of 64."""
    case = {"model": transformer(8, 8, 1, 1), "vocabulary": 8, "shared": False, "source": [[4]], "target": [[4]]}
    for length in [128, 256, 512, 1024, 2048, 4096]:
        ours = Ours(case, "flex")
        n = 5 if length <= 1024 else 2
        # The first time, before memory is kept.
        n_bytes = ours.ask(f"attention 4 {length} 8 64 1")["bytes"]
        seconds = {"ours": [], "fused": []}
        for _ in range(2):
            seconds["ours"] += ours.ask(f"attention 4 {length} 8 64 {n}")["seconds"]
            packed = torch.rand(4, length, 3 * 512)
            for _ in range(n):
                leaf = packed.clone().requires_grad_()
                start = time.perf_counter()
                split = lambda t: t.unflatten(-1, (8, 64)).transpose(1, 2)
                heads = F.scaled_dot_product_attention(*map(split, leaf.chunk(3, -1)), is_causal=True)
                heads.transpose(1, 2).flatten(-2).sum().backward()
                seconds["fused"].append(time.perf_counter() - start)
        ratio = statistics.median(seconds["fused"]) / statistics.median(seconds["ours"])
        print(
            f"attention {length}: ours {spread(seconds['ours'])} s, {n_bytes / 2**20:.0f} MiB; "
            f"PyTorch fused {spread(seconds['fused'])} s; {ratio:.2f} x"
        )
        ours.close()
        sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, parents=[environment.options]
    )
    parser.add_argument("cases", nargs="*", metavar="CASE", help="a, b-tiny, b-base, c-*, e")
    parser.add_argument("--data", type=Path, default=ROOT / "datasets", help="where multi30k/train.{de,en}.gz are")
    parser.add_argument("--backends", nargs="+", default=["flex"], help="ours, beside each other")
    parser.add_argument("--modes", nargs="+", default=["eager", "bf16"], choices=["eager", "bf16", "compiled"])
    parser.add_argument("--plain", action="store_true", help="ours without fused layers too")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=4, help="updates of a side before it is the next one's turn")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--torch-device", default="cpu", help="PyTorch's device: cpu or cuda")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.set_default_device(options.torch_device)
    torch.manual_seed(1)
    known = cases(options.data)
    wanted = options.cases or [*known, "e"]
    for name in wanted:
        if name == "e":
            attention_case(options)
        elif name in known:
            config, batch = known[name]
            update_case(name, config, batch(), options)
        else:
            parser.error(f"unknown case {name}; there are {', '.join([*known, 'e'])}")


if __name__ == "__main__":
    main()
