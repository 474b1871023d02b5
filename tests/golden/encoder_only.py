#!/usr/bin/env python3
"""Writes encoder_only.json.gz: models that answer for each token of a source, for each step of a series of numbers, or once for all,
by PyTorch and transformers.

    pip install torch==2.15.0 numpy==2.4.6 transformers==5.23.0
    python tests/golden/encoder_only.py            # write the file anew
    python tests/golden/encoder_only.py --check    # compare the file with what the libraries say now

The layout of the file, the closed form of parameters and inputs, the loss and the checks of each model are those of
models.py; everything is computed in 64 bits. Each sentence is read alone, without padding. Answer t is read off the state of
token t, that of the end symbol from there on; a class off the state of the end symbol, and what follows it off a vector.
Masked words are read off as tags are; in front of the scores may stand a layer of its own. The second program of post-norm
models with attention, gelu and positions in the embeddings is transformers' BertEncoder with the same weights, or the whole
BertForMaskedLM where all of the model is BERT's; that of the others is the second program of positions.py and mixers.py.

Models of numbers are layer cases, since their inputs are numbers. Such a case's config has the model, the channels of source and
target, the lengths of the series, and the scale of the closed form "target" of the true numbers, which nothing is backpropagated
into. Series are read alone; what the input has beyond their lengths is to be ignored. The outputs are the predictions, zero
beyond the lengths, and the mean squared error by F.mse_loss. "errors" has NumPy's mean squared and mean absolute error after
the channels have been multiplied with "units".
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from transformers import BertConfig, BertForMaskedLM
from transformers.models.bert.modeling_bert import BertEncoder

import mixers
import models
from mixers import kind, mixer_shapes, recurrence
from models import Parameters, assert_equal, closed_form, feed_forward, linear, linear_shapes, prefixed, under
from positions import BATCHES, SEPARATE, SHARED, attend, rotary, shaw, t5


class EncoderOnly:
    def __init__(self, config: dict, vocabularies: dict):
        self.config = config
        d, n_heads = config["d_model"], config["n_heads"]
        norm = lambda name: {f"{name}.gamma": [d], f"{name}.beta": [d]}
        ffn = prefixed("feed_forward", models.feed_forward_shapes(d, config["d_feed_forward"], config["activation"]))
        ffn |= norm("feed_forward_residual.norm")
        self.shapes = {"source_embedding.weight": [vocabularies["source"], d]}
        made = min(len(self.mixers()), config["n_layers"]) if config["share_layers"] else config["n_layers"]
        scheme = config["positions"]
        for i in range(made):
            own = self.mixer(i) | ({"bidirectional": False} if config["is_causal"] else {})
            shapes = mixer_shapes(own, d, n_heads, "encoder")
            if scheme["kind"] == "shaw":
                table = [2 * scheme["max_distance"] + 1, d // n_heads]
                shapes |= {"attention.relative.key": table, "attention.relative.value": table}
            self.shapes |= prefixed(f"layers.{i}", shapes | norm("attention_residual.norm") | ffn)
        if config["norm_position"] == "pre":
            self.shapes |= norm("norm")
        if config.get("normalizes_embeddings"):
            self.shapes |= norm("embedding_norm")
        if config.get("transforms_output"):
            self.shapes |= linear_shapes("transform.inner", d, d) | norm("transform.norm")
        if config.get("tied_embeddings"):
            self.shapes["output.bias"] = [vocabularies["target"]]
        else:
            self.shapes |= linear_shapes("output.projection", d, vocabularies["target"])
        if config["output"] == "class":
            self.shapes["end"] = [d]
        if scheme["kind"] == "learned":
            self.shapes["position.learned.weight"] = [scheme["max_len"], d]
        if scheme["kind"] == "t5":
            self.shapes["position.table"] = [scheme["n_buckets"], n_heads]

    def mixers(self) -> list:
        mixers = self.config["mixer"]
        return mixers if isinstance(mixers, list) else [mixers]

    def mixer(self, i: int) -> dict:
        return self.mixers()[i % len(self.mixers())]

    def norm(self, x: torch.Tensor, p: dict, name: str) -> torch.Tensor:
        epsilon = self.config.get("norm_epsilon", 1e-5)
        return F.layer_norm(x, x.shape[-1:], p[f"{name}.gamma"], p[f"{name}.beta"], epsilon)

    def embedded(self, p: Parameters, source: list) -> torch.Tensor:
        config = self.config
        scale = math.sqrt(config["d_model"]) if config.get("scales_embeddings", True) else 1.0
        x = F.embedding(torch.tensor([source]), p["source_embedding.weight"]) * scale
        if config["positions"]["kind"] == "sinusoidal":
            x = x + models.sinusoids(0, len(source), config["d_model"])
        if config["positions"]["kind"] == "learned":
            x = x + p["position.learned.weight"][: len(source)]
        return self.norm(x, p, "embedding_norm") if config.get("normalizes_embeddings") else x

    def states(self, p: Parameters, source: list, other: bool) -> torch.Tensor:
        config, scheme = self.config, self.config["positions"]
        n_heads, is_pre, length = config["n_heads"], config["norm_position"] == "pre", len(source)
        x = self.embedded(p, source)
        hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
        hidden = (hidden if config["is_causal"] else torch.zeros_like(hidden))[None, None]

        def residual(layer: dict, name: str, x: torch.Tensor, sublayer) -> torch.Tensor:
            norm = lambda y: self.norm(y, layer, f"{name}_residual.norm")
            return x + sublayer(norm(x)) if is_pre else norm(x + sublayer(x))

        def mix(layer: dict, mixer: dict):
            def run(x):
                x = mixers.convolved(layer["convolution.weight"], x, other) if "convolution" in mixer else x
                if mixer["kind"] == "attention":
                    own, table, causal = under(layer, "attention"), p.get("position.table"), config["is_causal"]
                    return attend(own, (n_heads, n_heads), x, x, hidden, scheme, table, other, causal)
                return recurrence(under(layer, "recurrence"), mixer, n_heads, x, [length], other)

            return run

        for i in range(config["n_layers"]):
            layer = under(p, f"layers.{i % len(self.mixers()) if config['share_layers'] else i}")
            x = residual(layer, "attention", x, mix(layer, self.mixer(i)))
            x = residual(layer, "feed_forward", x, lambda y: feed_forward(under(layer, "feed_forward"), config["activation"], y))
        return (self.norm(x, p, "norm") if is_pre else x)[0]

    def settings(self, **more) -> BertConfig:
        config = self.config
        settings = BertConfig(
            hidden_size=config["d_model"],
            num_hidden_layers=config["n_layers"],
            num_attention_heads=config["n_heads"],
            intermediate_size=config["d_feed_forward"],
            hidden_act="gelu",
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            layer_norm_eps=config.get("norm_epsilon", 1e-5),
            **more,
        )
        settings._attn_implementation = "eager"
        return settings

    def bert_weights(self, p: Parameters) -> dict:
        config, d, weights = self.config, self.config["d_model"], {}
        for i in range(config["n_layers"]):
            own, theirs = under(p, f"layers.{i}"), f"layer.{i}"
            packed = own["attention.query_key_value.weight"].T, own["attention.query_key_value.bias"]
            for k, name in enumerate(("query", "key", "value")):
                for part, value in zip(("weight", "bias"), packed):
                    weights[f"{theirs}.attention.self.{name}.{part}"] = value[k * d : (k + 1) * d]
            for name, ours in (
                ("attention.output.dense", "attention.output"),
                ("intermediate.dense", "feed_forward.inner"),
                ("output.dense", "feed_forward.outer"),
            ):
                weights[f"{theirs}.{name}.weight"], weights[f"{theirs}.{name}.bias"] = own[f"{ours}.weight"].T, own[f"{ours}.bias"]
            for name, ours in (("attention.output", "attention_residual"), ("output", "feed_forward_residual")):
                weights[f"{theirs}.{name}.LayerNorm.weight"] = own[f"{ours}.norm.gamma"]
                weights[f"{theirs}.{name}.LayerNorm.bias"] = own[f"{ours}.norm.beta"]
        return weights

    def bert(self, p: Parameters, source: list) -> torch.Tensor:
        """The same states by BERT's layers."""
        library = BertEncoder(self.settings()).double()
        return torch.func.functional_call(library, self.bert_weights(p), (self.embedded(p, source),)).last_hidden_state[0]

    def whole_bert(self, p: Parameters, source: list, n: int) -> torch.Tensor:
        """The same logits by BERT as a whole: `[n, vocab]`."""
        table, positions = p["source_embedding.weight"], p["position.learned.weight"]
        settings = self.settings(vocab_size=len(table), max_position_embeddings=len(positions), type_vocab_size=1)
        library = BertForMaskedLM(settings).double()
        weights = prefixed("bert.encoder", self.bert_weights(p)) | {
            "bert.embeddings.word_embeddings.weight": table,
            "bert.embeddings.position_embeddings.weight": positions,
            "bert.embeddings.token_type_embeddings.weight": torch.zeros(1, self.config["d_model"]).double(),
            "bert.embeddings.LayerNorm.weight": p["embedding_norm.gamma"],
            "bert.embeddings.LayerNorm.bias": p["embedding_norm.beta"],
            "cls.predictions.transform.dense.weight": p["transform.inner.weight"].T,
            "cls.predictions.transform.dense.bias": p["transform.inner.bias"],
            "cls.predictions.transform.LayerNorm.weight": p["transform.norm.gamma"],
            "cls.predictions.transform.LayerNorm.bias": p["transform.norm.beta"],
            "cls.predictions.decoder.weight": table,
            "cls.predictions.decoder.bias": p["output.bias"],
            "cls.predictions.bias": p["output.bias"],
        }
        logits = torch.func.functional_call(library, weights, (torch.tensor([source]),)).logits[0]
        return logits[[min(t, len(source) - 1) for t in range(n)]]

    def answers(self, p: Parameters, states: torch.Tensor, n: int) -> torch.Tensor:
        """`[n, vocab]`."""
        if self.config["output"] == "class":
            # An answer of one word alone has no part of the end in it, but the gradient wants a path.
            read = [states[-1] + 0 * p["end"]] + [p["end"]] * (n - 1)
        else:
            read = [states[min(t, len(states) - 1)] for t in range(n)]
        read = torch.stack(read)
        if self.config.get("transforms_output"):
            inner = linear(read, p, "transform.inner")
            active = F.relu(inner) if self.config["activation"] == "relu" else F.gelu(inner)
            if self.config["activation"] == "relu":
                models.KINKS.append(inner.detach().abs().min().item())
            read = self.norm(active, p, "transform.norm")
        if self.config.get("tied_embeddings"):
            return F.linear(read, p["source_embedding.weight"], p["output.bias"])
        return linear(read, p, "output.projection")

    def batch(self, p: Parameters, states, source: list, target: list) -> torch.Tensor:
        return self.rows(lambda one, n: self.answers(p, states(one), n), source, target)

    def rows(self, answers, source: list, target: list) -> torch.Tensor:
        rows = [answers(one, len(other)) for one, other in zip(source, target)]
        longest = max(map(len, target))
        return torch.stack([F.pad(row, (0, 0, 0, longest - len(row))) for row in rows])

    def logits(self, p: Parameters, source: list, target: list) -> torch.Tensor:
        return self.batch(p, lambda s: self.states(p, s, False), source, target)

    def by_other_means(self, p: Parameters, source: list, target: list) -> torch.Tensor:
        config = self.config
        in_embeddings = config["positions"]["kind"] in ("sinusoidal", "learned", "none")
        has_attention = all(mixer == kind("attention") for mixer in self.mixers())
        if config.get("tied_embeddings"):
            return self.rows(lambda s, n: self.whole_bert(p, s, n), source, target)
        if config["norm_position"] == "post" and in_embeddings and has_attention and not config["is_causal"]:
            return self.batch(p, lambda s: self.bert(p, s), source, target)
        return self.batch(p, lambda s: self.states(p, s, True), source, target)


