#!/usr/bin/env python3
"""Writes mixers.json.gz: Transformers whose layers mix positions by recurrences instead of attention, and recurrent decoders
whose encoder's layers are such recurrences, by PyTorch.

    pip install torch==2.15.0 numpy==2.4.6 transformers==5.23.0
    python tests/golden/mixers.py            # write the file anew
    python tests/golden/mixers.py --check    # compare the file with what PyTorch says now

The layout of the file, the closed form of parameters and inputs, the loss and the checks of each model are those of
models.py; everything is computed in 64 bits. Every recurrence is a plain loop over the words of one sentence. The second
program of each model has no loop over a state: nn.RNN, nn.GRU and nn.LSTM run the classical cells; every other state is
written as the sum of what all words before have put into it, each times the product of the transitions since, which are
matrices written out in full.
"""

import math

import torch
import torch.nn.functional as F

import models
from models import Parameters, feed_forward, is_padding, layer_norm, linear, linear_shapes, pad, prefixed, under
from recurrent import Attending
from positions import BATCHES, SEPARATE, SHARED, attend, grouped_shapes

CELLS = ("vanilla", "gru", "lstm")
N_GATES = {"min-gru": 2, "min-lstm": 3, "ssru": 2, "rg-lru": 3}
N_PACKED = {"linear": 3, "gated-linear": 4, "delta": 3, "gated-delta": 4}


# --- Shapes ----------------------------------------------------------------------------------------------------------


def vector_shapes(kind: str, d_input: int, d: int) -> dict:
    if kind in CELLS:
        return models.cell_shapes(kind, d_input, d)
    return linear_shapes("gates", d_input, N_GATES[kind] * d) | ({"decay": [d]} if kind == "rg-lru" else {})


