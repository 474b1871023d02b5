"""D: real sentences and trained models: the model of a run folder here and with somebody else. A Transformer is converted to
CTranslate2; a recurrent model with Bahdanau's attention runs in PyTorch, a step at a time.

    cargo bench --profile release --bench peers --no-run
    python benches/peers/sentences.py --run runs/multi30k-de-en-transformer --text DATA/test_2016_flickr.de.gz

Prints the milliseconds of one sentence, each translated when the one before is there, and sentences a second in batches of 32. Greedy,
all that compute in floats should write the same words; with a beam, rules of ending and of length differ.

CTranslate2 gets a thread for one sentence and two workers of one thread for batches, which is when it is fastest: two threads
in one worker took eight times as long here.
"""

import environment

if __name__ == "__main__":
    environment.start()

import argparse
import gzip
import math
import statistics
import sys
import tempfile
import time
import tomllib
from pathlib import Path

import ctranslate2
import numpy as np
import torch
from ctranslate2.specs import transformer_spec
from torch.nn.utils import rnn

import models
import peers
from models import BOS, EOS, PAD

LONGEST = 80


def ctranslate(config, weights, folder, compute_type):
    """A Transformer with its norms before the layers, sinusoidal positions and one table of words, in CTranslate2."""
    n_layers = (config["n_encoder_layers"], config["n_decoder_layers"])
    spec = transformer_spec.TransformerSpec.from_config(n_layers, config["n_heads"], pre_norm=True)
    numpy = {name: value.numpy() for name, value in weights.items()}
    table = numpy["target_embedding.weight"]
    positions = models.sinusoids(512, table.shape[1]).numpy()

    def norm(spec, name):
        spec.gamma, spec.beta = numpy[f"{name}.gamma"], numpy[f"{name}.beta"]

    def linear(spec, name):
        spec.weight, spec.bias = np.ascontiguousarray(numpy[f"{name}.weight"].T), numpy[f"{name}.bias"]

    def attention(spec, name, residual, parts):
        norm(spec.layer_norm, f"{residual}.norm")
        for layer, part in zip(spec.linear, parts):
            linear(layer, f"{name}.{part}")

    for side, own, residual in [("encoder", "attention", "attention"), ("decoder", "self_attention", "self")]:
        part = getattr(spec, side)
        words = part.embeddings[0] if side == "encoder" else part.embeddings
        words.weight, part.scale_embeddings, part.position_encodings.encodings = table, True, positions
        norm(part.layer_norm, f"{side}_norm")
        for i, layer in enumerate(part.layer):
            name = f"{side}.{i}"
            attention(layer.self_attention, f"{name}.{own}", f"{name}.{residual}_residual", ["query_key_value", "output"])
            if side == "decoder":
                cross = ["query", "key_value", "output"]
                attention(layer.attention, f"{name}.cross_attention", f"{name}.cross_residual", cross)
            norm(layer.ffn.layer_norm, f"{name}.feed_forward_residual.norm")
            linear(layer.ffn.linear_0, f"{name}.feed_forward.inner")
            linear(layer.ffn.linear_1, f"{name}.feed_forward.outer")
    spec.decoder.projection.weight = table
    words = [f"w{i}" for i in range(len(table))]
    words[PAD], words[BOS], words[EOS] = "<pad>", "<s>", "</s>"
    spec.register_source_vocabulary(words)
    spec.register_target_vocabulary(words)
    spec.config.decoder_start_token, spec.config.bos_token, spec.config.eos_token = "<s>", "<s>", "</s>"
    spec.config.unk_token = "w3"
    spec.config.add_source_eos = False
    spec.validate()
    spec.optimize(quantization="int8" if compute_type == "int8" else None)
    Path(folder).mkdir()
    spec.save(folder)
    workers = {
        n: ctranslate2.Translator(folder, "cpu", compute_type=compute_type, intra_threads=1, inter_threads=n) for n in [1, 2]
    }
    number = {word: i for i, word in enumerate(words)}

    def run(source, beam, batch):
        tokens = [[words[word] for word in sentence] + ["</s>"] for sentence in source]
        options = {"beam_size": beam, "max_decoding_length": LONGEST}
        start = time.perf_counter()
        if batch == 0:
            found = [workers[1].translate_batch([sentence], **options)[0] for sentence in tokens]
        else:
            found = workers[2].translate_batch(tokens, max_batch_size=batch, **options)
        seconds = time.perf_counter() - start
        return seconds, [[number[word] for word in result.hypotheses[0]] for result in found]

    return run


