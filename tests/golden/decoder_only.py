#!/usr/bin/env python3
"""Writes decoder_only.json.gz: models that read source and target as one sequence, by PyTorch and Hugging Face transformers.

    pip install torch==2.15.0 numpy==2.4.6 transformers==5.23.0
    python tests/golden/decoder_only.py            # write the file anew
    python tests/golden/decoder_only.py --check    # compare the file with what the libraries say now

The layout of the file, the closed form of parameters and inputs, the loss and the checks of each model are those of
models.py; everything is computed in 64 bits. Each sentence is read alone: its source, then its target, without padding.
The second program of the models with learned positions is transformers' GPT2LMHeadModel with the same weights; that of the
others is the second program of positions.py and mixers.py. Language models of plain text have empty sources; GPT-2 reads
their words as its own, with its tied table and its approximation of gelu.
"""

import math

import torch
import torch.nn.functional as F
from transformers import GPT2Config, GPT2LMHeadModel

import mixers
import models
from mixers import kind, mixer_shapes, recurrence
from models import Parameters, feed_forward, layer_norm, linear, linear_shapes, prefixed, under
from positions import BATCHES, SEPARATE, SHARED, attend, rotary, shaw, t5


class DecoderOnly:
    def __init__(self, config: dict, vocabularies: dict):
        self.config = config
        d, n_heads = config["d_model"], config["n_heads"]
        norm = lambda name: {f"{name}.gamma": [d], f"{name}.beta": [d]}
        ffn = prefixed("feed_forward", models.feed_forward_shapes(d, config["d_feed_forward"], config["activation"]))
        ffn |= norm("feed_forward_residual.norm")
        self.shapes = {"target_embedding.weight": [vocabularies["target"], d]}
        if config["tied_embeddings"] != "all" and config["reads_source"]:
            self.shapes["source_embedding.weight"] = [vocabularies["source"], d]
        made = min(len(self.mixers()), config["n_layers"]) if config["share_layers"] else config["n_layers"]
        scheme = config["positions"]
        for i in range(made):
            shapes = mixer_shapes(self.mixer(i) | {"bidirectional": False}, d, n_heads, "encoder")
            if scheme["kind"] == "shaw":
                table = [2 * scheme["max_distance"] + 1, d // n_heads]
                shapes |= {"attention.relative.key": table, "attention.relative.value": table}
            self.shapes |= prefixed(f"layers.{i}", shapes | norm("attention_residual.norm") | ffn)
        if config["norm_position"] == "pre":
            self.shapes |= norm("norm")
        if config["tied_embeddings"] == "none":
            self.shapes |= linear_shapes("output.projection", d, vocabularies["target"])
        if scheme["kind"] == "learned":
            self.shapes["position.learned.weight"] = [scheme["max_len"], d]
        if scheme["kind"] == "t5":
            self.shapes["position.table"] = [scheme["n_buckets"], n_heads]

    def mixers(self) -> list:
        mixers = self.config["mixer"]
        return mixers if isinstance(mixers, list) else [mixers]

    def mixer(self, i: int) -> dict:
        return self.mixers()[i % len(self.mixers())]

    def embedded(self, p: Parameters, source: list, target: list) -> torch.Tensor:
        """One sentence's words, `[1, length, d]`, without positions."""
        table = "source_embedding.weight" if "source_embedding.weight" in p else "target_embedding.weight"
        sides = ((source, table), (target, "target_embedding.weight"))
        words = [F.embedding(torch.tensor(ids, dtype=torch.long), p[name]) for ids, name in sides]
        return torch.cat(words)[None] * (math.sqrt(self.config["d_model"]) if self.config["scales_embeddings"] else 1.0)

    def output(self, p: Parameters, x: torch.Tensor) -> torch.Tensor:
        return linear(x, p, "output.projection") if "output.projection.weight" in p else x @ p["target_embedding.weight"].T

    def sentence(self, p: Parameters, source: list, target: list, other: bool) -> torch.Tensor:
        """The logits after each word of the target: `[target_len, vocab]`."""
        config, scheme = self.config, self.config["positions"]
        n_heads, is_pre = config["n_heads"], config["norm_position"] == "pre"
        x = self.embedded(p, source, target)
        length = x.shape[1]
        if scheme["kind"] == "sinusoidal":
            x = x + models.sinusoids(0, length, config["d_model"])
        if scheme["kind"] == "learned":
            x = x + p["position.learned.weight"][:length]
        hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
        if config["sees_whole_source"]:
            hidden[: len(source), : len(source)] = False
        hidden = hidden[None, None]

        def residual(layer: dict, name: str, x: torch.Tensor, sublayer) -> torch.Tensor:
            norm = lambda y: layer_norm(y, layer, f"{name}_residual.norm")
            return x + sublayer(norm(x)) if is_pre else norm(x + sublayer(x))

        def mix(layer: dict, mixer: dict):
            def run(x):
                x = mixers.convolved(layer["convolution.weight"], x, other) if "convolution" in mixer else x
                if mixer["kind"] == "attention":
                    own = under(layer, "attention")
                    # Where the source sees all of itself, distances to both sides are told apart.
                    causal = not config["sees_whole_source"]
                    return attend(own, (n_heads, n_heads), x, x, hidden, scheme, p.get("position.table"), other, causal)
                return recurrence(under(layer, "recurrence"), mixer, n_heads, x, [length], other)

            return run

        for i in range(config["n_layers"]):
            layer = under(p, f"layers.{i % len(self.mixers()) if config['share_layers'] else i}")
            x = residual(layer, "attention", x, mix(layer, self.mixer(i)))
            x = residual(layer, "feed_forward", x, lambda y: feed_forward(under(layer, "feed_forward"), config["activation"], y))
        if is_pre:
            x = layer_norm(x, p, "norm")
        return self.output(p, x)[0, len(source) :]

    def gpt2(self, p: Parameters, source: list, target: list) -> torch.Tensor:
        """The same by GPT-2, whose own position table and layers take our weights; beside a source the words come in as vectors."""
        config = self.config
        d = config["d_model"]
        library = GPT2LMHeadModel(
            GPT2Config(
                vocab_size=self.shapes["target_embedding.weight"][0],
                n_positions=config["positions"]["max_len"],
                n_embd=d,
                n_layer=config["n_layers"],
                n_head=config["n_heads"],
                n_inner=config["d_feed_forward"],
                activation_function={"gelu-tanh": "gelu_new"}.get(config["activation"], config["activation"]),
                resid_pdrop=0.0,
                embd_pdrop=0.0,
                attn_pdrop=0.0,
                tie_word_embeddings=not config["reads_source"],
                attn_implementation="eager",
            )
        )
        weights = {"transformer.wpe.weight": p["position.learned.weight"], "lm_head.weight": p["target_embedding.weight"]}
        for name, own in (("ln_f", "norm"),):
            weights |= {f"transformer.{name}.weight": p[f"{own}.gamma"], f"transformer.{name}.bias": p[f"{own}.beta"]}
        names = {
            "ln_1": ("attention_residual.norm", "gamma", "beta"),
            "ln_2": ("feed_forward_residual.norm", "gamma", "beta"),
            "attn.c_attn": ("attention.query_key_value", "weight", "bias"),
            "attn.c_proj": ("attention.output", "weight", "bias"),
            "mlp.c_fc": ("feed_forward.inner", "weight", "bias"),
            "mlp.c_proj": ("feed_forward.outer", "weight", "bias"),
        }
        for i in range(config["n_layers"]):
            for name, (own, weight, bias) in names.items():
                weights[f"transformer.h.{i}.{name}.weight"] = p[f"layers.{i}.{own}.{weight}"]
                weights[f"transformer.h.{i}.{name}.bias"] = p[f"layers.{i}.{own}.{bias}"]
        if not config["reads_source"]:
            weights["transformer.wte.weight"] = p["target_embedding.weight"]
            words = torch.tensor([target])
            return torch.func.functional_call(library, weights, (words,), {}).logits[0]
        words = self.embedded(p, source, target)
        return torch.func.functional_call(library, weights, (), {"inputs_embeds": words}).logits[0, len(source) :]

    def batch(self, sentence, source: list, target: list) -> torch.Tensor:
        rows = [sentence(one, other) for one, other in zip(source, target)]
        longest = max(map(len, target))
        return torch.stack([F.pad(row, (0, 0, 0, longest - len(row))) for row in rows])

    def logits(self, p: Parameters, source: list, target: list) -> torch.Tensor:
        return self.batch(lambda s, t: self.sentence(p, s, t, False), source, target)

    def by_other_means(self, p: Parameters, source: list, target: list) -> torch.Tensor:
        if self.config["positions"]["kind"] == "learned" and not self.config["sees_whole_source"]:
            return self.batch(lambda s, t: self.gpt2(p, s, t), source, target)
        return self.batch(lambda s, t: self.sentence(p, s, t, True), source, target)


def model_cases() -> list[dict]:
    attention, none, sinusoidal = kind("attention"), {"kind": "none"}, {"kind": "sinusoidal"}
    learned = {"kind": "learned", "max_len": 18}
    rows = [
        # name, mixer, positions, layers, shared, whole source, norm position, activation, tied, batch
        ("gpt2", attention, learned, 2, False, False, "pre", "gelu", "all", 0),
        ("gpt2-relu", attention, learned, 1, False, False, "pre", "relu", "target-output", 1),
        ("rotary", attention, rotary(100.0), 2, False, False, "pre", "gelu", "all", 1),
        ("alibi", attention, {"kind": "alibi"}, 1, False, False, "post", "gelu", "none", 0),
        ("hard-alibi", attention, {"kind": "hard-alibi", "n_windows": 1}, 2, False, False, "pre", "gelu", "all", 1),
        ("t5-prefix", attention, t5(6, 5), 1, False, True, "pre", "gelu", "all", 1),
        ("shaw", attention, shaw(2), 1, False, False, "pre", "gelu", "all", 0),
        ("sinusoidal-prefix", attention, sinusoidal, 2, True, True, "pre", "gelu", "all", 0),
        ("gru", kind("gru"), none, 1, False, False, "pre", "gelu", "all", 1),
        ("min-gru", kind("min-gru", convolution=3, expansion=2), none, 2, False, False, "pre", "gelu", "all", 0),
        ("lstm", kind("lstm"), none, 1, False, False, "post", "gelu", "none", 1),
        ("gated-delta", kind("gated-delta", convolution=2), none, 1, False, False, "pre", "gelu", "all", 1),
        ("linear", kind("linear"), none, 1, False, False, "pre", "gelu", "all", 0),
        ("hybrid", [kind("rg-lru"), attention], rotary(100.0), 3, False, False, "pre", "gelu", "all", 0),
    ]
    texts = [
        ("gpt2", attention, learned, 2, False, False, "pre", "gelu-tanh", "all", 0),
        ("gpt2-relu", attention, learned, 1, False, False, "pre", "relu", "target-output", 1),
        ("rotary", attention, rotary(100.0), 1, False, False, "pre", "gelu", "none", 1),
        ("min-gru", kind("min-gru", convolution=3), none, 2, False, False, "pre", "gelu", "target-output", 0),
        ("hybrid", [kind("gated-delta"), attention], none, 2, False, False, "post", "gelu", "none", 1),
    ]
    cases = []
    rows = [(True, *row) for row in rows] + [(False, *row) for row in texts]
    for reads_source, name, mixer, positions, n_layers, shared, whole, norm_position, activation, tied, batch in rows:
        config = {
            "kind": "decoder-only",
            "d_model": 8,
            "d_feed_forward": 7,
            "n_heads": 2,
            "n_layers": n_layers,
            "share_layers": shared,
            "mixer": mixer,
            "reads_source": reads_source,
            "sees_whole_source": whole,
            "scales_embeddings": reads_source or positions["kind"] != "learned",
            "dropout_rate": 0.0,
            "norm_position": norm_position,
            "norm": "layer",
            "activation": activation,
            "positions": positions,
            "tied_embeddings": tied,
        }
        vocabularies = SHARED if tied == "all" else SEPARATE
        chosen = BATCHES[batch] if reads_source else {**BATCHES[batch], "source": [[], [], []]}
        family = "decoder-only" if reads_source else "language-model"
        case = {"name": f"{family}/{name}", "config": config, "vocabularies": vocabularies, "batch": chosen}
        cases.append(models.model_case(case, DecoderOnly, 1.0))
    return cases


if __name__ == "__main__":
    import transformers

    models.write_or_check("decoder_only", __doc__, model_cases, lambda: [], transformers=transformers.__version__)
