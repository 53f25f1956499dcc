"""Lists of layers, as jobs write them, in PyTorch: those of examples/, from what docs/job_files/layers.md says of each kind."""

import pathlib

import torch.nn.functional as F
import yaml

import operations

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent.parent / "examples"


def linear(x, weights, path):
    return F.linear(x, weights[path + "weight"], weights.get(path + "bias"))


def embedding(fields, ids, weights, path):
    x = F.embedding(ids, weights[path + "token.weight"]) + weights[path + "position.weight"]
    return x * weights.dropout(x.shape, fields.get("dropout", 0))


def layer_norm(_fields, x, weights, path):
    return F.layer_norm(x, x.shape[-1:], weights[path + "weight"], weights[path + "bias"])


def attention(fields, x, weights, path):
    heads = {"heads": fields["heads"], "key_heads": 0, "dropout": fields.get("dropout", 0), **weights.take_draw()}
    h = operations.attention(heads, linear(x, weights, path + "qkv."))[0]
    return linear(h, weights, path + "proj.")


def mlp(_fields, x, weights, path):
    return linear(operations.gelu(linear(x, weights, path + "up.")), weights, path + "down.")


def residual(fields, x, weights, _path):
    y, seen = x, {}
    for child in fields["layers"]:
        (kind, own), = child.items()
        seen[kind] = seen.get(kind, 0) + 1
        y = KINDS[kind][0](own, y, weights, f"{kind}{seen[kind] if seen[kind] > 1 else ''}.")
    return x + y


# Function, and the fields that it knows: a list with others is refused.
KINDS = {
    "embedding": (embedding, {"dropout"}),
    "residual": (residual, {"layers"}),
    "layer_norm": (layer_norm, set()),
    "attention": (attention, {"heads", "dropout"}),
    "mlp": (mlp, {"hidden"}),
    "linear": (lambda _fields, x, weights, path: linear(x, weights, path), {"out", "no_bias"}),
    "gelu": (lambda _fields, x, _weights, _path: operations.gelu(x), set()),
    "dropout": (lambda fields, x, weights, _path: x * weights.dropout(x.shape, fields["rate"]), {"rate"}),
}


def check(layers):
    for layer in layers:
        (kind, fields), = layer.items()
        unknown = set(fields) - KINDS[kind][1]
        assert not unknown, f"{kind}: {unknown}"
        check(fields.get("layers", []))


def sequence(fields, weights, batch):
    check(fields["layers"])
    x = batch["tokens"]
    for layer in fields["layers"]:
        (kind, own), = layer.items()
        x = KINDS[kind][0](own, x, weights, "")
        weights.next()
    return x


def examples():
    """{file: fields of its list}"""
    models = {path.name: yaml.safe_load(path.read_text())["model"] for path in sorted(EXAMPLES.glob("*.yaml"))}
    lists = {name: model["sequence"] for name, model in models.items() if "sequence" in model}
    assert lists, f"no list of layers in {EXAMPLES}"
    return lists
