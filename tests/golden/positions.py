#!/usr/bin/env python3
"""Writes positions.json.gz: what PyTorch and Hugging Face transformers make of position schemes and Transformer variants.

    pip install torch==2.15.0 numpy==2.4.6 transformers==5.23.0
    python tests/golden/positions.py            # write the file anew
    python tests/golden/positions.py --check    # compare the file with what the libraries say now

The layout of the file, the closed form of parameters and inputs, the loss and the checks of each model are those of
models.py; everything is computed in 64 bits. Here are whole Transformers with each scheme on both sides, with two schemes,
with LayerNorm and RMSNorm before and after, and with fewer heads of keys and values than of queries.

T5's bias is transformers' T5Attention.compute_bias, rotary positions are its Llama's apply_rotary_pos_emb, ALiBi's slopes
its BLOOM's and its MPT's. F.scaled_dot_product_attention attends, with enable_gqa for grouped queries; F.rms_norm
normalizes. Shaw's vectors come from the paper's equations. Each is checked against a second program below that is as near
to the equations as can be: matrices of rotation, exact fractions for buckets, loops over pairs, repeated heads.

Layer cases: rotary, alibi-slopes, t5-buckets, rms-norm, biased-attention, shaw-attention, grouped-self-attention and
grouped-cross-attention.
"""

import math
from fractions import Fraction

import numpy as np
import torch
import torch.nn.functional as F
import transformers
from torch import nn
from transformers.models.bloom.modeling_bloom import _get_alibi_slopes
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb
from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor
from transformers.models.t5.configuration_t5 import T5Config
from transformers.models.t5.modeling_t5 import T5Attention

import models
from models import Parameters, assert_equal, feed_forward, is_padding, linear, linear_shapes, pad, prefixed, under

BATCHES = [
    {
        "source": [[5, 9, 3, 2], [4, 7, 10, 6, 8, 11, 2], [2]],
        "target_input": [[1, 6, 11], [1, 5, 8, 12, 4, 9], [1]],
    },
    {
        "source": [[7, 4, 4, 9, 12, 5, 2], [10, 2], [6, 8, 3, 2]],
        "target_input": [[1, 9], [1, 4, 7, 7], [1, 3, 10, 5, 12, 15]],
    },
]
SEPARATE = {"source": 13, "target": 17, "shared": False}
SHARED = {"source": 17, "target": 17, "shared": True}


# --- The schemes -----------------------------------------------------------------------------------------------------


class T5Bias(nn.Module):
    """T5Attention with its table as the only parameter that is used."""

    def __init__(self, n_buckets: int, max_distance: int, n_heads: int, is_decoder: bool):
        super().__init__()
        config = T5Config(
            d_model=n_heads,
            d_kv=1,
            num_heads=n_heads,
            relative_attention_num_buckets=n_buckets,
            relative_attention_max_distance=max_distance,
            is_decoder=is_decoder,
        )
        self.attention = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)

    def forward(self, length: int) -> torch.Tensor:
        return self.attention.compute_bias(length, length)


def t5_bias(scheme: dict, table: torch.Tensor, length: int, causal: bool) -> torch.Tensor:
    module = T5Bias(scheme["n_buckets"], scheme["max_distance"], table.shape[1], causal)
    return torch.func.functional_call(module, {"attention.relative_attention_bias.weight": table}, (length,))


def t5_bucket(distance: int, n_buckets: int, max_distance: int, causal: bool) -> int:
    """The bucket of the key `distance` after the query, in exact arithmetic."""
    first, n = 0, n_buckets
    if causal:
        distance = min(distance, 0)
    else:
        n = n_buckets // 2
        first = n if distance > 0 else 0
    distance, exact = abs(distance), n // 2
    if distance < exact:
        return first + distance
    bucket = exact
    # distance >= exact * (max_distance / exact)^(j / (n - exact)), both sides to the power n - exact.
    reached = lambda j: Fraction(distance, exact) ** (n - exact) >= Fraction(max_distance, exact) ** j
    while bucket < n - 1 and reached(bucket + 1 - exact):
        bucket += 1
    return first + bucket


