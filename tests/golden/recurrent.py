#!/usr/bin/env python3
"""Writes recurrent.json.gz: attention of recurrent models, every score, window and placement, forward and gradient.

    pip install torch==2.15.0 numpy==2.4.6
    python tests/golden/recurrent.py            # write the file anew
    python tests/golden/recurrent.py --check    # compare the file with what PyTorch says now

The layout of the file, its closed-form numbers and the checks of every model case are those of models.py, whose helpers
are used; so is the layer case, in which "alignment" is what follows.

Scores are written from Luong et al. 2015, section 3.1, Bahdanau et al. 2015, appendix A.1.2, Graves et al. 2014, equation
6, and Vaswani et al. 2017, section 3.2.1; windows from Luong's section 3.2. Everything attends sentence by sentence and
query by query, over the words of the sentence alone, so that there is neither mask nor padding; global attention without
a Gaussian is checked against F.scaled_dot_product_attention where a score is a dot product. In a local window only the
words inside are given to the softmax. Positions and steps count from one, and S counts the end symbol. The state and the
encoder states of a model come from PyTorch's cells and sequence modules. A model without residual connections whose
attention does not feed a later step is also computed with the decoder as one PyTorch sequence module.

Residual connections (Wu et al. 2016, section 3.1): what leaves layer l >= 2 is h + x, x what left the layer below; the
cell carries h; attention and readout see what leaves the top layer; the first state is what the bridge gives the top layer.

Model cases are a covering design: every pair of choices that can occur together does, in one case at least. Two more have
residual connections and a fixed context, the last states that the top cells carry.
"""

import itertools
import math
import random

import models
import torch
import torch.nn.functional as F
from models import (
    N_GATES,
    SEPARATE,
    Parameters,
    Rnn,
    assert_equal,
    cell_step,
    layer_case,
    linear,
    linear_shapes,
    pad,
    prefixed,
    run_encoder,
    run_module,
    under,
)

# As in models.py, but no length twice.
BATCHES = [
    {
        "source": [[5, 9, 3, 2], [4, 7, 10, 6, 8, 5, 2], [2]],
        "target_input": [[1, 6, 11], [1, 5, 8, 12, 4], [1]],
    },
    models.BATCHES[1],
]

SCORES = ("dot", "scaled-dot", "general", "additive", "concat", "cosine", "location")
EQUAL_WIDTHS = ("dot", "scaled-dot", "cosine")
WINDOWS = ("global", "local-m", "local-p")

# The distance of every word from the edge of a predicted window; a case close to one would be no test.
EDGES: list[float] = []


# --- Attention -------------------------------------------------------------------------------------------------------


def alignment_shapes(score: dict, window: dict, d_query: int, d_value: int) -> dict:
    kind = score["kind"]
    shapes = {}
    if kind == "general":
        shapes = linear_shapes("key", d_value, d_query, bias=False)
    elif kind == "additive":
        d = score["d_attention"]
        shapes = linear_shapes("query", d_query, d, bias=False) | linear_shapes("key", d_value, d) | {"vector": [d, 1]}
    elif kind == "concat":
        shapes = {"weight": [d_query + d_value, score["d_attention"]], "vector": [score["d_attention"], 1]}
    elif kind == "cosine":
        shapes = {"log_sharpness": [1]}
    elif kind == "location":
        shapes = linear_shapes("position", d_query, score["max_source_len"], bias=False)
    shapes = prefixed("score", shapes)
    if window["kind"] == "local-p":
        predictor = linear_shapes("projection", d_query, d_query, bias=False) | {"vector": [d_query, 1]}
        shapes |= prefixed("window.predictor", predictor)
    return shapes


