"""The models of ours.rs in PyTorch, as one would write them for speed: fused attention, nn.GRU and nn.LSTM, one product for
packed projections. Weights are read from what ours.rs has saved; linear layers there have [d_input, d_output]."""

import math

import torch
import torch.nn.functional as F
from torch import nn

PAD, BOS, EOS = 0, 1, 2


def pad(sentences):
    longest = max(map(len, sentences))
    return torch.tensor([sentence + [PAD] * (longest - len(sentence)) for sentence in sentences])


def sinusoids(n, d):
    """The positions of the paper, sines and cosines in turn: `[n, d]`."""
    position = torch.arange(n).unsqueeze(1)
    frequency = torch.exp(-math.log(10_000) * torch.arange(0, d, 2) / d)
    table = torch.empty(n, d)
    table[:, 0::2], table[:, 1::2] = torch.sin(position * frequency), torch.cos(position * frequency)
    return table


class Batch:
    def __init__(self, source, target):
        self.source = pad([sentence + [EOS] for sentence in source])
        self.lengths = torch.tensor([len(sentence) + 1 for sentence in source])
        self.target_input = pad([[BOS] + sentence for sentence in target])
        self.target = pad([sentence + [EOS] for sentence in target])
        self.has_padding = bool((self.source == PAD).any())


def linear(weights, name):
    weight = weights[f"{name}.weight"]
    bias = weights.get(f"{name}.bias")
    layer = nn.Linear(weight.shape[0], weight.shape[1], bias=bias is not None)
    layer.weight.data = weight.T.contiguous()
    if bias is not None:
        layer.bias.data = bias.clone()
    return layer


def embedding(weights, name):
    return nn.Embedding.from_pretrained(weights[f"{name}.weight"].clone(), freeze=False)


def layer_norm(weights, name):
    gamma = weights[f"{name}.gamma"]
    layer = nn.LayerNorm(gamma.shape[0])
    layer.weight.data, layer.bias.data = gamma.clone(), weights[f"{name}.beta"].clone()
    return layer


class Attention(nn.Module):
    def __init__(self, weights, name, n_heads, is_cross):
        super().__init__()
        if is_cross:
            self.query, self.key_value = linear(weights, f"{name}.query"), linear(weights, f"{name}.key_value")
        else:
            self.packed = linear(weights, f"{name}.query_key_value")
        self.output = linear(weights, f"{name}.output")
        self.n_heads, self.is_cross = n_heads, is_cross

    def forward(self, x, memory, mask, is_causal, dropout):
        if self.is_cross:
            query, (key, value) = self.query(x), self.key_value(memory).chunk(2, -1)
        else:
            query, key, value = self.packed(x).chunk(3, -1)
        split = lambda t: t.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        heads = F.scaled_dot_product_attention(split(query), split(key), split(value), mask, dropout, is_causal)
        return self.output(heads.transpose(1, 2).flatten(-2))


class Layer(nn.Module):
    def __init__(self, weights, name, config, is_decoder):
        super().__init__()
        own = "self_attention" if is_decoder else "attention"
        self.attention = Attention(weights, f"{name}.{own}", config["n_heads"], False)
        residual = "self_residual" if is_decoder else "attention_residual"
        self.attention_norm = layer_norm(weights, f"{name}.{residual}.norm")
        if is_decoder:
            self.cross = Attention(weights, f"{name}.cross_attention", config["n_heads"], True)
            self.cross_norm = layer_norm(weights, f"{name}.cross_residual.norm")
        self.inner, self.outer = linear(weights, f"{name}.feed_forward.inner"), linear(weights, f"{name}.feed_forward.outer")
        self.feed_forward_norm = layer_norm(weights, f"{name}.feed_forward_residual.norm")
        self.is_decoder = is_decoder
        self.rates = [config["dropout_rate"], config["attention_dropout_rate"], config["activation_dropout_rate"]]

    def forward(self, x, memory, mask):
        rate, of_weights, of_units = self.rates if self.training else [0.0] * 3
        drop = lambda t: F.dropout(t, rate, self.training)
        own_mask = None if self.is_decoder else mask
        x = x + drop(self.attention(self.attention_norm(x), None, own_mask, self.is_decoder, of_weights))
        if self.is_decoder:
            x = x + drop(self.cross(self.cross_norm(x), memory, mask, False, of_weights))
        inner = F.dropout(F.relu(self.inner(self.feed_forward_norm(x))), of_units, self.training)
        return x + drop(self.outer(inner))


class Transformer(nn.Module):
    def __init__(self, config, weights):
        super().__init__()
        self.source, self.target = embedding(weights, "source_embedding"), embedding(weights, "target_embedding")
        self.encoder = nn.ModuleList(
            Layer(weights, f"encoder.{i}", config, False) for i in range(config["n_encoder_layers"])
        )
        self.decoder = nn.ModuleList(
            Layer(weights, f"decoder.{i}", config, True) for i in range(config["n_decoder_layers"])
        )
        self.encoder_norm, self.decoder_norm = layer_norm(weights, "encoder_norm"), layer_norm(weights, "decoder_norm")
        self.output = linear(weights, "output.projection")
        d = config["d_model"]
        self.register_buffer("positions", sinusoids(512, d))
        self.scale, self.rate = math.sqrt(d), config["dropout_rate"]

    def embed(self, table, ids):
        return F.dropout(table(ids) * self.scale + self.positions[: ids.shape[1]], self.rate, self.training)

    def forward(self, batch):
        mask = (batch.source != PAD)[:, None, None, :] if batch.has_padding else None
        x = self.embed(self.source, batch.source)
        for layer in self.encoder:
            x = layer(x, None, mask)
        memory = self.encoder_norm(x)
        x = self.embed(self.target, batch.target_input)
        for layer in self.decoder:
            x = layer(x, memory, mask)
        return self.output(self.decoder_norm(x))


