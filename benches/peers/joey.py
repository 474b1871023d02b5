"""Updates of JoeyNMT's models and of ours in turn: the same sizes, batch and optimizer. Its layers differ in places (an
attentional vector behind Bahdanau's attention, for one), so that weights are not the same: what has to agree are the
parameters, about, and the loss of the untrained model, near ln 8000.

    pip install joeynmt==2.3.0 importlib_metadata
    cargo bench --profile release --bench peers --no-run
    python benches/peers/joey.py [CASE ...]          # a, b-base and c-bahdanau-32, if none is named
"""

import environment

if __name__ == "__main__":
    environment.start()

import argparse
import logging
import math
import statistics
import sys
from pathlib import Path

import torch
from joeynmt.model import build_model
from joeynmt.vocabulary import Vocabulary

import models
import peers

SMOOTHING = 0.1
# JoeyNMT's loss is a divergence: the cross-entropy without the entropy of the smoothed targets.
ENTROPY = -((1 - SMOOTHING) * math.log(1 - SMOOTHING) + SMOOTHING * math.log(SMOOTHING / (peers.VOCABULARY - 2)))
# Its recurrent encoder reads both ways or not at all, which leaves out our LSTM.
WANTED = ["a", "b-base", "c-bahdanau-32"]
ROUNDS, UPDATES = 4, 4


def vocabulary():
    """Ours: four special symbols, then words."""
    places = {"pad": models.PAD, "bos": 1, "eos": 2, "unk": 3}
    names = sorted(places, key=places.get)
    # Its constructor puts the unknown word first; ours stands elsewhere, which the rest of it does not mind.
    made = Vocabulary.__new__(Vocabulary)
    made.specials, made.lang_tags, made._stoi, made._itos = [f"<{name}>" for name in names], [], {}, []
    made.add_tokens(made.specials + [f"w{i}" for i in range(peers.VOCABULARY - len(names))])
    for name, place in places.items():
        setattr(made, f"{name}_index", place)
    made.sep_index = None
    return made


def config(ours):
    """Our model in JoeyNMT's words."""
    rate = ours["dropout_rate"]
    if ours["kind"] == "transformer":
        side = {
            "type": "transformer",
            "embeddings": {"embedding_dim": ours["d_model"], "scale": True, "dropout": rate},
            "hidden_size": ours["d_model"],
            "ff_size": ours["d_feed_forward"],
            "num_layers": ours["n_encoder_layers"],
            "num_heads": ours["n_heads"],
            "dropout": rate,
            "layer_norm": "pre",
        }
        return {"encoder": side, "decoder": dict(side)}
    side = {
        "type": "recurrent",
        "rnn_type": ours["cell"],
        "embeddings": {"embedding_dim": ours["d_embedding"], "scale": False, "dropout": rate},
        "hidden_size": ours["d_hidden"],
        "num_layers": 1,
        "dropout": rate,
    }
    encoder = {**side, "bidirectional": ours["directions"] == "both"}
    kind = ours["attention"]["kind"]
    decoder = {**side, "attention": kind, "input_feeding": kind == "luong", "init_hidden": "bridge"}
    return {"encoder": encoder, "decoder": decoder}


class Joey:
    def __init__(self, ours, batch):
        words = vocabulary()
        self.model = build_model(config(ours), words, words)
        self.model.loss_function = ("crossentropy", SMOOTHING)
        self.batch = batch
        self.adam = peers.adam(self.model)
        lengths = (batch.source != models.PAD).sum(1)
        self.inputs = {
            "src": batch.source,
            "src_length": lengths,
            "src_mask": (batch.source != models.PAD).unsqueeze(1),
            "trg_input": batch.target_input,
            "trg": batch.target,
            "trg_mask": (batch.target != models.PAD).unsqueeze(1),
        }
        self.n_tokens = int((batch.target != models.PAD).sum())

    def loss(self):
        return self.model(return_type="loss", **self.inputs)[0] / self.n_tokens

    def untrained(self):
        self.model.eval()
        with torch.no_grad():
            return self.loss().item() + ENTROPY

    def updates(self, n):
        return peers.updates(self.model, self.adam, self.loss, n)


def main():
    logging.disable(logging.INFO)
    torch.set_num_threads(2)
    parser = argparse.ArgumentParser(description=__doc__, parents=[environment.options])
    parser.add_argument("cases", nargs="*", default=WANTED)
    known = peers.cases(Path())
    for name in parser.parse_args().cases:
        ours_config, batch = known[name]
        source, target = batch()
        case = {"model": ours_config, "vocabulary": peers.VOCABULARY, "shared": False, "source": source, "target": target}
        ours, joey = peers.Ours(case, "flex"), Joey(ours_config, models.Batch(source, target))
        ours.weights()
        n_joey = sum(p.numel() for p in joey.model.parameters())
        losses = [ours.ask("loss"), joey.untrained()]
        print(f"{name}: {ours.parameters} parameters, JoeyNMT's {n_joey}; loss {losses[0]:.2f} and {losses[1]:.2f}")
        if max(abs(loss - math.log(peers.VOCABULARY)) for loss in losses) > 0.1:
            sys.exit("a loss is not that of an untrained model")
        turns = {"ours flex": lambda n: ours.ask(f"update {n}"), "JoeyNMT": joey.updates}
        seconds = {label: [] for label in turns}
        for run in turns.values():
            run(3)
        for _ in range(ROUNDS):
            for label, run in turns.items():
                seconds[label] += run(UPDATES)
        ratio = statistics.median(seconds["JoeyNMT"]) / statistics.median(seconds["ours flex"])
        for label, values in seconds.items():
            print(f"  {label:22} {peers.spread(values)} s")
        print(f"  {ratio:.2f} x", flush=True)
        ours.close()


if __name__ == "__main__":
    main()
