"""The network `transformer` in PyTorch, from its description alone (network/zoo/transformer.h)."""

import math

import torch
import torch.nn.functional as F

import operations


class Transformer:
    """One forward; `weights` counts the layers."""

    def __init__(self, fields, weights):
        self.fields, self.weights = fields, weights
        self.rate, self.post = fields.get("dropout", 0), fields.get("norm") == "post"

    def norm(self, x, path):
        return F.layer_norm(x, x.shape[-1:], self.weights[path + "weight"], self.weights[path + "bias"])

    def linear(self, x, path):
        return F.linear(x, self.weights[path + "weight"], self.weights.get(path + "bias"))

    def dropped(self, x):  # without a rate there is no such piece
        return x * self.weights.dropout(x.shape, self.rate) if self.rate else x

    def embedded(self, ids, table):
        x = F.embedding(ids, table)
        if self.fields.get("positions") == "learned":
            x = x + self.weights["position.weight"]
        x = x * math.sqrt(self.fields["width"])
        if self.fields.get("positions") != "learned":
            x = operations.add_sinusoids({}, x)[0]
        return x * self.weights.dropout(x.shape, self.rate)

    def attention(self, q, k, v, visible):
        q, k, v = (x.unflatten(-1, (self.fields["heads"], -1)).transpose(1, 2) for x in (q, k, v))
        scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(~visible, -math.inf)
        probabilities = F.softmax(scores, dim=-1) * self.weights.dropout(scores.shape, self.rate)
        return (probabilities @ v).transpose(1, 2).flatten(2)

    def residual(self, x, branch):
        self.weights.next()
        y = x + self.dropped(branch(x if self.post else self.norm(x, "layer_norm.")))
        return self.norm(y, "layer_norm.") if self.post else y

    def self_attention(self, x, visible):
        def branch(h):
            q, k, v = self.linear(h, "attention.qkv.").chunk(3, dim=-1)
            return self.linear(self.attention(q, k, v, visible), "attention.proj.")
        return self.residual(x, branch)

    def cross_attention(self, x, memory, visible):
        def branch(h):
            k, v = self.linear(memory, "cross_attention.kv.").chunk(2, dim=-1)
            h = self.attention(self.linear(h, "cross_attention.q."), k, v, visible)
            return self.linear(h, "cross_attention.proj.")
        return self.residual(x, branch)

    def feed_forward(self, x):
        def branch(h):
            h = self.linear(h, "mlp.up.")
            h = operations.gelu(h) if self.fields.get("activation") == "gelu" else F.relu(h)
            return self.linear(self.dropped(h), "mlp.down.")
        return self.residual(x, branch)

    def last_norm(self, x):
        if self.post:
            return x
        self.weights.next()
        return self.norm(x, "")

    def logits(self, batch):
        fields, weights = self.fields, self.weights
        table = weights["token.weight"]
        there = torch.arange(fields["source_context"]) < batch["source_length"][:, None]
        there = there[:, None, None, :]
        past = torch.ones(fields["target_context"], fields["target_context"], dtype=torch.bool).tril()
        memory = self.embedded(batch["source"], table)
        for _ in range(fields["encoder_layers"]):
            memory = self.feed_forward(self.self_attention(memory, there))
        memory = self.last_norm(memory)
        weights.next()
        own = weights.get("token.weight")  # a tied one is there once
        table = table if own is None else own
        x = self.embedded(batch["tokens"], table)
        for _ in range(fields["decoder_layers"]):
            x = self.self_attention(x, past)
            x = self.feed_forward(self.cross_attention(x, memory, there))
        x = self.last_norm(x)
        weights.next()
        own = weights.get("weight")
        x = F.linear(x, table if own is None else own)
        limit = fields.get("logit_clip", 0)
        return x.clamp(-limit, limit) if limit else x


def transformer(fields, weights, batch):
    return Transformer(fields, weights).logits(batch)
