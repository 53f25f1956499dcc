"""Residual networks in PyTorch, in the form for small images and in torchvision's. `weights` is networks.Weights."""

import torch.nn.functional as F

import operations

BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}


def resnet(fields, weights, batch):
    large = fields.get("form") == "imagenet"
    bottleneck = large and fields["depth"] >= 50
    stages = BLOCKS[fields["depth"]] if large else ((fields["depth"] - 2) // 6,) * 3

    def norm(x, name):
        if fields.get("norm") == "group":
            name += "group_norm."
            return F.group_norm(x, fields["groups"], weights[name + "weight"], weights[name + "bias"])
        name += "batch_norm."
        moments = weights[name + "running_mean"], weights[name + "running_variance"]
        return F.batch_norm(x, *moments, weights[name + "weight"], weights[name + "bias"], training=True)

    def normed(x, path, stride=1):
        weight = weights[path + "convolution.weight"]
        return norm(F.conv2d(x, operations.channels_first(weight), None, stride, weight.shape[1] // 2), path)

    def branch(x, stride):
        if not bottleneck:
            return normed(F.relu(normed(x, "first.", stride)), "second.")
        return normed(F.relu(normed(F.relu(normed(x, "first.")), "second.", stride)), "third.")

    stem = fields.get("stem", "imagenet" if large else "small")
    x = F.relu(normed(operations.channels_first(batch["images"]), "", 2 if stem == "imagenet" else 1))
    if stem == "imagenet":
        x = F.max_pool2d(x, 3, 2, 1)
    number = 0
    for stage, blocks in enumerate(stages):
        for i in range(blocks):
            weights.next()
            number += 1
            stride = 2 if stage > 0 and i == 0 else 1
            y = branch(x, stride)
            if fields.get("drop_path"):
                y = weights.drop_path(y, fields["drop_path"] * number / sum(stages))
            x = F.relu(y + (normed(x, "shortcut.", stride) if y.shape != x.shape else x))
    weights.next()
    return F.linear(x.mean((2, 3)), weights["linear.weight"], weights["linear.bias"])