def model_cases() -> list[dict]:
    attention, none = kind("attention"), {"kind": "none"}
    rows = [
        # name, output, causal, mixer, positions, layers, shared, norm position, activation, batch
        ("bert", "tags", False, attention, {"kind": "learned", "max_len": 8}, 2, False, "post", "gelu", 0),
        ("bert-class", "class", False, attention, {"kind": "sinusoidal"}, 1, False, "post", "gelu", 1),
        ("rotary-causal", "tags", True, attention, rotary(100.0), 2, True, "pre", "relu", 0),
        ("t5", "tags", False, attention, t5(6, 5), 1, False, "pre", "gelu", 1),
        ("shaw-causal-class", "class", True, attention, shaw(2), 1, False, "pre", "gelu", 0),
        ("lstm", "tags", False, kind("lstm"), none, 1, False, "pre", "gelu", 0),
        ("lstm-causal-class", "class", True, kind("lstm"), none, 1, False, "post", "gelu", 1),
        ("gru-forward", "tags", False, kind("gru", bidirectional=False), none, 1, False, "pre", "gelu", 1),
        ("delta-attention", "tags", False, [kind("delta", convolution=2), attention], none, 2, False, "pre", "gelu", 0),
        ("min-gru-attention-causal", "tags", True, [kind("min-gru"), attention], none, 2, False, "pre", "gelu-tanh", 1),
    ]
    cases = []
    for name, output, is_causal, mixer, positions, n_layers, shared, norm_position, activation, batch in rows:
        config = {
            "kind": "encoder-only",
            "output": output,
            "is_causal": is_causal,
            "d_model": 8,
            "d_feed_forward": 7,
            "n_heads": 2,
            "n_layers": n_layers,
            "share_layers": shared,
            "mixer": mixer,
            "dropout_rate": 0.0,
            "norm_position": norm_position,
            "norm": "layer",
            "activation": activation,
            "positions": positions,
        }
        case = {"name": f"encoder-only/{name}", "config": config, "vocabularies": SEPARATE, "batch": BATCHES[batch]}
        cases.append(models.model_case(case, EncoderOnly, 1.0))
    return cases + masked_cases(cases[0]["config"])


