#!/usr/bin/env python3
"""Writes models.json.gz: what PyTorch makes of every layer and of both models, forward and gradient.

    pip install torch==2.15.0 numpy==2.4.6
    python tests/golden/models.py            # write the file anew
    python tests/golden/models.py --check    # compare the file with what PyTorch says now

Everything is computed in 64 bits. PyTorch's own modules do the work where it has them: nn.RNN, nn.GRU and nn.LSTM over
packed sequences, F.multi_head_attention_forward, F.scaled_dot_product_attention, F.layer_norm, F.gelu, F.cross_entropy.
The rest is written from the papers. Before anything is written, every model case is checked: sentences alone and
without padding must give the same logits and gradients as the batch, the gradient must agree with a difference
quotient, a decoder run by PyTorch's sequence modules must agree with one run cell by cell, and relu and gelu
Transformers must agree with nn.TransformerEncoderLayer and nn.TransformerDecoderLayer. The order of packed gates and
heads is checked against the equations written out.

Parameters and inputs are not stored; both sides compute them. For a tensor with path P, element i in row-major order of
the Rust layout is

    float32(0.3 * sin(phase + 1.3 * i + 0.01 * i * i)),  phase = 0.01 * ((sum over j of (j + 1) * P[j]) mod 997)

where P[j] are the UTF-8 bytes, j from 0. That is multiplied with the "parameter_scale" of a model case or the "scale"
of an input, powers of two; parameters of layer cases are taken as they are. A layer normalization's gamma is one plus
all that, in float32. (Recurrent models have a scale of their own because small states make attention uniform, and its
gradients too small to be seen in 32 bits.)

The file:

- generator: versions and command.
- models: a list of
  - name, config (a `ModelConfig`), vocabularies {source, target, shared}
  - source: token ids with </s>; target_input: token ids with <s>; to be padded with 0
  - parameter_scale; parameters: {path: shape}
  - logits_shape [batch, target_len, vocab], logits: flat; zero where the target is padding, and meaningless there
  - gradients: {path: flat}, of sum over b, real t, v of logits[b, t, v] * 0.1 * cos(0.5 * b + 0.3 * t + 0.2 * v)
- layers: a list of
  - name, layer, config (what the constructor needs)
  - inputs: {path: {shape, scale}}, parameters: {path: shape}
  - outputs: a list of {name, shape, values}
  - gradients: {path: flat} of inputs and parameters, of the sum over outputs k and elements i (row-major) of
    output_k[i] * 0.1 * cos(0.5 * i + 0.3 * k)
  - traced, where a layer records more than it returns: a list as outputs, without a part in the gradients

Values are flat and row-major, with 9 significant digits; what is below 1e-12 is 0.
"""

import argparse
import gzip
import json
import math
import platform
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

BATCHES = [
    {
        "source": [[5, 9, 3, 2], [4, 7, 10, 6, 8, 2], [2]],
        "target_input": [[1, 6, 11], [1, 5, 8, 12, 4], [1]],
    },
    {
        "source": [[7, 4, 4, 9, 5, 2], [10, 2], [6, 8, 2]],
        "target_input": [[1, 9], [1, 4, 7, 7], [1, 3, 10, 5, 12]],
    },
]
SEPARATE = {"source": 11, "target": 13, "shared": False}
SHARED = {"source": 13, "target": 13, "shared": True}

# The distance of every kink (relu, maxout) from zero that was met; a case close to one would be no test.
KINKS: list[float] = []


# --- Closed-form numbers ---------------------------------------------------------------------------------------------


def closed_form(path: str, shape: list[int], scale: float = 1.0) -> torch.Tensor:
    """The numbers of a parameter or input, as float64 with float32 values; `scale` is a power of two."""
    phase = 0.01 * (sum((j + 1) * byte for j, byte in enumerate(path.encode())) % 997)
    i = np.arange(math.prod(shape), dtype=np.float64)
    values = (0.3 * np.sin(phase + 1.3 * i + 0.01 * i * i)).astype(np.float32)
    values *= np.float32(scale)
    if path.split(".")[-1] == "gamma":
        values = np.float32(1) + values
    return torch.from_numpy(values.astype(np.float64)).reshape(shape)


class Parameters(dict):
    """Tensors by path."""

    def __init__(self, shapes: dict[str, list[int]], scale: float = 1.0):
        super().__init__({path: closed_form(path, shape, scale).requires_grad_() for path, shape in shapes.items()})


def under(p: dict, prefix: str) -> dict:
    """What lies under a path, without the path."""
    return {path.removeprefix(prefix + "."): value for path, value in p.items() if path.startswith(prefix + ".")}


def linear(x: torch.Tensor, p: dict, name: str) -> torch.Tensor:
    """A Rust linear layer: the weight is [d_input, d_output]."""
    return F.linear(x, p[f"{name}.weight"].T, p.get(f"{name}.bias"))


def linear_shapes(name: str, d_input: int, d_output: int, bias: bool = True) -> dict[str, list[int]]:
    return {f"{name}.weight": [d_input, d_output]} | ({f"{name}.bias": [d_output]} if bias else {})


def prefixed(prefix: str, shapes: dict) -> dict:
    return {f"{prefix}.{path}": shape for path, shape in shapes.items()}


def pad(sentences: list[list[int]]) -> torch.Tensor:
    longest = max(map(len, sentences))
    return torch.tensor([sentence + [0] * (longest - len(sentence)) for sentence in sentences])


def is_padding(lengths: list[int], length: int) -> torch.Tensor:
    return torch.arange(length) >= torch.tensor(lengths).unsqueeze(1)


# --- Layers of the Transformer ---------------------------------------------------------------------------------------


def self_attention_shapes(d: int) -> dict:
    return linear_shapes("query_key_value", d, 3 * d) | linear_shapes("output", d, d)


def cross_attention_shapes(d: int) -> dict:
    return linear_shapes("query", d, d) | linear_shapes("key_value", d, 2 * d) | linear_shapes("output", d, d)


def packed_projection(p: dict) -> tuple[torch.Tensor, torch.Tensor]:
    """PyTorch's in_proj: rows of the query, the key and the value."""
    if "query_key_value.weight" in p:
        return p["query_key_value.weight"].T, p["query_key_value.bias"]
    weight = torch.cat([p["query.weight"].T, p["key_value.weight"].T])
    return weight, torch.cat([p["query.bias"], p["key_value.bias"]])