class Recurrent(models.Rnn):
    """The recurrent model, which writes."""

    def __init__(self, config, weights):
        if "output_projection.weight" in weights:
            # Words are scored by their embeddings, after a projection: one matrix for both.
            table = weights["target_embedding.weight"].T
            weights = weights | {
                "output.projection.weight": weights["output_projection.weight"] @ table,
                "output.projection.bias": weights["output_projection.bias"] @ table,
            }
        super().__init__(config, weights)
        self.eval()

    def encode(self, sentences):
        source = models.pad([sentence + [EOS] for sentence in sentences])
        lengths = (source != PAD).sum(1)
        pack = rnn.pack_padded_sequence(self.source(source), lengths, batch_first=True, enforce_sorted=False)
        states, last = self.encoder(pack)
        states, _ = rnn.pad_packed_sequence(states, batch_first=True)
        hidden = torch.tanh(self.bridges[0](torch.cat(list(last), -1)))
        return states, self.key(states), (source == PAD)[:, :, None], hidden

    def next(self, words, hidden, states, keys, padding):
        embedded = self.target(words)
        scores = torch.tanh(keys + self.query(hidden)[:, None]) @ self.vector
        weights = scores.masked_fill(padding, -math.inf).softmax(1)
        context = (weights.transpose(1, 2) @ states)[:, 0]
        hidden, _ = self.step(self.word_input(embedded) + self.context_input(context), hidden, None)
        read = torch.maximum(*self.deep(torch.cat([hidden, embedded, context], -1)).chunk(2, -1))
        return self.output(read), hidden

    def search(self, sentences, beam):
        states, keys, padding, hidden = (part.repeat_interleave(beam, 0) for part in self.encode(sentences))
        n, first = len(sentences), torch.arange(len(sentences))[:, None] * beam
        scores = torch.full((n, beam), -math.inf)
        scores[:, 0] = 0.0
        written = torch.full((n * beam, 1), BOS)
        ended = torch.zeros(n * beam, dtype=torch.bool)
        lengths = torch.zeros(n * beam)
        for _ in range(LONGEST):
            logits, hidden = self.next(written[:, -1], hidden, states, keys, padding)
            log_p = logits.log_softmax(-1)
            # A sentence that has ended goes on as it is.
            log_p[ended] = -math.inf
            log_p[ended, EOS] = 0.0
            scores, best = (scores[:, :, None] + log_p.view(n, beam, -1)).flatten(1).topk(beam)
            rows = (first + best // log_p.shape[1]).flatten()
            words = (best % log_p.shape[1]).flatten()
            written, hidden = torch.cat([written[rows], words[:, None]], 1), hidden[rows]
            lengths = lengths[rows] + (~ended[rows]).float()
            ended = ended[rows] | (words == EOS)
            if ended.all():
                break
        best = first[:, 0] + (scores / ((5 + lengths.view(n, beam)) / 6)).argmax(1)
        return [row[1:].tolist() for row in written[best]]

    def run(self, source, beam, batch):
        start = time.perf_counter()
        order = sorted(range(len(source)), key=lambda i: len(source[i]))
        batch = max(batch, 1)
        found = {}
        with torch.no_grad():
            for i in range(0, len(order), batch):
                part = order[i : i + batch]
                found |= dict(zip(part, self.search([source[k] for k in part], beam)))
        seconds = time.perf_counter() - start
        until_end = lambda row: row[: row.index(EOS)] if EOS in row else row
        return seconds, [until_end(found[i]) for i in range(len(source))]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, parents=[environment.options]
    )
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--text", type=Path, required=True, help="a sentence a line, .gz or not")
    parser.add_argument("--sentences", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(2)
    opened = gzip.open(options.text, "rt") if options.text.suffix == ".gz" else open(options.text)
    with opened as lines:
        text = [line.strip() for line, _ in zip(lines, range(options.sentences))]
    config = tomllib.loads((options.run / "config.toml").read_text())["model"]
    ours = peers.Ours({"run": str(options.run.resolve()), "text": text}, "flex")
    weights, source = ours.weights(), ours.ask("source")

    def own(kind):
        def run(source, beam, batch):
            found = ours.ask(f"decode {beam} {batch} 0 {kind}")
            return found["seconds"], found["words"]

        return run

    sides = {"ours": own("float32"), "ours int8": own("int8")}
    sides |= {"ours, stops early": own("float32 early"), "ours int8, stops early": own("int8 early")}
    with tempfile.TemporaryDirectory() as folder:
        if config["kind"] == "transformer":
            for kind in ["float32", "int8"]:
                sides[f"CTranslate2 {kind}"] = ctranslate(config, weights, f"{folder}/{kind}", kind)
        else:
            sides["PyTorch"] = Recurrent(config, weights).run
        for batch, beam in [(0, 1), (32, 1), (0, 5), (32, 5)]:
            seconds, written = {label: [] for label in sides}, {}
            for _ in range(1 + options.rounds):
                for label, run in sides.items():
                    if beam == 1 and "early" in label:
                        continue
                    taken, written[label] = run(source, beam, batch)
                    seconds[label].append(taken)
            print(f"beam {beam}, " + ("batches of 32:" if batch else "one sentence at a time:"))
            median = {label: statistics.median(values[1:]) for label, values in seconds.items() if values}
            for label, value in median.items():
                same = np.mean([a == b for a, b in zip(written["ours"], written[label])])
                rate = f"{len(source) / value:6.0f} a second" if batch else f"{1000 * value / len(source):6.1f} ms"
                print(f"  {label:22} {rate}  {median['ours'] / value:.2f} x ours  same words {same:.0%}")
            sys.stdout.flush()
    ours.close()


if __name__ == "__main__":
    main()