def core_shapes(mixer: dict, d: int, n_heads: int) -> dict:
    kind = mixer["kind"]
    if kind in CELLS or kind in N_GATES:
        return vector_shapes(kind, d, d * mixer.get("expansion", 1))
    shapes = linear_shapes("input", d, N_PACKED[kind] * d)
    rates = {"gated-linear": d, "delta": n_heads, "gated-delta": 2 * n_heads}
    if kind in rates:
        shapes |= linear_shapes("rates", d, rates[kind]) | {"norm.gamma": [d // n_heads]}
    return shapes | ({"decay": [n_heads]} if kind == "gated-delta" else {})


def mixer_shapes(mixer: dict, d: int, n_heads: int, side: str) -> dict:
    shapes = {"convolution.weight": [mixer["convolution"], d]} if "convolution" in mixer else {}
    if mixer["kind"] == "attention":
        name = "attention" if side == "encoder" else "self_attention"
        return shapes | prefixed(name, grouped_shapes(d, d, False))
    both = side == "encoder" and mixer.get("bidirectional", True)
    core = core_shapes(mixer, d, n_heads)
    recurrence = prefixed("forward", core) | (prefixed("backward", core) if both else {})
    width = (2 if both else 1) * d * mixer.get("expansion", 1)
    if width != d or mixer["kind"] in N_PACKED:
        recurrence |= linear_shapes("output", width, d)
    return shapes | prefixed("recurrence", recurrence)


# --- Recurrences over one sentence, [length, width] ------------------------------------------------------------------


def positive(x: torch.Tensor) -> torch.Tensor:
    models.KINKS.append(x.abs().min().item())
    return torch.where(x >= 0, x + 0.5, torch.sigmoid(x))


def cell_states(p: dict, kind: str, x: torch.Tensor, other: bool) -> torch.Tensor:
    d = p["recurrent"].shape[0]
    start = [torch.zeros(1, d) for _ in range(2 if kind == "lstm" else 1)]
    if other:
        weights = models.cell_weights(kind, p)
        return models.run_module(kind, x.shape[1], d, [[weights]], x[None])[0][0]
    states = []
    for t in range(len(x)):
        start = models.cell_by_equations(kind, p, x[t : t + 1], start)
        states.append(start[0][0])
    return torch.stack(states)


def vector_states(p: dict, kind: str, x: torch.Tensor, other: bool) -> torch.Tensor:
    gates = linear(x, p, "gates").chunk(N_GATES[kind], dim=1)
    if kind == "min-gru":
        z = torch.sigmoid(gates[0])
        a, b = 1 - z, z * positive(gates[1])
    elif kind == "min-lstm":
        f, i = torch.sigmoid(gates[0]), torch.sigmoid(gates[1])
        a, b = f / (f + i), i / (f + i) * positive(gates[2])
    elif kind == "ssru":
        f = torch.sigmoid(gates[0])
        a, b = f, (1 - f) * gates[1]
    else:
        r, i = torch.sigmoid(gates[0]), torch.sigmoid(gates[1])
        a = torch.sigmoid(p["decay"]) ** (8 * r)
        b = torch.sqrt(1 - a**2) * i * gates[2]
    if other:
        rows = [sum(a[i + 1 : t + 1].prod(0) * b[i] for i in range(t + 1)) for t in range(len(x))]
        states = torch.stack(rows)
    else:
        h, rows = torch.zeros_like(b[0]), []
        for t in range(len(x)):
            h = a[t] * h + b[t]
            rows.append(h)
        states = torch.stack(rows)
    if kind == "ssru":
        models.KINKS.append(states.abs().min().item())
        return torch.relu(states)
    return states


def rms(x: torch.Tensor, gamma: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x, x.shape[-1:], gamma, 1e-5)


def matrix_reads(p: dict, mixer: dict, n_heads: int, x: torch.Tensor, other: bool) -> torch.Tensor:
    kind, (length, d) = mixer["kind"], x.shape
    packed = linear(x, p, "input").split(d, dim=1)
    head = lambda part, h: part.unflatten(1, (n_heads, -1))[:, h]
    rates = linear(x, p, "rates") if "rates.weight" in p else None
    heads = []
    for h in range(n_heads):
        q, k, v = (head(part, h) for part in packed[:3])
        d_head = q.shape[1]
        unit = lambda y: F.silu(y) / torch.sqrt(F.silu(y).square().sum(1, keepdim=True) + 1e-6)
        one = torch.eye(d_head)
        if kind == "linear":
            q, k = F.elu(q) + 1, F.elu(k) + 1
            transitions = [one] * length
            b = torch.ones(length)
        elif kind == "gated-linear":
            q = q / math.sqrt(d_head)
            a = torch.sigmoid(head(rates, h)) ** (1 / 16)
            transitions = [torch.diag(a[t]) for t in range(length)]
            b = torch.ones(length)
        else:
            q, k, v = unit(q), unit(k), F.silu(v)
            b = torch.sigmoid(rates[:, h]) * (2 if mixer.get("negative_eigenvalues") else 1)
            transitions = [one - b[t] * torch.outer(k[t], k[t]) for t in range(length)]
            if kind == "gated-delta":
                a = torch.exp(-torch.exp(p["decay"][h]) * F.softplus(rates[:, n_heads + h]))
                transitions = [a[t] * transitions[t] for t in range(length)]
        reads = []
        state, total = torch.zeros(d_head, d_head), torch.zeros(d_head)
        for t in range(length):
            if other:
                state, total = torch.zeros(d_head, d_head), k[: t + 1].sum(0)
                for i in range(t + 1):
                    since = one
                    for j in range(i + 1, t + 1):
                        since = transitions[j] @ since
                    state = state + since @ torch.outer(k[i], b[i] * v[i])
            else:
                # What the memory has for a key is read and replaced, where the rule says so.
                if kind == "linear":
                    state, total = state + torch.outer(k[t], v[t]), total + k[t]
                elif kind == "gated-linear":
                    state = a[t][:, None] * state + torch.outer(k[t], v[t])
                else:
                    state = state * a[t] if kind == "gated-delta" else state
                    state = state + b[t] * torch.outer(k[t], v[t] - state.T @ k[t])
            read = state.T @ q[t]
            reads.append(read / (total @ q[t] + 1e-6) if kind == "linear" else rms(read, p["norm.gamma"]))
        heads.append(torch.stack(reads))
    read = torch.cat(heads, dim=1)
    return read * F.silu(packed[3]) if N_PACKED[kind] == 4 else read


def core(p: dict, mixer: dict, n_heads: int, x: torch.Tensor, other: bool) -> torch.Tensor:
    if mixer["kind"] in CELLS:
        return cell_states(p, mixer["kind"], x, other)
    if mixer["kind"] in N_GATES:
        return vector_states(p, mixer["kind"], x, other)
    return matrix_reads(p, mixer, n_heads, x, other)


def recurrence(p: dict, mixer: dict, n_heads: int, x: torch.Tensor, lengths: list[int], other: bool) -> torch.Tensor:
    """[batch, length, width] in and out; padding gets zeros, which nobody sees."""
    rows = []
    for sentence, length in zip(x, lengths):
        real = sentence[:length]
        states = core(under(p, "forward"), mixer, n_heads, real, other)
        if any(path.startswith("backward.") for path in p):
            back = core(under(p, "backward"), mixer, n_heads, real.flip(0), other).flip(0)
            states = torch.cat([states, back], dim=1)
        if "output.weight" in p:
            states = linear(states, p, "output")
        rows.append(F.pad(states, (0, 0, 0, x.shape[1] - length)))
    return torch.stack(rows)


def convolved(weight: torch.Tensor, x: torch.Tensor, other: bool) -> torch.Tensor:
    width, d = weight.shape
    if other:
        padded = F.pad(x.transpose(1, 2), (width - 1, 0))
        return F.conv1d(padded, weight.flip(0).T[:, None, :], groups=d).transpose(1, 2)
    term = lambda j: F.pad(x, (0, 0, j, 0))[:, : x.shape[1]] * weight[j]
    return sum(term(j) for j in range(width))


# --- The model -------------------------------------------------------------------------------------------------------


class Mixed:
    def __init__(self, config: dict, vocabularies: dict):
        self.config = config
        d, n_heads = config["d_model"], config["n_heads"]
        norm = lambda name: {f"{name}.gamma": [d], f"{name}.beta": [d]}
        ffn = prefixed("feed_forward", models.feed_forward_shapes(d, config["d_feed_forward"], config["activation"]))
        ffn |= norm("feed_forward_residual.norm")
        self.shapes = models.transformer_shapes(config | {"n_encoder_layers": 0, "n_decoder_layers": 0}, vocabularies, norm, {}, {})
        for side, residual in (("encoder", "attention"), ("decoder", "self")):
            layers = len(self.mixers(side)) if config["share_layers"] else config[f"n_{side}_layers"]
            for i in range(min(layers, config[f"n_{side}_layers"])):
                shapes = mixer_shapes(self.mixer(side, i), d, n_heads, side) | norm(f"{residual}_residual.norm") | ffn
                if side == "decoder":
                    shapes |= prefixed("cross_attention", grouped_shapes(d, d, True)) | norm("cross_residual.norm")
                self.shapes |= prefixed(f"{side}.{i}", shapes)

    def mixers(self, side: str) -> list:
        mixers = self.config.get(side, {}).get("mixer") or self.config["mixer"]
        return mixers if isinstance(mixers, list) else [mixers]

    def mixer(self, side: str, i: int) -> dict:
        return self.mixers(side)[i % len(self.mixers(side))]

    def layer(self, p: dict, side: str, i: int) -> dict:
        return under(p, f"{side}.{i % len(self.mixers(side)) if self.config['share_layers'] else i}")

    def logits(self, p: Parameters, source: list, target: list, other: bool = False) -> torch.Tensor:
        config = self.config
        d, n_heads, is_pre = config["d_model"], config["n_heads"], config["norm_position"] == "pre"
        ids, target_ids = pad(source), pad(target)
        lengths = [len(sentence) for sentence in source]
        padding = is_padding(lengths, ids.shape[1])[:, None, None, :]
        future = torch.ones(target_ids.shape[1], target_ids.shape[1], dtype=torch.bool).triu(1)[None, None]

        def embed(table: str, ids: torch.Tensor) -> torch.Tensor:
            x = F.embedding(ids, p[table]) * math.sqrt(d)
            return x + models.sinusoids(0, ids.shape[1], d) if config["positions"]["kind"] == "sinusoidal" else x

        def residual(layer: dict, name: str, x: torch.Tensor, sublayer) -> torch.Tensor:
            norm = lambda y: layer_norm(y, layer, f"{name}_residual.norm")
            return x + sublayer(norm(x)) if is_pre else norm(x + sublayer(x))

        def mix(layer: dict, side: str, i: int, hidden: torch.Tensor, lengths: list):
            mixer = self.mixer(side, i)

            def run(x):
                x = convolved(layer["convolution.weight"], x, other) if "convolution" in mixer else x
                if mixer["kind"] == "attention":
                    own = under(layer, "attention" if side == "encoder" else "self_attention")
                    return attend(own, (n_heads, n_heads), x, x, hidden, None, None, other)
                return recurrence(under(layer, "recurrence"), mixer, n_heads, x, lengths, other)

            return run

        ffn = lambda layer: lambda x: feed_forward(under(layer, "feed_forward"), config["activation"], x)
        table = "source_embedding.weight" if "source_embedding.weight" in p else "target_embedding.weight"
        x, y = embed(table, ids), embed("target_embedding.weight", target_ids)
        for i in range(config["n_encoder_layers"]):
            layer = self.layer(p, "encoder", i)
            x = residual(layer, "attention", x, mix(layer, "encoder", i, padding, lengths))
            x = residual(layer, "feed_forward", x, ffn(layer))
        if is_pre:
            x = layer_norm(x, p, "encoder_norm")
        whole = [target_ids.shape[1]] * len(target)
        for i in range(config["n_decoder_layers"]):
            layer = self.layer(p, "decoder", i)
            y = residual(layer, "self", y, mix(layer, "decoder", i, future, whole))
            cross = under(layer, "cross_attention")
            y = residual(layer, "cross", y, lambda q: attend(cross, (n_heads, n_heads), q, x, padding, None, None, other))
            y = residual(layer, "feed_forward", y, ffn(layer))
        if is_pre:
            y = layer_norm(y, p, "decoder_norm")
        if config["tied_embeddings"] == "none":
            return linear(y, p, "output.projection")
        return y @ p["target_embedding.weight"].T

    def by_other_means(self, p: Parameters, source: list, target: list) -> torch.Tensor:
        return self.logits(p, source, target, other=True)


class OverMixers(Attending):
    """A recurrent decoder whose encoder's layers are recurrences of their own; an LSTM's memory starts from their states too."""

    def __init__(self, config: dict, vocabularies: dict):
        super().__init__(config, vocabularies)
        mixers = config["encoder"]["mixer"]
        mixers = mixers if isinstance(mixers, list) else [mixers]
        self.mixers = [mixers[i % len(mixers)] for i in range(config["n_layers"])]
        self.shapes = {path: shape for path, shape in self.shapes.items() if not path.startswith("encoder.")}
        d_input, d = config["d_embedding"], config["d_hidden"]
        for i, mixer in enumerate(self.mixers):
            shapes = {"convolution.weight": [mixer["convolution"], d_input]} if "convolution" in mixer else {}
            for direction in ("forward", "backward")[: self.n_directions]:
                shapes |= prefixed(direction, vector_shapes(mixer["kind"], d_input, d))
            self.shapes |= prefixed(f"encoder.layers.{i}", shapes)
            d_input = self.n_directions * d

    def read(self, p: Parameters, source: list, other: bool = False):
        """As in recurrent.py, but sentence by sentence."""
        config, finals = self.config, []
        lengths = [len(sentence) for sentence in source]
        x = F.embedding(pad(self.as_read(source)), p["source_embedding.weight"])
        for i, mixer in enumerate(self.mixers):
            layer = under(p, f"encoder.layers.{i}")
            y = convolved(layer["convolution.weight"], x, other) if "convolution" in mixer else x
            states = recurrence(layer, mixer, 1, y, lengths, other)
            last = torch.stack([row[length - 1] for row, length in zip(states, lengths)])
            if self.n_directions == 2:
                d = config["d_hidden"]
                last = torch.cat([last[:, :d], states[:, 0, d:]], dim=1)
            memory = last
            if mixer["kind"] == "lstm":
                # What an LSTM carries on beside what it shows.
                memory = self.memory(layer, y, lengths)
            finals.append([last, memory] if config["cell"] == "lstm" else [last])
            x = states + x if config["residual"] and i > 0 else states
        if config["reverse_source"]:
            x = torch.stack([torch.cat([row[: n - 1].flip(0), row[n - 1 :]]) for row, n in zip(x, lengths)])
        return x, finals[-1][0], self.first_states(p, finals)

    def memory(self, layer: dict, x: torch.Tensor, lengths: list[int]) -> torch.Tensor:
        rows = []
        for sentence, length in zip(x, lengths):
            parts = []
            for direction, words in (("forward", sentence[:length]), ("backward", sentence[:length].flip(0))):
                if f"{direction}.recurrent" not in layer:
                    continue
                state = [torch.zeros(1, self.config["d_hidden"]) for _ in range(2)]
                for word in words:
                    state = models.cell_by_equations("lstm", under(layer, direction), word[None], state)
                parts.append(state[1][0])
            rows.append(torch.cat(parts))
        return torch.stack(rows)

    def by_other_means(self, p: Parameters, source: list, target: list) -> torch.Tensor:
        """The same with the encoder by the second program of each recurrence."""
        own = self.read
        self.read = lambda p, source: own(p, source, other=True)
        logits = self.logits(p, source, target)
        del self.read
        return logits


def kind(name: str, **more) -> dict:
    return {"kind": name} | more


def model_cases() -> list[dict]:
    attention = kind("attention")
    rows = [
        # name, mixer, encoder's own, decoder's own, layers, shared, norm position, tied, batch
        ("vanilla", kind("vanilla"), None, None, (1, 1), False, "post", "all", 0),
        ("gru", kind("gru"), None, None, (1, 2), False, "pre", "all", 1),
        ("lstm-forward", kind("lstm", bidirectional=False), None, None, (1, 1), False, "pre", "none", 0),
        ("min-gru", kind("min-gru"), None, None, (1, 1), False, "pre", "all", 1),
        ("min-gru-wide", kind("min-gru", expansion=2, convolution=3, bidirectional=False), None, None, (1, 1), False, "post", "all", 0),
        ("min-lstm", kind("min-lstm"), None, None, (1, 1), False, "pre", "target-output", 0),
        ("ssru-student", attention, None, kind("ssru"), (1, 2), False, "post", "all", 1),
        ("ssru", kind("ssru"), None, None, (1, 1), False, "pre", "all", 0),
        ("rg-lru", kind("rg-lru", convolution=4), None, None, (1, 1), False, "pre", "all", 1),
        ("linear", kind("linear"), None, None, (1, 1), False, "pre", "all", 0),
        ("gated-linear", kind("gated-linear"), None, None, (1, 1), False, "post", "all", 1),
        ("delta", kind("delta", convolution=2), None, None, (1, 1), False, "pre", "all", 0),
        ("delta-negative", kind("delta", negative_eigenvalues=True), None, None, (1, 1), False, "post", "none", 1),
        ("gated-delta", kind("gated-delta"), None, None, (1, 1), False, "pre", "all", 0),
        ("hybrid", [kind("gru", convolution=2), attention], None, None, (2, 3), False, "pre", "all", 1),
        ("attention-convolution", kind("attention", convolution=3), None, None, (1, 1), False, "pre", "all", 0),
        ("shared", [attention, kind("min-gru")], None, None, (3, 4), True, "pre", "all", 1),
        ("shared-attention", attention, None, None, (3, 2), True, "post", "target-output", 0),
    ]
    cases = []
    for name, mixer, encoder, decoder, layers, shared, norm_position, tied, batch in rows:
        config = {
            "kind": "transformer",
            "d_model": 8,
            "d_feed_forward": 7,
            "n_heads": 2,
            "n_encoder_layers": layers[0],
            "n_decoder_layers": layers[1],
            "share_layers": shared,
            "mixer": mixer,
            "dropout_rate": 0.0,
            "norm_position": norm_position,
            "norm": "layer",
            "activation": "gelu",
            "positions": {"kind": "sinusoidal" if "attention" in str(mixer) else "none"},
            "tied_embeddings": tied,
        }
        own = {side: {"mixer": mixer} for side, mixer in (("encoder", encoder), ("decoder", decoder)) if mixer}
        vocabularies = SHARED if tied == "all" else SEPARATE
        case = {"name": f"mixers/{name}", "config": config | own, "vocabularies": vocabularies, "batch": BATCHES[batch]}
        cases.append(models.model_case(case, Mixed, 1.0))
    return cases + recurrent_cases()


def recurrent_cases() -> list[dict]:
    additive = {"kind": "bahdanau", "score": kind("additive", d_attention=3), "window": kind("global")}
    general = {"kind": "luong", "score": kind("general"), "window": kind("global"), "input_feeding": True}
    dot = {"kind": "luong", "score": kind("dot"), "window": kind("local-m", half_width=2), "input_feeding": False}
    none = kind("none")
    rows = [
        # name, cell, mixers of the encoder, layers, residual, directions, reversed, attention, bridge, batch
        ("min-gru", "gru", kind("min-gru"), 1, False, "both", False, additive, "learned", 0),
        ("min-lstm", "lstm", kind("min-lstm", convolution=3), 2, False, "both", False, general, "learned", 1),
        ("ssru", "vanilla", kind("ssru"), 2, True, "forward", True, dot, "learned", 1),
        ("rg-lru", "gru", [kind("rg-lru"), kind("gru", convolution=2)], 2, False, "both", True, none, "learned", 1),
        ("lstm", "lstm", [kind("min-gru"), kind("lstm")], 3, True, "forward", False, additive, "learned", 1),
        ("vanilla", "gru", kind("vanilla"), 1, False, "forward", False, additive, "zeros", 0),
    ]
    cases = []
    for name, cell, mixer, n_layers, residual, directions, is_reversed, attention, bridge, batch in rows:
        config = {
            "kind": "rnn",
            "cell": cell,
            "encoder": {"mixer": mixer},
            "d_embedding": 5,
            "d_hidden": 7,
            "n_layers": n_layers,
            "residual": residual,
            "directions": directions,
            "reverse_source": is_reversed,
            "attention": attention,
            "context": "every-step",
            "bridge": bridge,
            "readout": kind("deep-output", d_maxout=2),
            "output": "similarity",
            "dropout_rate": 0.0,
        }
        case = {"name": f"mixers/under-{cell}-{name}", "config": config, "vocabularies": SEPARATE, "batch": BATCHES[batch]}
        # Larger states of SSRU would come close to the kink of what others see of them.
        cases.append(models.model_case(case, OverMixers, 1.5 if name == "ssru" else 2.0))
    return cases


if __name__ == "__main__":
    models.write_or_check("mixers", __doc__, model_cases, lambda: [])