def multi_head(
    p: dict, n_heads: int, x: torch.Tensor, memory: torch.Tensor, hidden_keys=None, causal=False
) -> torch.Tensor:
    query, key = x.transpose(0, 1), memory.transpose(0, 1)
    weight, bias = packed_projection(p)
    future = torch.ones(len(query), len(key), dtype=torch.bool).triu(1) if causal else None
    output, _ = F.multi_head_attention_forward(
        query,
        key,
        key,
        x.shape[2],
        n_heads,
        weight,
        bias,
        None,
        None,
        False,
        0.0,
        p["output.weight"].T,
        p["output.bias"],
        training=True,
        key_padding_mask=hidden_keys,
        need_weights=True,
        attn_mask=future,
    )
    return output.transpose(0, 1)


def feed_forward_shapes(d: int, d_inner: int, activation: str) -> dict:
    n_packed = 2 if activation == "swiglu" else 1
    return linear_shapes("inner", d, n_packed * d_inner) | linear_shapes("outer", d_inner, d)


def feed_forward(p: dict, activation: str, x: torch.Tensor) -> torch.Tensor:
    inner = linear(x, p, "inner")
    if activation == "relu":
        KINKS.append(inner.detach().abs().min().item())
        active = F.relu(inner)
    elif activation == "gelu":
        active = F.gelu(inner, approximate="none")
    elif activation == "gelu-tanh":
        active = F.gelu(inner, approximate="tanh")
    else:
        gate, value = inner.chunk(2, dim=-1)
        active = F.silu(gate) * value
    return linear(active, p, "outer")


def layer_norm(x: torch.Tensor, p: dict, name: str) -> torch.Tensor:
    return F.layer_norm(x, x.shape[-1:], p[f"{name}.gamma"], p[f"{name}.beta"], 1e-5)


def sinusoids(offset: int, length: int, d_model: int) -> torch.Tensor:
    position = torch.arange(offset, offset + length).double().unsqueeze(1)
    frequency = torch.exp(-math.log(10_000) * torch.arange(0, d_model, 2).double() / d_model)
    table = torch.empty(length, d_model)
    table[:, 0::2] = torch.sin(position * frequency)
    table[:, 1::2] = torch.cos(position * frequency)
    return table


# --- The Transformer -------------------------------------------------------------------------------------------------


def transformer_shapes(config: dict, vocabularies: dict, norm, encoder: dict, decoder: dict) -> dict:
    """All but the positions; `norm(name)` are the shapes of a norm, `encoder` and `decoder` those of a layer."""
    d = config["d_model"]
    shapes = {"target_embedding.weight": [vocabularies["target"], d]}
    if config["tied_embeddings"] != "all":
        shapes["source_embedding.weight"] = [vocabularies["source"], d]
    for i in range(config["n_encoder_layers"]):
        shapes |= prefixed(f"encoder.{i}", encoder)
    for i in range(config["n_decoder_layers"]):
        shapes |= prefixed(f"decoder.{i}", decoder)
    if config["norm_position"] == "pre":
        shapes |= norm("encoder_norm") | norm("decoder_norm")
    if config["tied_embeddings"] == "none":
        shapes |= linear_shapes("output.projection", d, vocabularies["target"])
    return shapes


class Transformer:
    def __init__(self, config: dict, vocabularies: dict):
        self.config = config
        d = config["d_model"]
        norm = lambda name: {f"{name}.gamma": [d], f"{name}.beta": [d]}
        ffn = prefixed("feed_forward", feed_forward_shapes(d, config["d_feed_forward"], config["activation"]))
        ffn |= norm("feed_forward_residual.norm")
        attention = lambda name, shapes, residual: prefixed(name, shapes) | norm(f"{residual}_residual.norm")
        encoder = attention("attention", self_attention_shapes(d), "attention") | ffn
        decoder = attention("self_attention", self_attention_shapes(d), "self")
        decoder |= attention("cross_attention", cross_attention_shapes(d), "cross") | ffn
        self.shapes = transformer_shapes(config, vocabularies, norm, encoder, decoder)
        if config["positions"]["kind"] == "learned":
            self.shapes["position.learned.weight"] = [config["positions"]["max_len"], d]

    def embed(self, p: Parameters, table: str, ids: torch.Tensor) -> torch.Tensor:
        d, length = self.config["d_model"], ids.shape[1]
        learned = p.get("position.learned.weight")
        positions = sinusoids(0, length, d) if learned is None else learned[:length]
        return F.embedding(ids, p[table]) * math.sqrt(d) + positions

    def residual(self, p: dict, name: str, x: torch.Tensor, sublayer) -> torch.Tensor:
        if self.config["norm_position"] == "pre":
            return x + sublayer(layer_norm(x, p, f"{name}.norm"))
        return layer_norm(x + sublayer(x), p, f"{name}.norm")

    def inputs(self, p: Parameters, source: list, target: list) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        ids = pad(source)
        table = "source_embedding.weight" if "source_embedding.weight" in p else "target_embedding.weight"
        hidden = is_padding([len(sentence) for sentence in source], ids.shape[1])
        return self.embed(p, table, ids), self.embed(p, "target_embedding.weight", pad(target)), hidden

    def output(self, p: Parameters, x: torch.Tensor) -> torch.Tensor:
        if self.config["norm_position"] == "pre":
            x = layer_norm(x, p, "decoder_norm")
        if self.config["tied_embeddings"] == "none":
            return linear(x, p, "output.projection")
        return x @ p["target_embedding.weight"].T

    def logits(self, p: Parameters, source: list, target: list) -> torch.Tensor:
        config, n_heads = self.config, self.config["n_heads"]
        x, y, hidden = self.inputs(p, source, target)
        ffn = lambda layer: lambda x: feed_forward(under(layer, "feed_forward"), config["activation"], x)
        for i in range(config["n_encoder_layers"]):
            layer = under(p, f"encoder.{i}")
            x = self.residual(
                layer, "attention_residual", x, lambda x: multi_head(under(layer, "attention"), n_heads, x, x, hidden)
            )
            x = self.residual(layer, "feed_forward_residual", x, ffn(layer))
        if config["norm_position"] == "pre":
            x = layer_norm(x, p, "encoder_norm")
        for i in range(config["n_decoder_layers"]):
            layer = under(p, f"decoder.{i}")
            y = self.residual(
                layer,
                "self_residual",
                y,
                lambda y: multi_head(under(layer, "self_attention"), n_heads, y, y, causal=True),
            )
            y = self.residual(
                layer, "cross_residual", y, lambda y: multi_head(under(layer, "cross_attention"), n_heads, y, x, hidden)
            )
            y = self.residual(layer, "feed_forward_residual", y, ffn(layer))
        return self.output(p, y)

    def by_other_means(self, p: Parameters, source: list, target: list) -> torch.Tensor | None:
        """The same by PyTorch's own Transformer layers, which know relu and gelu."""
        config = self.config
        if config["activation"] == "swiglu":
            return None
        options = (config["d_model"], config["n_heads"], config["d_feed_forward"], 0.0)
        keywords = {
            "activation": config["activation"],
            "batch_first": True,
            "norm_first": config["norm_position"] == "pre",
        }

        def weights(prefix: str, names: dict[str, str], residuals: list[str]) -> dict:
            layer = under(p, prefix)
            result = {}
            for theirs, ours in names.items():
                attention = under(layer, ours)
                result[f"{theirs}.in_proj_weight"], result[f"{theirs}.in_proj_bias"] = packed_projection(attention)
                result[f"{theirs}.out_proj.weight"] = attention["output.weight"].T
                result[f"{theirs}.out_proj.bias"] = attention["output.bias"]
            for theirs, ours in (("linear1", "inner"), ("linear2", "outer")):
                result[f"{theirs}.weight"] = layer[f"feed_forward.{ours}.weight"].T
                result[f"{theirs}.bias"] = layer[f"feed_forward.{ours}.bias"]
            for i, residual in enumerate(residuals):
                result[f"norm{i + 1}.weight"] = layer[f"{residual}_residual.norm.gamma"]
                result[f"norm{i + 1}.bias"] = layer[f"{residual}_residual.norm.beta"]
            return result

        x, y, hidden = self.inputs(p, source, target)
        for i in range(config["n_encoder_layers"]):
            module = nn.TransformerEncoderLayer(*options, **keywords)
            given = weights(f"encoder.{i}", {"self_attn": "attention"}, ["attention", "feed_forward"])
            x = torch.func.functional_call(module, given, (x,), {"src_key_padding_mask": hidden}, strict=True)
        if config["norm_position"] == "pre":
            x = layer_norm(x, p, "encoder_norm")
        future = torch.ones(y.shape[1], y.shape[1], dtype=torch.bool).triu(1)
        for i in range(config["n_decoder_layers"]):
            module = nn.TransformerDecoderLayer(*options, **keywords)
            names = {"self_attn": "self_attention", "multihead_attn": "cross_attention"}
            given = weights(f"decoder.{i}", names, ["self", "cross", "feed_forward"])
            masks = {"tgt_mask": future, "memory_key_padding_mask": hidden}
            y = torch.func.functional_call(module, given, (y, x), masks, strict=True)
        return self.output(p, y)


