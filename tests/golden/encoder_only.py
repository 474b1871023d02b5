#!/usr/bin/env python3
"""Writes encoder_only.json.gz: models that answer for each token of a source, or once for all, by PyTorch and transformers.

    pip install torch==2.15.0 numpy==2.4.6 transformers==5.23.0
    python tests/golden/encoder_only.py            # write the file anew
    python tests/golden/encoder_only.py --check    # compare the file with what the libraries say now

The layout of the file, the closed form of parameters and inputs, the loss and the checks of each model are those of
models.py; everything is computed in 64 bits. Each sentence is read alone, without padding. Answer t is read off the state of
token t, that of the end symbol from there on; a class off the state of the end symbol, and what follows it off a vector.
The second program of post-norm models with attention, gelu and positions in the embeddings is transformers' BertEncoder with
the same weights; that of the others is the second program of positions.py and mixers.py.
"""

import math

import torch
import torch.nn.functional as F
from transformers import BertConfig
from transformers.models.bert.modeling_bert import BertEncoder

import mixers
import models
from mixers import kind, mixer_shapes, recurrence
from models import Parameters, feed_forward, layer_norm, linear, linear_shapes, prefixed, under
from positions import BATCHES, SEPARATE, attend, rotary, shaw, t5


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

    def embedded(self, p: Parameters, source: list) -> torch.Tensor:
        config = self.config
        x = F.embedding(torch.tensor([source]), p["source_embedding.weight"]) * math.sqrt(config["d_model"])
        if config["positions"]["kind"] == "sinusoidal":
            x = x + models.sinusoids(0, len(source), config["d_model"])
        if config["positions"]["kind"] == "learned":
            x = x + p["position.learned.weight"][: len(source)]
        return x

    def states(self, p: Parameters, source: list, other: bool) -> torch.Tensor:
        config, scheme = self.config, self.config["positions"]
        n_heads, is_pre, length = config["n_heads"], config["norm_position"] == "pre", len(source)
        x = self.embedded(p, source)
        hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
        hidden = (hidden if config["is_causal"] else torch.zeros_like(hidden))[None, None]

        def residual(layer: dict, name: str, x: torch.Tensor, sublayer) -> torch.Tensor:
            norm = lambda y: layer_norm(y, layer, f"{name}_residual.norm")
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
        return (layer_norm(x, p, "norm") if is_pre else x)[0]

    def bert(self, p: Parameters, source: list) -> torch.Tensor:
        """The same states by BERT's layers."""
        config, d = self.config, self.config["d_model"]
        settings = BertConfig(
            hidden_size=d,
            num_hidden_layers=config["n_layers"],
            num_attention_heads=config["n_heads"],
            intermediate_size=config["d_feed_forward"],
            hidden_act="gelu",
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            layer_norm_eps=1e-5,
        )
        settings._attn_implementation = "eager"
        library = BertEncoder(settings).double()
        weights = {}
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
        return torch.func.functional_call(library, weights, (self.embedded(p, source),)).last_hidden_state[0]

    def answers(self, p: Parameters, states: torch.Tensor, n: int) -> torch.Tensor:
        """`[n, vocab]`."""
        if self.config["output"] == "class":
            # An answer of one word alone has no part of the end in it, but the gradient wants a path.
            read = [states[-1] + 0 * p["end"]] + [p["end"]] * (n - 1)
        else:
            read = [states[min(t, len(states) - 1)] for t in range(n)]
        return linear(torch.stack(read), p, "output.projection")

    def batch(self, p: Parameters, states, source: list, target: list) -> torch.Tensor:
        rows = [self.answers(p, states(one), len(other)) for one, other in zip(source, target)]
        longest = max(map(len, target))
        return torch.stack([F.pad(row, (0, 0, 0, longest - len(row))) for row in rows])

    def logits(self, p: Parameters, source: list, target: list) -> torch.Tensor:
        return self.batch(p, lambda s: self.states(p, s, False), source, target)

    def by_other_means(self, p: Parameters, source: list, target: list) -> torch.Tensor:
        config = self.config
        in_embeddings = config["positions"]["kind"] in ("sinusoidal", "learned", "none")
        has_attention = all(mixer == kind("attention") for mixer in self.mixers())
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
    return cases


if __name__ == "__main__":
    import transformers

    models.write_or_check("encoder_only", __doc__, model_cases, lambda: [], transformers=transformers.__version__)