def masked_cases(like: dict) -> list[dict]:
    """BERT as a whole, and a model with parts of it; an epsilon that is seen."""
    masked = like | {"output": "masked-words", "transforms_output": True, "norm_epsilon": 0.01}
    bert = masked | {"scales_embeddings": False, "normalizes_embeddings": True, "tied_embeddings": True}
    mixers = [kind("attention"), kind("lstm")]
    other = masked | {"norm_position": "pre", "activation": "relu", "mixer": mixers, "positions": rotary(100.0)}
    rows = [("masked-bert", bert, 0), ("masked-lstm", other, 1)]
    cases = []
    for name, config, batch in rows:
        case = {"name": f"encoder-only/{name}", "config": config, "vocabularies": SHARED, "batch": BATCHES[batch]}
        cases.append(models.model_case(case, EncoderOnly, 1.0))
    return cases


class Values(EncoderOnly):
    """Reads and answers numbers; `vocabularies` has the channels."""

    def __init__(self, config: dict, vocabularies: dict):
        super().__init__(config, vocabularies)
        self.shapes["source_embedding.bias"] = [config["d_model"]]

    def embedded(self, p: Parameters, source: torch.Tensor) -> torch.Tensor:
        x = linear(source[None], p, "source_embedding")
        if self.config["positions"]["kind"] == "sinusoidal":
            x = x + models.sinusoids(0, len(source), self.config["d_model"])
        return x

    def predictions(self, p: Parameters, source: torch.Tensor, by_other_means: bool) -> torch.Tensor:
        """`[len, channels]`."""
        is_bert = self.config["norm_position"] == "post" and not self.config["is_causal"]
        if by_other_means and is_bert and self.mixers() == [kind("attention")]:
            states = self.bert(p, source)
        else:
            states = self.states(p, source, by_other_means)
        return linear(states, p, "output.projection")