def alibi_slopes(n_heads: int) -> torch.Tensor:
    """BLOOM's slopes, which must be MPT's; both keep 32 bits, of which the exact powers of two are rounded."""
    slopes = _get_alibi_slopes(n_heads, torch.device("cpu")).double()
    mpt = -build_mpt_alibi_tensor(n_heads, 2)[:, 0, 0].double()
    assert_equal("slopes of BLOOM and MPT", slopes, mpt, 1e-6)
    exact = torch.tensor(alibi_slopes_by_recursion(n_heads))
    assert_equal("slopes by recursion", slopes, exact, 1e-6)
    return exact


def alibi_slopes_by_recursion(n_heads: int) -> list[float]:
    """The authors' get_slopes."""
    power_of_two = lambda n: [2 ** (-8 * (i + 1) / n) for i in range(n)]
    if math.log2(n_heads).is_integer():
        return power_of_two(n_heads)
    closest = 2 ** math.floor(math.log2(n_heads))
    return power_of_two(closest) + alibi_slopes_by_recursion(2 * closest)[0::2][: n_heads - closest]


def rotary_tables(offset: int, length: int, d_head: int, base: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines as Llama wants them: both halves alike, [1, length, d_head]."""
    frequencies = base ** (-torch.arange(0, d_head, 2).double() / d_head)
    angles = torch.arange(offset, offset + length).double()[:, None] * frequencies
    angles = torch.cat([angles, angles], dim=1)[None]
    return angles.cos(), angles.sin()


def rotated_by_matrices(x: torch.Tensor, offset: int, base: float) -> torch.Tensor:
    """Position by position with a matrix of rotations (equation 15 of the paper); elements i and i + d/2 are a pair."""
    d, half = x.shape[3], x.shape[3] // 2
    rows = []
    for m in range(x.shape[2]):
        matrix = torch.zeros(d, d)
        for i in range(half):
            angle = (offset + m) * base ** (-2 * i / d)
            matrix[i, i] = matrix[i + half, i + half] = math.cos(angle)
            matrix[i, i + half], matrix[i + half, i] = -math.sin(angle), math.sin(angle)
        rows.append(x[:, :, m] @ matrix.T)
    return torch.stack(rows, dim=2)


def distances(query_len: int, key_len: int) -> torch.Tensor:
    return torch.arange(key_len)[None, :] - torch.arange(query_len)[:, None]


def shaw_attention(query, key, value, hidden, key_table, value_table) -> torch.Tensor:
    """Equations 3 and 4 of the paper; a query that sees nothing has context zero."""
    k = (len(key_table) - 1) // 2
    rows = distances(query.shape[2], key.shape[2]).clamp(-k, k) + k
    keys, values = key_table[rows], value_table[rows]
    scores = query @ key.transpose(2, 3) + torch.einsum("bhqd,qkd->bhqk", query, keys)
    scores = scores / math.sqrt(query.shape[3])
    weights = torch.softmax(scores.masked_fill(hidden, -torch.inf), dim=3).masked_fill(hidden, 0)
    weights = weights.nan_to_num(0)
    return weights @ value + torch.einsum("bhqk,qkd->bhqd", weights, values)


def shaw_by_pairs(query, key, value, hidden, key_table, value_table) -> torch.Tensor:
    """The same pair by pair."""
    k = (len(key_table) - 1) // 2
    row = lambda i, j: max(-k, min(k, j - i)) + k
    hidden = hidden.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
    contexts = torch.zeros(*query.shape[:3], value.shape[3])
    for b, h, i in np.ndindex(*query.shape[:3]):
        seen = [j for j in range(key.shape[2]) if not hidden[b, h, i, j]]
        if not seen:
            continue
        scores = [query[b, h, i] @ (key[b, h, j] + key_table[row(i, j)]) / math.sqrt(query.shape[3]) for j in seen]
        weights = torch.softmax(torch.stack(scores), dim=0)
        contexts[b, h, i] = sum(w * (value[b, h, j] + value_table[row(i, j)]) for w, j in zip(weights, seen))
    return contexts


# --- Attention with them ---------------------------------------------------------------------------------------------


def split(x: torch.Tensor, n_heads: int) -> torch.Tensor:
    return x.unflatten(2, (n_heads, -1)).transpose(1, 2)


def grouped_shapes(d: int, d_key_value: int, is_cross: bool) -> dict:
    packed = linear_shapes("query_key_value", d, d + 2 * d_key_value)
    if is_cross:
        packed = linear_shapes("query", d, d) | linear_shapes("key_value", d, 2 * d_key_value)
    return packed | linear_shapes("output", d, d)


def attend(p: dict, heads: tuple[int, int], x, memory, hidden, scheme=None, table=None, other=False, causal=None) -> torch.Tensor:
    """Multi-head attention; `heads` are those of queries and of keys; `hidden` is [batch or 1, 1, query_len or 1, key_len].

    With `other`, by the second program."""
    n_heads, n_kv = heads
    d = x.shape[2]
    d_kv = d // n_heads * n_kv
    if "query_key_value.weight" in p:
        query, key, value = linear(x, p, "query_key_value").split([d, d_kv, d_kv], dim=2)
    else:
        query, (key, value) = linear(x, p, "query"), linear(memory, p, "key_value").split(d_kv, dim=2)
    query, key, value = split(query, n_heads), split(key, n_kv), split(value, n_kv)
    kind = scheme["kind"] if scheme else "none"
    causal = hidden.shape[2] > 1 if causal is None else causal
    if kind == "rotary":
        if other:
            query, key = (rotated_by_matrices(one, 0, scheme["base"]) for one in (query, key))
        else:
            cos, sin = rotary_tables(0, x.shape[1], d // n_heads, scheme["base"])
            query, key = apply_rotary_pos_emb(query, key, cos, sin)
    repeated = lambda one: one.repeat_interleave(n_heads // n_kv, dim=1)
    if kind == "shaw":
        attention = shaw_by_pairs if other else shaw_attention
        context = attention(query, repeated(key), repeated(value), hidden, p["relative.key"], p["relative.value"])
        return linear(context.transpose(1, 2).flatten(2), p, "output")
    bias = torch.zeros(1, 1, 1, 1)
    if kind == "alibi":
        slopes = alibi_slopes(n_heads)[None, :, None, None]
        # Where the future is hidden, distance to the query and distance to the start differ by what softmax does not see.
        by_key = causal and other
        length = x.shape[1]
        bias = slopes * (torch.arange(length).double() if by_key else -distances(length, length).abs().double())
    if kind == "hard-alibi":
        length, n_windows = x.shape[1], scheme.get("n_windows") or n_heads // 2
        reach = torch.arange(n_heads)[:, None, None]
        outside = (distances(length, length).abs() > reach) & (reach < n_windows)
        if other:
            sees = [[[h >= n_windows or abs(k - q) <= h for k in range(length)] for q in range(length)] for h in range(n_heads)]
            outside = ~torch.tensor(sees)
        # Not minus infinity: a place of padding may see nothing but itself, and that is hidden.
        bias = torch.zeros(n_heads, length, length).masked_fill(outside, -1e9)[None]
    if kind == "t5":
        bias = t5_bias(scheme, table, x.shape[1], causal)
        if other:
            bucket = lambda q, k: t5_bucket(k - q, scheme["n_buckets"], scheme["max_distance"], causal)
            rows = [[bucket(q, k) for k in range(x.shape[1])] for q in range(x.shape[1])]
            bias = table[torch.tensor(rows)].permute(2, 0, 1)[None]
    mask = bias.masked_fill(hidden, -torch.inf)
    if other:
        scores = query @ repeated(key).transpose(2, 3) / math.sqrt(query.shape[3]) + mask
        context = torch.softmax(scores, dim=3) @ repeated(value)
    else:
        mask = mask.expand(query.shape[0], n_heads, query.shape[2], key.shape[2])
        context = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, enable_gqa=True)
    return linear(context.transpose(1, 2).flatten(2), p, "output")


# --- The Transformer -------------------------------------------------------------------------------------------------


class Transformer:
    def __init__(self, config: dict, vocabularies: dict):
        self.config = config
        d, n_heads = config["d_model"], config["n_heads"]
        self.heads = n_heads, config.get("n_key_value_heads") or n_heads
        self.encoder_scheme = config["positions"]
        self.decoder_scheme = config.get("decoder_positions") or self.encoder_scheme
        d_kv = d // n_heads * self.heads[1]
        norm = lambda name: {f"{name}.gamma": [d]} | ({f"{name}.beta": [d]} if config["norm"] == "layer" else {})
        ffn = prefixed("feed_forward", models.feed_forward_shapes(d, config["d_feed_forward"], config["activation"]))
        ffn |= norm("feed_forward_residual.norm")

        def attention(name: str, residual: str, scheme: dict | None) -> dict:
            shapes = grouped_shapes(d, d_kv, scheme is None)
            if scheme and scheme["kind"] == "shaw":
                table = [2 * scheme["max_distance"] + 1, d // n_heads]
                shapes |= {"relative.key": table, "relative.value": table}
            return prefixed(name, shapes) | norm(f"{residual}_residual.norm")

        encoder = attention("attention", "attention", self.encoder_scheme) | ffn
        decoder = attention("self_attention", "self", self.decoder_scheme)
        decoder |= attention("cross_attention", "cross", None) | ffn
        self.shapes = models.transformer_shapes(config, vocabularies, norm, encoder, decoder)
        stacks = [("position", self.encoder_scheme)]
        if config.get("decoder_positions") or self.encoder_scheme["kind"] == "t5":
            stacks.append(("decoder_position", self.decoder_scheme))
        for name, scheme in stacks:
            if scheme["kind"] == "learned":
                self.shapes[f"{name}.learned.weight"] = [scheme["max_len"], d]
            if scheme["kind"] == "t5":
                self.shapes[f"{name}.table"] = [scheme["n_buckets"], n_heads]

    def embed(self, p: Parameters, table: str, ids: torch.Tensor, scheme: dict, stack: str) -> torch.Tensor:
        d, length = self.config["d_model"], ids.shape[1]
        x = F.embedding(ids, p[table]) * math.sqrt(d)
        if scheme["kind"] == "sinusoidal":
            return x + models.sinusoids(0, length, d)
        if scheme["kind"] == "learned":
            return x + p.get(f"{stack}.learned.weight", p.get("position.learned.weight"))[:length]
        return x

    def norm(self, x: torch.Tensor, p: dict, name: str, other: bool) -> torch.Tensor:
        if self.config["norm"] == "layer":
            return models.layer_norm(x, p, name)
        if other:
            return x * (x.square().mean(2, keepdim=True) + 1e-5).rsqrt() * p[f"{name}.gamma"]
        return F.rms_norm(x, x.shape[-1:], p[f"{name}.gamma"], 1e-5)

    def logits(self, p: Parameters, source: list, target: list, other: bool = False) -> torch.Tensor:
        config = self.config
        is_pre = config["norm_position"] == "pre"
        ids, target_ids = pad(source), pad(target)
        table = "source_embedding.weight" if "source_embedding.weight" in p else "target_embedding.weight"
        x = self.embed(p, table, ids, self.encoder_scheme, "position")
        y = self.embed(p, "target_embedding.weight", target_ids, self.decoder_scheme, "decoder_position")
        padding = is_padding([len(sentence) for sentence in source], ids.shape[1])[:, None, None, :]
        future = torch.ones(y.shape[1], y.shape[1], dtype=torch.bool).triu(1)[None, None]

        def residual(layer: dict, name: str, x: torch.Tensor, sublayer) -> torch.Tensor:
            if is_pre:
                return x + sublayer(self.norm(x, layer, f"{name}_residual.norm", other))
            return self.norm(x + sublayer(x), layer, f"{name}_residual.norm", other)

        ffn = lambda layer: lambda x: feed_forward(under(layer, "feed_forward"), config["activation"], x)

        def attention(layer: dict, name: str, memory, hidden, scheme=None, table=None):
            q = under(layer, name)
            return lambda x: attend(q, self.heads, x, x if memory is None else memory, hidden, scheme, table, other)

        for i in range(config["n_encoder_layers"]):
            layer = under(p, f"encoder.{i}")
            sublayer = attention(layer, "attention", None, padding, self.encoder_scheme, p.get("position.table"))
            x = residual(layer, "feed_forward", residual(layer, "attention", x, sublayer), ffn(layer))
        if is_pre:
            x = self.norm(x, p, "encoder_norm", other)
        for i in range(config["n_decoder_layers"]):
            layer = under(p, f"decoder.{i}")
            table = p.get("decoder_position.table")
            y = residual(layer, "self", y, attention(layer, "self_attention", None, future, self.decoder_scheme, table))
            y = residual(layer, "cross", y, attention(layer, "cross_attention", x, padding))
            y = residual(layer, "feed_forward", y, ffn(layer))
        if is_pre:
            y = self.norm(y, p, "decoder_norm", other)
        if config["tied_embeddings"] == "none":
            return linear(y, p, "output.projection")
        return y @ p["target_embedding.weight"].T

    def by_other_means(self, p: Parameters, source: list, target: list) -> torch.Tensor:
        return self.logits(p, source, target, other=True)


SINUSOIDAL, ALIBI, NONE = ({"kind": kind} for kind in ("sinusoidal", "alibi", "none"))
LEARNED = {"kind": "learned", "max_len": 8}


def rotary(base: float) -> dict:
    return {"kind": "rotary", "base": base}


def t5(n_buckets: int, max_distance: int) -> dict:
    return {"kind": "t5", "n_buckets": n_buckets, "max_distance": max_distance}


def shaw(max_distance: int) -> dict:
    return {"kind": "shaw", "max_distance": max_distance}


def model_cases() -> list[dict]:
    rows = [
        # norm position and kind, encoder and decoder scheme, heads, activation, tied, layers, batch
        ("pre", "layer", rotary(10_000.0), None, (5, None), "relu", "none", (1, 2), 0),
        ("post", "layer", ALIBI, None, (5, None), "gelu", "all", (2, 1), 1),
        ("pre", "rms", t5(6, 5), None, (5, None), "relu", "target-output", (2, 2), 0),
        ("post", "layer", shaw(2), None, (5, None), "relu", "all", (1, 2), 1),
        ("pre", "layer", NONE, None, (5, None), "gelu", "all", (1, 1), 0),
        ("post", "rms", t5(8, 6), rotary(50.0), (5, None), "swiglu", "all", (1, 1), 1),
        ("pre", "layer", shaw(3), ALIBI, (5, None), "relu", "target-output", (1, 1), 0),
        ("pre", "rms", ALIBI, t5(4, 5), (5, None), "gelu", "all", (1, 1), 1),
        ("post", "layer", NONE, shaw(2), (5, None), "relu", "all", (1, 1), 0),
        ("pre", "layer", rotary(100.0), LEARNED, (5, None), "relu", "all", (1, 1), 1),
        ("post", "layer", LEARNED, LEARNED, (5, None), "gelu", "all", (1, 1), 0),
        ("post", "rms", SINUSOIDAL, NONE, (5, None), "relu", "all", (1, 1), 1),
        ("pre", "rms", rotary(10_000.0), None, (6, 2), "swiglu", "all", (1, 1), 0),
        ("post", "rms", shaw(2), None, (6, 1), "relu", "all", (1, 1), 1),
        ("pre", "layer", t5(6, 5), ALIBI, (6, 3), "gelu", "all", (1, 1), 0),
        ("post", "layer", SINUSOIDAL, None, (6, 2), "relu", "all", (1, 1), 1),
        ("pre", "layer", {"kind": "hard-alibi"}, None, (5, None), "gelu", "all", (1, 2), 0),
    ]
    cases = []
    for norm_position, norm, encoder, decoder, (n_heads, n_kv), activation, tied, layers, batch in rows:
        config = {
            "kind": "transformer",
            "d_model": 4 * n_heads,
            "d_feed_forward": 7,
            "n_heads": n_heads,
            "n_key_value_heads": n_kv,
            "n_encoder_layers": layers[0],
            "n_decoder_layers": layers[1],
            "dropout_rate": 0.0,
            "embedding_dropout_rate": 0.0,
            "attention_dropout_rate": 0.0,
            "activation_dropout_rate": 0.0,
            "norm_position": norm_position,
            "norm": norm,
            "activation": activation,
            "positions": encoder,
            "decoder_positions": decoder,
            "tied_embeddings": tied,
        }
        sides = encoder["kind"] if decoder is None else f"{encoder['kind']}+{decoder['kind']}"
        heads = f"{n_heads}" if n_kv is None else f"{n_heads}-over-{n_kv}"
        name = f"positions/{sides}-{norm_position}-{norm}-heads-{heads}-{activation}-tied-{tied}-{layers[0]}x{layers[1]}"
        vocabularies = SHARED if tied == "all" else SEPARATE
        case = {"name": name, "config": config, "vocabularies": vocabularies, "batch": BATCHES[batch]}
        cases.append(models.model_case(case, Transformer, 1.0))
    return cases


# --- Layer cases -----------------------------------------------------------------------------------------------------


def table_case(name: str, layer: str, config: dict, values: torch.Tensor) -> dict:
    """A layer without inputs: a table."""
    case = models.layer_case(name, layer, config, {}, {}, lambda x, p: ({}, {}))
    case["outputs"] = [{"name": "table", "shape": list(values.shape), "values": models.numbers(values)}]
    return case


def scheme_cases() -> list[dict]:
    cases = []
    for offset, base in ((0, 10_000.0), (1009, 10_000.0), (3, 100.0)):

        def run(x, p, offset=offset, base=base):
            cos, sin = rotary_tables(offset, 5, 14, base)
            output = apply_rotary_pos_emb(x["input"], x["input"], cos, sin)[0]
            assert_equal("rotation by matrices", output, rotated_by_matrices(x["input"], offset, base))
            return {"output": output}

        config = {"offset": offset, "base": base}
        inputs = {"input": ([2, 3, 5, 14], 4.0)}
        cases.append(models.layer_case(f"rotary/{offset}-{base:g}", "rotary", config, inputs, {}, run))
    for n_heads in (1, 2, 3, 5, 8, 12, 16, 20):
        name = f"alibi-slopes/{n_heads}"
        cases.append(table_case(name, "alibi-slopes", {"n_heads": n_heads}, alibi_slopes(n_heads)))
    for n_buckets, max_distance in ((32, 128), (8, 20), (6, 5), (4, 3)):
        for side in ("encoder", "decoder"):
            span = torch.arange(-300, 301)
            causal = side == "decoder"
            found = T5Attention._relative_position_bucket(span, not causal, n_buckets, max_distance)
            exact = torch.tensor([t5_bucket(d, n_buckets, max_distance, causal) for d in span.tolist()])
            assert torch.equal(found, exact), f"buckets {n_buckets}, {max_distance}, {side}"
            config = {"n_buckets": n_buckets, "max_distance": max_distance, "side": side, "first": -300}
            name = f"t5-buckets/{side}-{n_buckets}-{max_distance}"
            cases.append(table_case(name, "t5-buckets", config, found.double()))

    def rms(x, p):
        return {"output": F.rms_norm(x["input"], (10,), p["gamma"], 1e-5)}

    inputs = {"input": ([3, 5, 10], 4.0)}
    cases.append(models.layer_case("rms-norm", "rms-norm", {"d_model": 10}, inputs, {"gamma": [10]}, rms))
    return cases


def attention_cases() -> list[dict]:
    cases = []
    future = torch.ones(5, 5, dtype=torch.bool).triu(1)[None, None]
    lengths, n_heads, d_head = [3, 0, 5], 2, 7
    inputs = {name: ([3, n_heads, length, d_head], 4.0) for name, length in (("query", 4), ("key", 5), ("value", 5))}
    hidden = is_padding(lengths, 5)[:, None, None, :]

    def biased(x, p):
        mask = x["bias"].masked_fill(hidden, -torch.inf)
        rows = F.scaled_dot_product_attention(x["query"], x["key"], x["value"], attn_mask=mask)
        return {"context": rows.nan_to_num(0) * (~hidden).any(3, keepdim=True)}

    def biased_row_by_row(x, p):
        """Sentence by sentence without padding, so that nothing is ever divided by zero."""
        rows = [
            F.scaled_dot_product_attention(
                x["query"][i], x["key"][i, :, :n], x["value"][i, :, :n], attn_mask=x["bias"][0, :, :, :n]
            )
            if n
            else torch.zeros_like(x["query"][i])
            for i, n in enumerate(lengths)
        ]
        assert_equal("a mask hides as an absence does", torch.stack(rows), biased(x, p)["context"])
        return {"context": torch.stack(rows)}

    config = {"lengths": lengths}
    with_bias = inputs | {"bias": ([1, n_heads, 4, 5], 4.0)}
    name = "biased-attention"
    cases.append(models.layer_case(f"{name}/padding", name, config, with_bias, {}, biased_row_by_row))

    for causal in (False, True):
        blind = future if causal else hidden
        length = 5 if causal else 4
        given = {path: ([3, n_heads, length if path == "query" else 5, d_head], 4.0) for path in inputs}

        def run(x, p, blind=blind):
            arguments = (x["query"], x["key"], x["value"], blind, p["key"], p["value"])
            output = shaw_by_pairs(*arguments)
            assert_equal("Shaw by pairs", output, shaw_attention(*arguments))
            return {"context": output}

        config = {"lengths": None if causal else lengths, "causal": causal, "max_distance": 2, "d_head": d_head}
        shapes = {"key": [5, d_head], "value": [5, d_head]}
        name = f"shaw-attention/{'causal' if causal else 'padding'}"
        cases.append(models.layer_case(name, "shaw-attention", config, given, shapes, run))

    n_heads, d = 6, 30
    for n_kv in (1, 2, 3):
        for causal in (False, True):
            lengths = [5, 2, 3]
            blind = future if causal else is_padding(lengths, 5)[:, None, None, :]

            def run(x, p, n_kv=n_kv, blind=blind):
                arguments = (p, (n_heads, n_kv), x["input"], x["input"], blind)
                assert_equal("grouped heads by repetition", attend(*arguments), attend(*arguments, other=True))
                return {"output": attend(*arguments)}

            config = {"d_model": d, "n_heads": n_heads, "n_key_value_heads": n_kv}
            config |= {"lengths": None if causal else lengths, "causal": causal}
            shapes = grouped_shapes(d, n_kv * d // n_heads, False)
            name = f"grouped-self-attention/{n_kv}-{'causal' if causal else 'padding'}"
            cases.append(
                models.layer_case(name, "grouped-self-attention", config, {"input": ([3, 5, d], 4.0)}, shapes, run)
            )
    blind = is_padding(lengths, 5)[:, None, None, :]
    run = lambda x, p: {"output": attend(p, (n_heads, 2), x["input"], x["memory"], blind)}
    config = {"d_model": d, "n_heads": n_heads, "n_key_value_heads": 2, "lengths": lengths}
    inputs = {"input": ([3, 4, d], 4.0), "memory": ([3, 5, d], 4.0)}
    shapes = grouped_shapes(d, 2 * d // n_heads, True)
    name = "grouped-cross-attention"
    cases.append(models.layer_case(f"{name}/padding", name, config, inputs, shapes, run))
    return cases


def layer_cases() -> list[dict]:
    return scheme_cases() + attention_cases()


if __name__ == "__main__":
    models.write_or_check("positions", __doc__, model_cases, layer_cases, transformers=transformers.__version__)