def scores_of(kind: str, p: dict, s: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    """One score for each row of h."""
    if kind == "dot":
        return torch.stack([torch.dot(s, h_i) for h_i in h])
    if kind == "scaled-dot":
        return torch.stack([torch.dot(s, h_i) for h_i in h]) / math.sqrt(len(s))
    if kind == "general":
        # The Rust matrix is that of h W^T.
        w = p["key.weight"].T
        return torch.stack([s @ (w @ h_i) for h_i in h])
    if kind == "additive":
        inner = [s @ p["query.weight"] + h_i @ p["key.weight"] + p["key.bias"] for h_i in h]
        return torch.tanh(torch.stack(inner)) @ p["vector"][:, 0]
    if kind == "concat":
        inner = [p["weight"].T @ torch.cat([s, h_i]) for h_i in h]
        return torch.tanh(torch.stack(inner)) @ p["vector"][:, 0]
    if kind == "cosine":
        return torch.exp(p["log_sharpness"]) * F.cosine_similarity(s.unsqueeze(0), h, dim=1)
    if kind == "location":
        return (p["position.weight"].T @ s)[: len(h)]
    raise ValueError(kind)


def weights_of(window: dict, p: dict, e: torch.Tensor, s: torch.Tensor, t: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The weights of the words of one sentence at step t, counted from one, and the centre."""
    length = len(e)
    if window["kind"] == "global":
        return torch.softmax(e, dim=0), torch.tensor(math.nan)
    half_width = window["half_width"]
    if window["kind"] == "local-m":
        centre = torch.tensor(float(min(t, length)))
    else:
        p = under(p, "predictor")
        centre = length * torch.sigmoid(p["vector"][:, 0] @ torch.tanh(p["projection.weight"].T @ s))
        EDGES.extend(abs(abs(i - centre.item()) - half_width) for i in range(1, length + 1))
    inside = [i for i in range(1, length + 1) if abs(i - centre.item()) <= half_width]
    if not inside:
        return torch.zeros(length), centre
    softmaxed = torch.softmax(torch.stack([e[i - 1] for i in inside]), dim=0)
    weights = list(torch.zeros(length))
    for i, weight in zip(inside, softmaxed):
        if window["kind"] == "local-p":
            sigma = half_width / 2
            weight = weight * torch.exp(-((i - centre) ** 2) / (2 * sigma**2))
        weights[i - 1] = weight
    return torch.stack(weights), centre


def attend(config: dict, p: dict, queries: torch.Tensor, values: torch.Tensor, lengths: list[int], steps: list[int]):
    """Contexts, weights and centres of queries [batch, n, d]; query q is asked at step steps[q], counted from zero."""
    contexts, weights, centres = [], [], []
    for row, length in enumerate(lengths):
        h = values[row, :length]
        for q, s in enumerate(queries[row]):
            e = scores_of(config["score"]["kind"], under(p, "score"), s, h) if length else torch.zeros(0)
            a, centre = weights_of(config["window"], under(p, "window"), e, s, steps[q] + 1)
            contexts.append(a @ h)
            weights.append(F.pad(a, (0, values.shape[1] - length)))
            centres.append(centre)
    together = lambda rows: torch.stack(rows).unflatten(0, (len(values), -1))
    return together(contexts), together(weights), together(centres).unsqueeze(2)


# --- Layer cases -----------------------------------------------------------------------------------------------------


def alignment_cases() -> list[dict]:
    lengths, source_len, d_query = [11, 0, 4, 1, 7], 11, 13
    cases = []
    for score, window in itertools.product(SCORES, WINDOWS):
        # At three steps, or the three beams of one; past the end of short sentences, and of the longest.
        beams = len(cases) % 2 == 1
        steps = [5, 5, 5] if beams else [0, 2, 12]
        d_value = d_query if score in EQUAL_WIDTHS else 17
        config = {
            "score": {"kind": score}
            | ({"d_attention": 2} if score in ("additive", "concat") else {})
            | ({"max_source_len": 19} if score == "location" else {}),
            "window": {"kind": window} | ({"half_width": 3} if window != "global" else {}),
        }

        def run(x, p, config=config, steps=steps, score=score, window=window):
            query, values = x["query"], x["values"]
            context, weights, centre = attend(config, p, query, values, lengths, steps)
            if window == "global" and score in ("dot", "scaled-dot", "general"):
                check_with_pytorch(score, p, query, values, context, lengths)
            every = [[scores_of(score, under(p, "score"), s, h) for s in q] for q, h in zip(query, values)]
            traced = {"scores": torch.stack([torch.stack(rows) for rows in every]), "weights": weights}
            return {"context": context}, traced | ({} if window == "global" else {"center": centre})

        EDGES.clear()
        # Of dot products long vectors would make a step of the softmax.
        scale = 2.0 if score in ("dot", "general") else 8.0
        inputs = {"query": ([5, 3, d_query], scale), "values": ([5, source_len, d_value], 2.0)}
        full = config | {"d_query": d_query, "d_value": d_value, "lengths": lengths}
        full["steps"] = steps[:1] if beams else steps
        shapes = alignment_shapes(config["score"], config["window"], d_query, d_value)
        cases.append(layer_case(f"alignment/{score}-{window}", "alignment", full, inputs, shapes, run))
        assert min(EDGES, default=1) > 1e-3, f"{score}-{window}: close to an edge: {min(EDGES)}"
    return cases


def check_with_pytorch(score: str, p: dict, query, values, context, lengths: list[int]) -> None:
    """Global attention with a dot product, by PyTorch's function."""
    for row, length in enumerate(lengths):
        if length:
            h = values[row, :length]
            keys = h @ p["score.key.weight"] if score == "general" else h
            scale = {"scale": None if score == "scaled-dot" else 1.0}
            theirs = F.scaled_dot_product_attention(query[row][None], keys[None], h[None], **scale)
            assert_equal(f"{score} by PyTorch", context[row], theirs[0])


# --- The model -------------------------------------------------------------------------------------------------------


class Attending(Rnn):
    """The recurrent encoder-decoder with attention; readout as in models.py."""

    def __init__(self, config: dict, vocabularies: dict):
        attention = config["attention"]
        self.is_luong, self.feeds = attention["kind"] == "luong", attention.get("input_feeding", False)
        super().__init__(config, vocabularies)

    def attention_shapes(self, d_context: int) -> dict:
        attention, d = self.config["attention"], self.config["d_hidden"]
        shapes = {}
        if attention["kind"] != "none":
            alignment = alignment_shapes(attention["score"], attention["window"], d, d_context)
            shapes = prefixed("attention.alignment", alignment)
        if self.is_luong:
            shapes |= linear_shapes("attention.attentional", d_context + d, d)
        if self.feeds or not self.is_luong:
            d_read = d if self.is_luong else d_context
            shapes |= linear_shapes(self.further_input(), d_read, N_GATES[self.config["cell"]] * d, bias=False)
        return shapes

    def further_input(self) -> str:
        return "attention.feeding_input" if self.is_luong else super().further_input()

    def read(self, p: Parameters, source: list):
        """Annotations in the order of the words, the top cells' last states, and the decoder's first state in each layer."""
        config, d = self.config, self.config["d_hidden"]
        lengths = [len(sentence) for sentence in source]
        x = F.embedding(pad(self.as_read(source)), p["source_embedding.weight"])
        finals = []
        # Layer by layer, each by a PyTorch module of its own, since PyTorch knows no residual connections.
        for layer in range(config["n_layers"]):
            one = prefixed("layers.0", under(p, f"encoder.layers.{layer}"))
            states, final = run_encoder(one, config["cell"], d, 1, self.n_directions, x, lengths)
            x = states + x if config["residual"] and layer > 0 else states
            finals += final
        if not config["residual"]:
            assert_equal("layer by layer", x, self.run_encoder(p, source)[0])
        if config["reverse_source"]:
            # The state of word i was made when it was read, at place n - 1 - i of the n words before the end symbol.
            rows = []
            for row, length in zip(x, lengths):
                rows.append(torch.stack([row[length - 2 - i] if i < length - 1 else row[i] for i in range(x.shape[1])]))
            x = torch.stack(rows)
        return x, finals[-1][0], self.first_states(p, finals)

    def attentional(self, p: Parameters, context, state):
        """s~ = tanh(W_c [c; s])."""
        return torch.tanh(linear(torch.cat([context, state], dim=-1), p, "attention.attentional"))

    def logits(self, p: Parameters, source: list, target: list) -> torch.Tensor:
        config = self.config
        annotations, fixed, layers = self.read(p, source)
        lengths, cells = [len(sentence) for sentence in source], self.decoder_weights(p)
        embedded = F.embedding(pad(target), p["target_embedding.weight"])
        alignment = under(p, "attention.alignment")

        def look(state, t):
            return attend(config["attention"], alignment, state.unsqueeze(1), annotations, lengths, [t])[0][:, 0]

        output, fed = layers[-1][0], torch.zeros_like(layers[0][0])
        read, contexts = [], []
        for t, y in enumerate(embedded.unbind(1)):
            x = y
            if not self.is_luong:
                context = fixed if config["attention"]["kind"] == "none" else look(output, t)
                x = torch.cat([y, context], dim=1)
            elif self.feeds:
                x = torch.cat([y, fed], dim=1)
            for layer, state in enumerate(layers):
                layers[layer] = cell_step(config["cell"], cells[layer], x, state)
                x = layers[layer][0] + x if config["residual"] and layer > 0 else layers[layer][0]
            output = x
            if self.is_luong:
                context = look(output, t)
                fed = self.attentional(p, context, output)
            read.append(fed if self.is_luong else output)
            contexts.append(context)
        return self.read_out(p, torch.stack(read, 1), embedded, torch.stack(contexts, 1))

    def by_other_means(self, p: Parameters, source: list, target: list) -> torch.Tensor | None:
        """The same with the decoder as one PyTorch sequence module and all queries at once."""
        if not self.is_luong or self.feeds or self.config["residual"]:
            return None
        annotations, _, start = self.read(p, source)
        embedded = F.embedding(pad(target), p["target_embedding.weight"])
        cells = [[cell] for cell in self.decoder_weights(p)]
        states, _ = run_module(self.config["cell"], embedded.shape[2], self.config["d_hidden"], cells, embedded, start)
        lengths, steps = [len(sentence) for sentence in source], list(range(embedded.shape[1]))
        contexts, _, _ = attend(
            self.config["attention"], under(p, "attention.alignment"), states, annotations, lengths, steps
        )
        return self.read_out(p, self.attentional(p, contexts, states), embedded, contexts)


# --- Model cases -----------------------------------------------------------------------------------------------------

CHOICES = {
    "cell": ("vanilla", "gru", "lstm"),
    "placement": ("bahdanau", "luong", "luong-feeding"),
    "score": SCORES,
    "window": WINDOWS,
    "depth": ("1", "2", "2-residual", "3-residual"),
    "directions": ("forward", "both"),
    "reversed": (False, True),
    "bridge": ("zeros", "learned"),
    "readout": ("state", "state-context", "deep-output"),
    "output": ("similarity", "projection"),
}


def is_possible(choice: dict) -> bool:
    return not (choice.get("score") in EQUAL_WIDTHS and choice.get("directions") == "both")


def covering_design() -> list[dict]:
    """Rows in which every possible pair of choices occurs, found greedily among random ones."""
    generator = random.Random(1)
    pairs = lambda row: set(itertools.combinations(row.items(), 2))
    wanted = set()
    for one, other in itertools.combinations(CHOICES, 2):
        for values in itertools.product(CHOICES[one], CHOICES[other]):
            if is_possible(dict(zip((one, other), values))):
                wanted.add(tuple(zip((one, other), values)))
    rows = []
    while wanted:
        candidates = [{key: generator.choice(values) for key, values in CHOICES.items()} for _ in range(500)]
        # One pair at least that is still wanted.
        for candidate in candidates[:100]:
            candidate.update(dict(generator.choice(sorted(wanted, key=str))))
        best = max(filter(is_possible, candidates), key=lambda row: len(pairs(row) & wanted))
        wanted -= pairs(best)
        rows.append(best)
    return rows


FIXED = [
    # cell, depth, directions, reversed, bridge, readout, output
    ("gru", "2-residual", "both", True, "learned", "state", "projection"),
    ("lstm", "3-residual", "forward", False, "learned", "deep-output", "similarity"),
]


def model_cases() -> list[dict]:
    cases = []
    keys = ("cell", "depth", "directions", "reversed", "bridge", "readout", "output")
    fixed = [{"placement": "none", "score": "fixed", "window": "context"} | dict(zip(keys, row)) for row in FIXED]
    for i, row in enumerate(covering_design() + fixed):
        n_layers, residual = int(row["depth"][0]), row["depth"].endswith("residual")
        score = {"kind": row["score"]}
        score |= {"d_attention": 2} if row["score"] in ("additive", "concat") else {}
        score |= {"max_source_len": 17} if row["score"] == "location" else {}
        window = {"kind": row["window"]} | ({"half_width": 1 + i % 2} if row["window"] != "global" else {})
        attention = {"kind": row["placement"].removesuffix("-feeding")}
        if attention["kind"] != "none":
            attention |= {"score": score, "window": window}
        if attention["kind"] == "luong":
            attention["input_feeding"] = row["placement"] == "luong-feeding"
        config = {
            "kind": "rnn",
            "cell": row["cell"],
            "d_embedding": 5,
            "d_hidden": 7,
            "n_layers": n_layers,
            "residual": residual,
            "directions": row["directions"],
            "reverse_source": row["reversed"],
            "attention": attention,
            "context": "every-step",
            "bridge": row["bridge"],
            "readout": {"kind": row["readout"]} | ({"d_maxout": 2} if row["readout"] == "deep-output" else {}),
            "output": row["output"],
            "dropout_rate": 0.0,
        }
        parts = [row["placement"]] if attention["kind"] != "none" else []
        parts += [row["score"], row["window"], row["cell"] + row["depth"], row["directions"]]
        parts += ["reversed"] * row["reversed"] + [row["bridge"], row["readout"], row["output"]]
        name = "recurrent/" + "-".join(parts)
        case = {"name": name, "config": config, "vocabularies": SEPARATE, "batch": BATCHES[i % 2]}
        EDGES.clear()
        # Small states make attention uniform; the sums of residual connections are large enough.
        cases.append(models.model_case(case, Attending, 2.0 if residual else 4.0))
        assert min(EDGES, default=1) > 1e-3, f"{name}: close to an edge: {min(EDGES)}"
    return cases


if __name__ == "__main__":
    models.write_or_check("recurrent", __doc__, model_cases, alignment_cases)