def value_cases() -> list[dict]:
    attention, none = kind("attention"), {"kind": "none"}
    sinusoidal = {"kind": "sinusoidal"}
    rows = [
        # name, causal, mixer, positions, layers, norm position, channels of source and target, lengths
        ("bert", False, attention, sinusoidal, 2, "post", (1, 1), [4, 6, 1]),
        ("rotary-causal", True, attention, rotary(100.0), 2, "pre", (2, 1), [5, 2]),
        ("lstm", False, kind("lstm"), none, 1, "pre", (1, 3), [3, 6]),
        ("gru-causal", True, kind("gru"), none, 1, "post", (3, 2), [6, 1, 4]),
        ("min-gru-attention-causal", True, [kind("min-gru"), attention], none, 2, "pre", (2, 2), [2, 5]),
    ]
    cases = []
    for name, is_causal, mixer, positions, n_layers, norm_position, (n_source, n_target), lengths in rows:
        config = {
            "kind": "encoder-only",
            "output": "values",
            "is_causal": is_causal,
            "d_model": 8,
            "d_feed_forward": 7,
            "n_heads": 2,
            "n_layers": n_layers,
            "share_layers": False,
            "mixer": mixer,
            "dropout_rate": 0.0,
            "norm_position": norm_position,
            "norm": "layer",
            "activation": "gelu",
            "positions": positions,
        }
        channels = {"source": n_source, "target": n_target}
        model = Values(config, channels)
        batch, longest, scale = len(lengths), max(lengths), 4.0
        truth = closed_form("target", [batch, longest, n_target], scale)
        units = [2.0 ** (1 - channel) for channel in range(n_target)]

        def run(x, p, model=model, lengths=lengths, truth=truth):
            read = lambda other: [model.predictions(p, row[:n], other) for row, n in zip(x["source"], lengths)]
            real = torch.cat([row[:n] for row, n in zip(truth, lengths)])
            total = lambda rows: F.mse_loss(torch.cat(rows), real)
            assert_equal(f"{name}: other means", torch.cat(read(False)), torch.cat(read(True)))
            found, expected = (models.gradients(total(read(other)), p) for other in (True, False))
            for path in p:
                assert_equal(f"{name}: other means, gradient of {path}", found[path], expected[path])
            rows = read(False)
            padded = [F.pad(row, (0, 0, 0, truth.shape[1] - len(row))) for row in rows]
            return {"predictions": torch.stack(padded), "loss": total(rows).reshape(1)}

        given = {"model": config, "channels": channels, "lengths": lengths, "target_scale": scale, "units": units}
        case = models.layer_case(f"values/{name}", "values", given, {"source": ([batch, longest, n_source], 4.0)}, model.shapes, run)
        found = np.array(case["outputs"][0]["values"]).reshape(truth.shape)
        gaps = np.concatenate([(f - t)[:n] for f, t, n in zip(found, truth.numpy(), lengths)]) * np.array(units)
        errors = {"mse": np.mean(np.square(gaps)), "mae": np.mean(np.abs(gaps))}
        case["config"] = given | {"errors": {key: float(f"{value:.9g}") for key, value in errors.items()}}
        cases.append(case)
    return cases


if __name__ == "__main__":
    import transformers

    models.write_or_check("encoder_only", __doc__, model_cases, value_cases, transformers=transformers.__version__)