# --- Recurrent layers ------------------------------------------------------------------------------------------------

N_GATES = {"vanilla": 1, "gru": 3, "lstm": 4}
MODULES = {"vanilla": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


def cell_shapes(kind: str, d_input: int, d: int) -> dict:
    n = N_GATES[kind]
    shapes = linear_shapes("input", d_input, n * d) | {"recurrent": [d, n * d]}
    return shapes | ({"candidate_bias": [d]} if kind == "gru" else {})


def cell_weights(kind: str, p: dict, extra_input: torch.Tensor | None = None) -> list[torch.Tensor]:
    """PyTorch's weight_ih, weight_hh, bias_ih and bias_hh; `extra_input` are rows for further inputs."""
    w, u, b = p["input.weight"], p["recurrent"], p["input.bias"]
    if extra_input is not None:
        w = torch.cat([w, extra_input])
    d = u.shape[0]
    b_u = torch.zeros(u.shape[1])
    if kind == "gru":
        # Both have (r, z, n). PyTorch has a second bias for all three gates, the Rust cell for the candidate only.
        b_u = torch.cat([torch.zeros(2 * d), p["candidate_bias"]])
    if kind == "lstm":
        # (i, f, o, g) here, (i, f, g, o) there.
        gates = lambda packed: torch.cat([packed.split(d, dim=-1)[gate] for gate in (0, 1, 3, 2)], dim=-1)
        w, u, b = gates(w), gates(u), gates(b)
    return [w.T, u.T, b, b_u]


def cell_step(kind: str, weights: list[torch.Tensor], x: torch.Tensor, state: list[torch.Tensor]) -> list[torch.Tensor]:
    """One step of PyTorch's cell; a state is [hidden] or [hidden, memory]."""
    if kind == "lstm":
        return list(torch.lstm_cell(x, state, *weights))
    step = torch.gru_cell if kind == "gru" else torch.rnn_tanh_cell
    return [step(x, state[0], *weights)]


def cell_by_equations(kind: str, p: dict, x: torch.Tensor, state: list[torch.Tensor]) -> list[torch.Tensor]:
    """The equations themselves, to check the mapping of the gates."""
    h = state[0]
    d = h.shape[1]
    w, b, u = (p[name].split(d, dim=-1) for name in ("input.weight", "input.bias", "recurrent"))
    gate = lambda i: x @ w[i] + b[i] + h @ u[i]
    if kind == "vanilla":
        return [torch.tanh(gate(0))]
    if kind == "gru":
        r, z = torch.sigmoid(gate(0)), torch.sigmoid(gate(1))
        n = torch.tanh(x @ w[2] + b[2] + r * (h @ u[2] + p["candidate_bias"]))
        return [(1 - z) * n + z * h]
    i, f, o, g = torch.sigmoid(gate(0)), torch.sigmoid(gate(1)), torch.sigmoid(gate(2)), torch.tanh(gate(3))
    c = f * state[1] + i * g
    return [o * torch.tanh(c), c]


def run_module(kind: str, d_input: int, d: int, cells: list[list[list[torch.Tensor]]], x, start=None):
    """PyTorch's stack of cells; `cells[layer][direction]` are its weights. Outputs and last states."""
    n_directions = len(cells[0])
    module = MODULES[kind](d_input, d, len(cells), batch_first=True, bidirectional=n_directions == 2)
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    weights = {
        f"{name}_l{layer}{'_reverse' if direction else ''}": value
        for layer, directions in enumerate(cells)
        for direction, values in enumerate(directions)
        for name, value in zip(names, values)
    }
    if start is not None:
        start = [torch.stack([layer[part] for layer in start]) for part in range(len(start[0]))]
        start = tuple(start) if kind == "lstm" else start[0]
    outputs, last = torch.func.functional_call(module, weights, (x, start), strict=True)
    return outputs, list(last) if kind == "lstm" else [last]


def encoder_shapes(kind: str, d_input: int, d: int, n_layers: int, n_directions: int) -> dict:
    shapes = {}
    for layer in range(n_layers):
        for direction in ("forward", "backward")[:n_directions]:
            cell = cell_shapes(kind, d_input if layer == 0 else n_directions * d, d)
            shapes |= prefixed(f"layers.{layer}.{direction}", cell)
    return shapes


def run_encoder(p: dict, kind: str, d: int, n_layers: int, n_directions: int, x: torch.Tensor, lengths: list[int]):
    """States, zero on padding, and for each layer the last [hidden, memory], both directions side by side."""
    cells = []
    for layer in range(n_layers):
        cells.append([])
        for direction in ("forward", "backward")[:n_directions]:
            cell = under(p, f"layers.{layer}.{direction}")
            cells[-1].append(cell_weights(kind, cell))
    packed = pack_padded_sequence(x, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    outputs, last = run_module(kind, x.shape[2], d, cells, packed)
    states, _ = pad_packed_sequence(outputs, batch_first=True, total_length=x.shape[1])
    # PyTorch's order is layer by layer, forward before backward.
    finals = [
        [torch.cat(list(part[layer * n_directions : (layer + 1) * n_directions]), dim=1) for part in last]
        for layer in range(n_layers)
    ]
    return states, finals


def bahdanau_shapes(d_query: int, d_value: int, d_attention: int) -> dict:
    shapes = linear_shapes("query", d_query, d_attention, bias=False) | linear_shapes("key", d_value, d_attention)
    return prefixed("alignment.score", shapes | {"vector": [d_attention, 1]})


def bahdanau(p: dict, query: torch.Tensor, values: torch.Tensor, lengths: list[int]) -> tuple[torch.Tensor, ...]:
    """Context and weights, sentence by sentence, so that no mask is needed: e_i = v^T tanh(W s + U h_i + b)."""
    p = under(p, "alignment.score")
    contexts, weights = [], []
    beams, padded_len = len(query) // len(values), values.shape[1]
    for row, s in enumerate(query):
        length = lengths[row // beams]
        h = values[row // beams, :length]
        e = torch.tanh(s @ p["query.weight"] + h @ p["key.weight"] + p["key.bias"]) @ p["vector"].squeeze(1)
        a = torch.softmax(e, dim=0)
        contexts.append(a @ h)
        weights.append(F.pad(a, (0, padded_len - length)))
    return torch.stack(contexts), torch.stack(weights)


# --- The recurrent encoder-decoder -----------------------------------------------------------------------------------


class Rnn:
    def __init__(self, config: dict, vocabularies: dict):
        self.config = config
        e, d, kind, n_layers = config["d_embedding"], config["d_hidden"], config["cell"], config["n_layers"]
        self.n_directions = 2 if config["directions"] == "both" else 1
        d_context = self.n_directions * d
        shapes = {"source_embedding.weight": [vocabularies["source"], e]}
        shapes |= {"target_embedding.weight": [vocabularies["target"], e]}
        shapes |= prefixed("encoder", encoder_shapes(kind, e, d, n_layers, self.n_directions))
        for layer in range(n_layers):
            shapes |= prefixed(f"decoder.{layer}", cell_shapes(kind, e if layer == 0 else d, d))
            if config["bridge"] == "learned":
                for part in ("hidden", "memory") if kind == "lstm" else ("hidden",):
                    shapes |= linear_shapes(f"bridge.{layer}.{part}", d_context, d)
        shapes |= self.attention_shapes(d_context)
        d_readout = {"state": d, "state-context": d + d_context}.get(config["readout"]["kind"])
        if config["readout"]["kind"] == "deep-output":
            d_readout = config["readout"]["d_maxout"]
            shapes |= linear_shapes("readout.deep", d + e + d_context, 2 * d_readout)
        if config["output"] == "similarity":
            shapes |= linear_shapes("output_projection", d_readout, e)
        else:
            shapes |= linear_shapes("output.projection", d_readout, vocabularies["target"])
        self.shapes = shapes

    def attention_shapes(self, d_context: int) -> dict:
        """Those of attention and of the further input."""
        config, d = self.config, self.config["d_hidden"]
        shapes = {}
        if config["attention"]["kind"] == "bahdanau":
            d_attention = config["attention"]["score"]["d_attention"]
            shapes = prefixed("attention", bahdanau_shapes(d, d_context, d_attention))
        if config["context"] == "every-step":
            shapes |= linear_shapes(self.further_input(), d_context, N_GATES[config["cell"]] * d, bias=False)
        return shapes

    def further_input(self) -> str:
        """The path of the matrix for what the decoder's first layer reads beside the word, if it reads anything."""
        return "context_input" if self.config["attention"]["kind"] == "none" else "attention.context_input"

    def run_encoder(self, p: Parameters, source: list):
        """States in the order in which the words are read, and the last states of each layer."""
        config = self.config
        x = F.embedding(pad(self.as_read(source)), p["source_embedding.weight"])
        lengths, sizes = [len(sentence) for sentence in source], (config["d_hidden"], config["n_layers"])
        return run_encoder(under(p, "encoder"), config["cell"], *sizes, self.n_directions, x, lengths)

    def as_read(self, source: list) -> list:
        if self.config["reverse_source"]:
            return [sentence[-2::-1] + sentence[-1:] for sentence in source]
        return source

    def first_states(self, p: Parameters, finals: list[list[torch.Tensor]]) -> list[list[torch.Tensor]]:
        """The decoder's, in each layer, from the encoder's last."""
        if self.config["bridge"] == "zeros":
            return [[torch.zeros(len(value), self.config["d_hidden"]) for value in final] for final in finals]
        bridge = lambda value, layer, part: torch.tanh(linear(value, p, f"bridge.{layer}.{part}"))
        return [
            [bridge(value, layer, part) for value, part in zip(final, ("hidden", "memory"))]
            for layer, final in enumerate(finals)
        ]

    def encode(self, p: Parameters, source: list):
        """Annotations, the fixed context, and the decoder's first state in each layer."""
        states, finals = self.run_encoder(p, source)
        return states, finals[-1][0], self.first_states(p, finals)

    def decoder_weights(self, p: Parameters) -> list[list[torch.Tensor]]:
        """What is read beside the word is a further input of the first layer: [W, C] [y; c] = W y + C c."""
        further = p.get(f"{self.further_input()}.weight")
        return [
            cell_weights(self.config["cell"], under(p, f"decoder.{layer}"), further if layer == 0 else None)
            for layer in range(self.config["n_layers"])
        ]

    def read_out(self, p: Parameters, states, embedded, contexts) -> torch.Tensor:
        kind = self.config["readout"]["kind"]
        if kind == "state":
            t = states
        elif kind == "state-context":
            t = torch.cat([states, contexts], dim=-1)
        else:
            d, e = self.config["d_hidden"], self.config["d_embedding"]
            u, v, c = p["readout.deep.weight"].split([d, e, self.n_directions * d])
            pairs = states @ u + embedded @ v + contexts @ c + p["readout.deep.bias"]
            first, second = pairs.unflatten(-1, (2, -1)).unbind(-2)
            KINKS.append((first - second).detach().abs().min().item())
            t = torch.maximum(first, second)
        if self.config["output"] == "projection":
            return linear(t, p, "output.projection")
        return linear(t, p, "output_projection") @ p["target_embedding.weight"].T

    def logits(self, p: Parameters, source: list, target: list) -> torch.Tensor:
        """Cell by cell."""
        annotations, fixed, layers = self.encode(p, source)
        embedded = F.embedding(pad(target), p["target_embedding.weight"])
        weights, lengths = self.decoder_weights(p), [len(sentence) for sentence in source]
        states, contexts = [], []
        for y in embedded.unbind(1):
            context = fixed
            if self.config["attention"]["kind"] == "bahdanau":
                context, _ = bahdanau(under(p, "attention"), layers[-1][0], annotations, lengths)
            x = torch.cat([y, context], dim=1) if self.config["context"] == "every-step" else y
            for layer, state in enumerate(layers):
                layers[layer] = cell_step(self.config["cell"], weights[layer], x, state)
                x = layers[layer][0]
            states.append(x)
            contexts.append(context)
        return self.read_out(p, torch.stack(states, 1), embedded, torch.stack(contexts, 1))

    def by_other_means(self, p: Parameters, source: list, target: list) -> torch.Tensor | None:
        """The same with the decoder as one PyTorch sequence module; attention makes that impossible."""
        if self.config["attention"]["kind"] != "none":
            return None
        _, fixed, start = self.encode(p, source)
        embedded = F.embedding(pad(target), p["target_embedding.weight"])
        contexts = fixed.unsqueeze(1).expand(-1, embedded.shape[1], -1)
        x = torch.cat([embedded, contexts], dim=2) if self.config["context"] == "every-step" else embedded
        cells = [[weights] for weights in self.decoder_weights(p)]
        states, _ = run_module(self.config["cell"], x.shape[2], self.config["d_hidden"], cells, x, start)
        return self.read_out(p, states, embedded, contexts)


# --- Model cases -----------------------------------------------------------------------------------------------------


def transformer_cases() -> list[dict]:
    rows = [
        # norm, positions, activation, tied, encoder and decoder layers, batch
        ("pre", "sinusoidal", "relu", "none", 2, 3, 0),
        ("pre", "sinusoidal", "swiglu", "all", 1, 2, 1),
        ("pre", "learned", "gelu", "target-output", 2, 3, 1),
        ("pre", "learned", "swiglu", "none", 1, 1, 0),
        ("post", "sinusoidal", "gelu", "all", 2, 3, 0),
        ("post", "sinusoidal", "relu", "target-output", 1, 2, 1),
        ("post", "learned", "relu", "all", 2, 1, 0),
        ("post", "learned", "swiglu", "none", 2, 3, 1),
    ]
    cases = []
    for norm, positions, activation, tied, n_encoder, n_decoder, batch in rows:
        config = {
            "kind": "transformer",
            "d_model": 10,
            "d_feed_forward": 7,
            "n_heads": 5,
            "n_encoder_layers": n_encoder,
            "n_decoder_layers": n_decoder,
            "dropout_rate": 0.0,
            "attention_dropout_rate": 0.0,
            "activation_dropout_rate": 0.0,
            "norm_position": norm,
            "activation": activation,
            "positions": {"kind": "sinusoidal"} if positions == "sinusoidal" else {"kind": "learned", "max_len": 8},
            "tied_embeddings": tied,
        }
        name = f"transformer/{norm}-{positions}-{activation}-tied-{tied}-{n_encoder}x{n_decoder}"
        vocabularies = SHARED if tied == "all" else SEPARATE
        cases.append({"name": name, "config": config, "vocabularies": vocabularies, "batch": BATCHES[batch]})
    return cases


def rnn_cases() -> list[dict]:
    rows = [
        # cell, layers, directions, reversed, attention, context, bridge, readout, output
        ("vanilla", 1, "forward", False, "none", "every-step", "zeros", "state", "similarity"),
        ("vanilla", 2, "both", False, "bahdanau", "every-step", "learned", "deep-output", "projection"),
        ("vanilla", 1, "both", True, "none", "initial", "learned", "state-context", "similarity"),
        ("vanilla", 2, "forward", False, "bahdanau", "every-step", "zeros", "state", "projection"),
        ("gru", 1, "both", False, "bahdanau", "every-step", "learned", "deep-output", "similarity"),
        ("gru", 1, "forward", False, "none", "every-step", "learned", "deep-output", "projection"),
        ("gru", 2, "both", False, "none", "initial", "learned", "state", "projection"),
        ("gru", 2, "forward", True, "bahdanau", "every-step", "zeros", "state-context", "similarity"),
        ("gru", 1, "both", False, "none", "every-step", "zeros", "state", "similarity"),
        ("gru", 2, "both", True, "bahdanau", "every-step", "learned", "state", "similarity"),
        ("lstm", 2, "forward", True, "none", "initial", "learned", "state", "projection"),
        ("lstm", 1, "both", False, "bahdanau", "every-step", "learned", "state-context", "projection"),
        ("lstm", 2, "both", False, "bahdanau", "every-step", "zeros", "deep-output", "similarity"),
        ("lstm", 1, "forward", False, "none", "every-step", "learned", "deep-output", "similarity"),
        ("lstm", 2, "both", True, "none", "every-step", "zeros", "state-context", "similarity"),
        ("lstm", 1, "both", False, "none", "initial", "learned", "state-context", "projection"),
    ]
    cases = []
    bahdanau = {"kind": "bahdanau", "score": {"kind": "additive", "d_attention": 3}}
    for i, (cell, n_layers, directions, is_reversed, attention, context, bridge, readout, output) in enumerate(rows):
        config = {
            "kind": "rnn",
            "cell": cell,
            "d_embedding": 5,
            "d_hidden": 7,
            "n_layers": n_layers,
            "directions": directions,
            "reverse_source": is_reversed,
            "attention": bahdanau if attention == "bahdanau" else {"kind": "none"},
            "context": context,
            "bridge": bridge,
            "readout": {"kind": readout} | ({"d_maxout": 4} if readout == "deep-output" else {}),
            "output": output,
            "dropout_rate": 0.0,
        }
        parts = [f"{cell}{n_layers}", directions] + ["reversed"] * is_reversed
        parts += [attention if attention != "none" else "fixed", context, bridge, readout, output]
        name = "rnn/" + "-".join(parts)
        cases.append({"name": name, "config": config, "vocabularies": SEPARATE, "batch": BATCHES[i % 2]})
    return cases


def coefficients(shape: tuple[int, int, int], target: list, first: int = 0) -> torch.Tensor:
    """What the loss multiplies the logits with; `first` is the place in the batch of the first sentence."""
    b, t, v = (torch.arange(n).double() for n in shape)
    weights = 0.1 * torch.cos(0.5 * (first + b)[:, None, None] + 0.3 * t[:, None] + 0.2 * v)
    return weights.masked_fill(is_padding([len(sentence) for sentence in target], shape[1]).unsqueeze(2), 0)


def gradients(loss: torch.Tensor, parameters: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return dict(zip(parameters, torch.autograd.grad(loss, list(parameters.values()))))


def assert_equal(what: str, one: torch.Tensor, other: torch.Tensor, tolerance: float = 1e-12) -> None:
    error = (one - other).abs().max().item()
    assert error <= tolerance, f"{what}: {error}"


def check_model(name: str, model, p: Parameters, source, target, logits, grads) -> None:
    """The checks of the module's documentation."""
    other = model.by_other_means(p, source, target)
    padding = is_padding([len(sentence) for sentence in target], logits.shape[1]).unsqueeze(2)
    if other is not None:
        assert_equal(f"{name}: other means", logits, other.masked_fill(padding, 0))
        by_other_means = gradients((other * coefficients(other.shape, target)).sum(), p)
        for path in p:
            assert_equal(f"{name}: other means, gradient of {path}", grads[path], by_other_means[path])
    total = {path: torch.zeros_like(value) for path, value in p.items()}
    for i, (one_source, one_target) in enumerate(zip(source, target)):
        alone = model.logits(p, [one_source], [one_target])
        assert_equal(f"{name}: sentence {i} alone", logits[i, : len(one_target)], alone[0])
        for path, value in gradients((alone * coefficients(alone.shape, [one_target], i)).sum(), p).items():
            total[path] += value
    for path in p:
        assert_equal(f"{name}: sentences alone, gradient of {path}", grads[path], total[path])
    step = 1e-6
    for path in p:
        direction = torch.cos(torch.arange(p[path].numel()).double()).reshape(p[path].shape)
        ends = []
        for sign in (1, -1):
            with torch.no_grad():
                moved = model.logits(moved_parameters(p, path, sign * step * direction), source, target)
                ends.append((moved * coefficients(moved.shape, target)).sum().item())
        quotient = (ends[0] - ends[1]) / (2 * step)
        error = abs(quotient - (grads[path] * direction).sum().item())
        assert error < 1e-7, f"{name}: difference quotient of {path}: {error}"


def moved_parameters(p: Parameters, path: str, by: torch.Tensor) -> Parameters:
    moved = Parameters({})
    moved.update(p)
    moved[path] = p[path] + by
    return moved


def model_case(case: dict, kind: type, scale: float) -> dict:
    """What the file says of a model of class `kind`, once checked; `case` is {name, config, vocabularies, batch}."""
    source, target = case["batch"]["source"], case["batch"]["target_input"]
    model = kind(case["config"], case["vocabularies"])
    p = Parameters(model.shapes, scale)
    KINKS.clear()
    logits = model.logits(p, source, target)
    assert min(KINKS, default=1) > 1e-5, f"{case['name']}: close to a kink: {min(KINKS)}"
    grads = gradients((logits * coefficients(logits.shape, target)).sum(), p)
    logits = logits.masked_fill(is_padding([len(sentence) for sentence in target], logits.shape[1]).unsqueeze(2), 0)
    check_model(case["name"], model, p, source, target, logits, grads)
    return {
        "name": case["name"],
        "config": case["config"],
        "vocabularies": case["vocabularies"],
        **case["batch"],
        "parameter_scale": scale,
        "parameters": model.shapes,
        "logits_shape": list(logits.shape),
        "logits": numbers(logits),
        "gradients": {path: numbers(value) for path, value in grads.items()},
    }


# --- Layer cases -----------------------------------------------------------------------------------------------------


def layer_case(name: str, layer: str, config: dict, inputs: dict, parameters: dict, run) -> dict:
    """`inputs` is {path: (shape, scale)}; `run(x, p)` gives outputs, and perhaps traced values, as {name: tensor}."""
    x = {path: closed_form(path, shape, scale).requires_grad_() for path, (shape, scale) in inputs.items()}
    p = Parameters(parameters)
    result = run(x, p)
    outputs, traced = result if isinstance(result, tuple) else (result, {})
    loss = sum(
        (output.flatten() * 0.1 * torch.cos(0.5 * torch.arange(output.numel()).double() + 0.3 * k)).sum()
        for k, output in enumerate(outputs.values())
    )
    listed = lambda tensors: [{"name": k, "shape": list(v.shape), "values": numbers(v)} for k, v in tensors.items()]
    case = {
        "name": name,
        "layer": layer,
        "config": config,
        "inputs": {path: {"shape": shape, "scale": scale} for path, (shape, scale) in inputs.items()},
        "parameters": parameters,
        "outputs": listed(outputs),
        "gradients": {path: numbers(value) for path, value in gradients(loss, x | p).items()} if x else {},
    }
    return case | ({"traced": listed(traced)} if traced else {})


def attention_cases() -> list[dict]:
    cases = []
    for name, lengths, causal, query_len, key_len in [
        ("plain", None, False, 3, 5),
        ("padding", [3, 5, 1], False, 4, 5),
        ("padding-with-an-empty-sentence", [3, 0, 5], False, 4, 5),
        ("causal", None, True, 5, 5),
    ]:
        batch, n_heads, d_head = 3, 2, 7

        def run(x, p, lengths=lengths, causal=causal, key_len=key_len):
            query, key, value = x["query"], x["key"], x["value"]
            if lengths is None:
                return {"context": F.scaled_dot_product_attention(query, key, value, is_causal=causal)}
            # Sentence by sentence without its padding; a sentence without tokens has context zero.
            rows = [
                F.scaled_dot_product_attention(query[i], key[i, :, :n], value[i, :, :n])
                if n
                else torch.zeros_like(query[i])
                for i, n in enumerate(lengths)
            ]
            visible = ~is_padding(lengths, key_len)[:, None, None, :]
            masked = F.scaled_dot_product_attention(query, key, value, attn_mask=visible)
            assert_equal("scaled dot-product with a mask", torch.stack(rows), masked)
            return {"context": torch.stack(rows)}

        inputs = {
            "query": ([batch, n_heads, query_len, d_head], 4.0),
            "key": ([batch, n_heads, key_len, d_head], 4.0),
            "value": ([batch, n_heads, key_len, d_head], 4.0),
        }
        config = {"lengths": lengths, "causal": causal}
        cases.append(layer_case(f"scaled-dot-product/{name}", "scaled-dot-product", config, inputs, {}, run))

    d, n_heads = 10, 5
    for name, lengths, causal in [("padding", [5, 2, 3], False), ("causal", None, True)]:

        def run(x, p, lengths=lengths, causal=causal):
            hidden = None if lengths is None else is_padding(lengths, 5)
            output = multi_head(p, n_heads, x["input"], x["input"], hidden, causal)
            # Head by head, to check the mapping of the packed projection.
            packed = linear(x["input"], p, "query_key_value").split(d // n_heads, dim=2)
            mask = torch.ones(5, 5, dtype=torch.bool).tril() if causal else ~hidden.unsqueeze(1)
            heads = [F.scaled_dot_product_attention(*packed[head::n_heads], attn_mask=mask) for head in range(n_heads)]
            assert_equal("self-attention by heads", output, linear(torch.cat(heads, dim=2), p, "output"))
            return {"output": output}

        config = {"d_model": d, "n_heads": n_heads, "lengths": lengths, "causal": causal}
        inputs = {"input": ([3, 5, d], 4.0)}
        cases.append(
            layer_case(f"self-attention/{name}", "self-attention", config, inputs, self_attention_shapes(d), run)
        )

    lengths = [5, 2, 3]
    run = lambda x, p: {"output": multi_head(p, n_heads, x["input"], x["memory"], is_padding(lengths, 5))}
    config = {"d_model": d, "n_heads": n_heads, "lengths": lengths}
    inputs = {"input": ([3, 4, d], 4.0), "memory": ([3, 5, d], 4.0)}
    cases.append(
        layer_case("cross-attention/padding", "cross-attention", config, inputs, cross_attention_shapes(d), run)
    )

    for name, lengths, beams in [
        ("padding", [5, 2, 3], 1),
        ("beams", [1, 5, 4], 2),
        ("an-empty-sentence", [4, 0, 5], 1),
    ]:
        d_query, d_value, d_attention = 7, 11, 3

        def run(x, p, lengths=lengths, beams=beams):
            context, weights = bahdanau(p, x["query"], x["values"], lengths)
            return {"context": context}, {"weights": weights.unflatten(0, (-1, beams))}

        config = {
            "d_query": d_query,
            "d_value": d_value,
            "d_attention": d_attention,
            "lengths": lengths,
            "beams": beams,
        }
        inputs = {"query": ([3 * beams, d_query], 4.0), "values": ([3, 5, d_value], 4.0)}
        shapes = bahdanau_shapes(d_query, d_value, d_attention)
        cases.append(layer_case(f"bahdanau/{name}", "bahdanau", config, inputs, shapes, run))
    return cases


def feed_forward_cases() -> list[dict]:
    cases = []
    for activation in ("relu", "gelu", "swiglu"):
        config = {"d_model": 10, "d_feed_forward": 7, "activation": activation}
        KINKS.clear()
        cases.append(
            layer_case(
                f"feed-forward/{activation}",
                "feed-forward",
                config,
                {"input": ([3, 5, 10], 4.0)},
                feed_forward_shapes(10, 7, activation),
                lambda x, p: {"output": feed_forward(p, activation, x["input"])},
            )
        )
        assert min(KINKS, default=1) > 1e-5, f"close to a kink: {min(KINKS)}"
    return cases


def recurrent_cases() -> list[dict]:
    cases = []
    d_input, d = 5, 7
    for kind in N_GATES:
        parts = ["hidden", "memory"] if kind == "lstm" else ["hidden"]

        def run(x, p, kind=kind, parts=parts):
            start = [x[part] for part in parts]
            state = cell_step(kind, cell_weights(kind, p), x["input"], start)
            for one, other in zip(state, cell_by_equations(kind, p, x["input"], start)):
                assert_equal(f"cell {kind} by its equations", one, other)
            return dict(zip(parts, state))

        config = {"cell": kind, "d_input": d_input, "d_hidden": d}
        inputs = {"input": ([3, d_input], 4.0)} | {part: ([3, d], 4.0) for part in parts}
        cases.append(layer_case(f"cell/{kind}", "cell", config, inputs, cell_shapes(kind, d_input, d), run))
    for kind in N_GATES:
        for n_layers, n_directions in ((1, 1), (2, 2)):
            lengths = [4, 1, 6]

            def run(x, p, kind=kind, n_layers=n_layers, n_directions=n_directions):
                states, finals = run_encoder(p, kind, d, n_layers, n_directions, x["input"], lengths)
                outputs = {"states": states}
                for layer, final in enumerate(finals):
                    for part, values in zip(("hidden", "memory"), final):
                        for direction, value in zip(("forward", "backward"), values.chunk(n_directions, dim=1)):
                            outputs[f"finals.{layer}.{direction}.{part}"] = value
                return outputs

            config = {
                "cell": kind,
                "d_input": d_input,
                "d_hidden": d,
                "n_layers": n_layers,
                "n_directions": n_directions,
                "lengths": lengths,
            }
            name = f"recurrent-encoder/{kind}-{n_layers}-layers-{n_directions}-directions"
            shapes = encoder_shapes(kind, d_input, d, n_layers, n_directions)
            cases.append(layer_case(name, "recurrent-encoder", config, {"input": ([3, 6, d_input], 4.0)}, shapes, run))
    return cases


def sinusoid_cases() -> list[dict]:
    cases = []
    for offset, length in ((0, 8), (5000, 3)):
        config = {"d_model": 10, "offset": offset, "len": length}
        run = lambda x, p: ({}, {})
        case = layer_case(f"sinusoids/{offset}", "sinusoids", config, {}, {}, run)
        table = sinusoids(offset, length, 10)
        by_power = [
            [(math.cos if column % 2 else math.sin)(pos / 10_000 ** (column // 2 * 2 / 10)) for column in range(10)]
            for pos in range(offset, offset + length)
        ]
        assert_equal("sinusoids", table, torch.tensor(by_power), 1e-11)
        case["outputs"] = [{"name": "table", "shape": list(table.shape), "values": numbers(torch.tensor(by_power))}]
        cases.append(case)
    return cases


def loss_cases() -> list[dict]:
    """The loss itself is the output, so that its gradient is multiplied with 0.1 * cos(0)."""
    cases = []
    targets = torch.tensor([5, 0, 12, 2, 0, 7, 1, 2, 0])
    for smoothing in (0.0, 0.1):

        def run(x, p, smoothing=smoothing):
            logits = x["logits"]
            loss = F.cross_entropy(logits, targets, label_smoothing=smoothing, reduction="sum", ignore_index=0)
            nll = F.cross_entropy(logits, targets, reduction="sum", ignore_index=0)
            log_p = F.log_softmax(logits, dim=1)[targets != 0]
            picked = -log_p.gather(1, targets[targets != 0].unsqueeze(1)).sum()
            assert_equal("smoothed loss", loss, (1 - smoothing) * picked - smoothing * log_p.mean(dim=1).sum())
            return {"loss": loss.reshape(1)}, {"nll": nll.reshape(1)}

        config = {"smoothing": smoothing, "targets": targets.tolist(), "n_tokens": int((targets != 0).sum())}
        inputs = {"logits": ([len(targets), 13], 16.0)}
        cases.append(layer_case(f"cross-entropy/{smoothing}", "cross-entropy", config, inputs, {}, run))
    return cases


def layer_norm_cases() -> list[dict]:
    run = lambda x, p: {"output": layer_norm(x["input"], {f"norm.{k}": v for k, v in p.items()}, "norm")}
    shapes = {"gamma": [10], "beta": [10]}
    return [layer_case("layer-norm", "layer-norm", {"d_model": 10}, {"input": ([3, 5, 10], 4.0)}, shapes, run)]


# --- The file --------------------------------------------------------------------------------------------------------


def numbers(tensor: torch.Tensor) -> list[float]:
    """The elements with 9 significant digits; what rounding alone has left of a zero is zero."""
    return [0.0 if abs(x) < 1e-12 else float(f"{x:.9g}") for x in tensor.detach().flatten().tolist()]


def difference(path: str, stored, fresh) -> str | None:
    """Where two JSON values differ by more than the last digits, if anywhere."""
    if isinstance(stored, dict) and isinstance(fresh, dict):
        if stored.keys() != fresh.keys():
            return f"{path}: other keys"
        pairs = ((f"{path}.{key}", stored[key], fresh[key]) for key in stored)
    elif isinstance(stored, list) and isinstance(fresh, list):
        if len(stored) != len(fresh):
            return f"{path}: other length"
        pairs = ((f"{path}[{i}]", *pair) for i, pair in enumerate(zip(stored, fresh)))
    elif isinstance(stored, float) and isinstance(fresh, float):
        return None if math.isclose(stored, fresh, rel_tol=1e-7, abs_tol=1e-11) else f"{path}: {stored} is now {fresh}"
    else:
        return None if stored == fresh else f"{path}: {stored} is now {fresh}"
    return next((found for found in (difference(*pair) for pair in pairs) if found), None)


def write_or_check(name: str, documentation: str, models, layers, **versions: str) -> None:
    """The command line of `name`.py; `models()` and `layers()` make its cases, `versions` are further libraries'."""
    arguments = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--check", action="store_true", help="compare instead of writing")
    check = arguments.parse_args().check
    path = Path(__file__).with_name(f"{name}.json.gz")
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    generator = {"command": f"python tests/golden/{name}.py", "python": platform.python_version()}
    generator |= {"torch": torch.__version__, "numpy": np.__version__} | versions
    content = {"generator": generator, "models": models(), "layers": layers()}
    if check:
        stored = json.loads(gzip.decompress(path.read_bytes()))
        found = difference(f"{name}.json", stored | {"generator": None}, content | {"generator": None})
        if found:
            raise SystemExit(found)
        libraries = {"PyTorch": torch.__version__} | versions
        print(f"{path.name} agrees with {' and '.join(f'{library} {its}' for library, its in libraries.items())}")
        return
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    n_cases = len(content["models"]), len(content["layers"])
    print(f"{path.name}: {n_cases[0]} models, {n_cases[1]} layers, {path.stat().st_size} bytes")


def model_cases() -> list[dict]:
    transformers = [model_case(case, Transformer, 1.0) for case in transformer_cases()]
    return transformers + [model_case(case, Rnn, 4.0) for case in rnn_cases()]


def layer_cases() -> list[dict]:
    cases = attention_cases() + feed_forward_cases() + recurrent_cases()
    return cases + layer_norm_cases() + sinusoid_cases() + loss_cases()


if __name__ == "__main__":
    write_or_check("models", __doc__, model_cases, layer_cases)