def order_of_gates(weight, cell):
    """Ours are (r, z, n) and (i, f, o, g); PyTorch's (r, z, n) and (i, f, g, o)."""
    if cell == "gru":
        return weight
    i, f, o, g = weight.chunk(4, 0)
    return torch.cat([i, f, g, o])


class Rnn(nn.Module):
    """A bidirectional or forward encoder and a decoder of one layer, with Bahdanau's attention or Luong's with input feeding."""

    def __init__(self, config, weights):
        super().__init__()
        self.cell, self.d = config["cell"], config["d_hidden"]
        self.source, self.target = embedding(weights, "source_embedding"), embedding(weights, "target_embedding")
        n_directions = 2 if config["directions"] == "both" else 1
        kind = nn.GRU if self.cell == "gru" else nn.LSTM
        self.encoder = kind(config["d_embedding"], self.d, batch_first=True, bidirectional=n_directions == 2)
        for name, suffix in [("forward", ""), ("backward", "_reverse")][:n_directions]:
            path = f"encoder.layers.0.{name}"
            set_ = lambda key, value: setattr(getattr(self.encoder, key + suffix), "data", value.contiguous())
            set_("weight_ih_l0", order_of_gates(weights[f"{path}.input.weight"].T, self.cell))
            set_("weight_hh_l0", order_of_gates(weights[f"{path}.recurrent"].T, self.cell))
            set_("bias_ih_l0", order_of_gates(weights[f"{path}.input.bias"], self.cell))
            bias = torch.zeros(len(weights[f"{path}.input.bias"]))
            if self.cell == "gru":
                bias[2 * self.d :] = weights[f"{path}.candidate_bias"]
            set_("bias_hh_l0", bias)
        self.bridges = nn.ModuleList(linear(weights, name) for name in bridges(weights))
        self.word_input = linear(weights, "decoder.0.input")
        self.recurrent = nn.Parameter(weights["decoder.0.recurrent"].T.contiguous())
        self.candidate_bias = nn.Parameter(weights["decoder.0.candidate_bias"].clone()) if self.cell == "gru" else None
        self.is_bahdanau = config["attention"]["kind"] == "bahdanau"
        score = "attention.alignment.score"
        self.key = linear(weights, f"{score}.key")
        if self.is_bahdanau:
            self.query, self.vector = linear(weights, f"{score}.query"), nn.Parameter(weights[f"{score}.vector"].clone())
            self.context_input = linear(weights, "attention.context_input")
            self.deep = linear(weights, "readout.deep")
        else:
            self.attentional = linear(weights, "attention.attentional")
            self.feeding = linear(weights, "attention.feeding_input")
        self.output = linear(weights, "output.projection")
        self.rate = config["dropout_rate"]

    def step(self, gates, hidden, memory):
        recurrent = F.linear(hidden, self.recurrent)
        if self.cell == "gru":
            r, z, n = gates.chunk(3, -1)
            u_r, u_z, u_n = recurrent.chunk(3, -1)
            r, z = torch.sigmoid(r + u_r), torch.sigmoid(z + u_z)
            n = torch.tanh(n + r * (u_n + self.candidate_bias))
            return n + z * (hidden - n), None
        i, f, o, g = (gates + recurrent).chunk(4, -1)
        memory = torch.sigmoid(f) * memory + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(memory), memory

    def forward(self, batch):
        drop = lambda t: F.dropout(t, self.rate, self.training)
        states, last = self.encoder(drop(self.source(batch.source)))
        finals = last if self.cell == "lstm" else (last,)
        start = [torch.tanh(b(torch.cat(list(f), -1))) for b, f in zip(self.bridges, finals)]
        hidden, memory = start[0], start[1] if len(start) > 1 else None
        embedded = drop(self.target(batch.target_input))
        words = self.word_input(embedded)
        keys = self.key(states)
        reads, contexts = [], []
        vector = torch.zeros_like(hidden)
        for t in range(words.shape[1]):
            gates = words[:, t]
            if self.is_bahdanau:
                scores = torch.tanh(keys + self.query(hidden)[:, None]) @ self.vector
                context = (scores.softmax(1).transpose(1, 2) @ states)[:, 0]
                hidden, memory = self.step(gates + self.context_input(context), hidden, memory)
                reads.append(hidden)
                contexts.append(context)
            else:
                hidden, memory = self.step(gates + self.feeding(vector), hidden, memory)
                weights = (keys @ hidden[:, :, None]).softmax(1)
                context = (weights.transpose(1, 2) @ states)[:, 0]
                vector = torch.tanh(self.attentional(torch.cat([context, hidden], -1)))
                reads.append(vector)
        read = torch.stack(reads, 1)
        if self.is_bahdanau:
            pairs = self.deep(torch.cat([read, embedded, torch.stack(contexts, 1)], -1))
            read = torch.maximum(*pairs.chunk(2, -1))
        return self.output(drop(read))


def bridges(weights):
    """The bridge's layers: of the hidden state, then of the memory."""
    names = {path.rsplit(".", 1)[0] for path in weights if path.startswith("bridge.")}
    return sorted(names, key=lambda name: "memory" in name)
