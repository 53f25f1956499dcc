"""AmoebaNets in PyTorch, from the tables of GPipe's and torchgpipe's programs. `weights` is networks.Weights."""

import torch
import torch.nn.functional as F

import operations

# A cell's sums, each of two (piece, state), and the states that it gives: first a normal cell's, then a reduction's.
D = (
    (["c1 1 + max3 1", "id 1 + c17 0", "c1 0 + c17 0", "max3 2 + id 2", "avg3 1 + c1 5"], [0, 3, 4, 6]),
    (["max2 0 + max3 0", "id 2 + c3 1", "c17 2 + max3 2", "id 3 + max2 1", "avg3 2 + c1 3"], [4, 5, 6]),
)
B = (
    (["c1 1 + max3 1", "id 1 + sep3 0", "c1 1 + sep3 0", "c1 2 + id 2", "avg3 1 + c1 5"], [0, 3, 4, 6]),
    (["max2 0 + max3 0", "id 2 + c3 1", "sep5 2 + max3 2", "id 3 + sep3 1", "avg3 4 + c1 3"], [5, 6]),
)


class Cell:
    def __init__(self, weights, channels, reduces, epsilon, average, drop_path=0):
        self.weights, self.channels, self.average, self.epsilon = weights, channels, average, epsilon
        self.drop_path = drop_path
        self.stride = 2 if reduces else 1

    def norm(self, x, name):
        name += "batch_norm."
        moments = self.weights[name + "running_mean"], self.weights[name + "running_variance"]
        return F.batch_norm(x, *moments, self.weights[name + "weight"], self.weights[name + "bias"], True, 0.1, self.epsilon)

    def convolution(self, x, name, stride=1, padding=0, groups=1):
        return F.conv2d(x, operations.channels_first(self.weights[name]), None, stride, padding, 1, groups)

    def normed(self, x, name, stride=1, padding=0):
        return self.norm(self.convolution(x, name + "convolution.weight", stride, padding), name)

    def piece(self, kind, x, stride, name):
        if kind == "id":
            return x if x.shape[1] == self.channels else self.normed(F.relu(x), name)
        if kind == "c1":
            return self.normed(F.relu(x), name, stride)
        if kind in ("c3", "c17"):
            x = self.normed(F.relu(x), name + "reduce.")
            if kind == "c3":
                x = self.normed(F.relu(x), name + "inner0.", stride, 1)
            else:
                x = self.normed(F.relu(x), name + "inner0.", (1, stride), (0, 3))
                x = self.normed(F.relu(x), name + "inner1.", (stride, 1), (3, 0))
            return self.normed(F.relu(x), name + "expand.")
        if kind in ("sep3", "sep5"):
            for half, by in (("first.", stride), ("second.", 1)):
                weight = name + half + "depthwise.weight"
                x = self.convolution(F.relu(x), weight, by, int(kind[3]) // 2, x.shape[1])
                x = self.normed(x, name + half)
            return x
        if kind == "max2":
            x = F.max_pool2d(x, 2, stride)
        elif kind == "max3" and not self.average:
            x = F.max_pool2d(x, 3, stride, 1)
        else:
            x = F.avg_pool2d(x, 3, stride, 1, count_include_pad=False)
        return x if x.shape[1] == self.channels else self.normed(x, name)

    def term(self, kind, x, stride, name):
        y = self.piece(kind, x, stride, name)
        return self.weights.drop_path(y, self.drop_path) if self.drop_path and kind != "id" else y

    def second(self, x1, x2, keep):
        if x1.shape[2:] != x2.shape[2:]:
            x2 = F.relu(x2)
            halves = [self.convolution(image, f"s1.{name}.convolution.weight", 2)
                      for name, image in (("even", x2), ("odd", F.pad(x2, (0, 1, 0, 1))[:, :, 1:, 1:]))]
            return self.norm(torch.cat(halves, 1), "s1.")
        return x2 if keep or x2.shape[1] == self.channels else self.normed(F.relu(x2), "s1.")

    def run(self, table, x1, x2, keep):
        sums, outputs = table
        states = [self.normed(F.relu(x1), "s0."), self.second(x1, x2, keep)]
        for text in sums:
            terms = [term.split() for term in text.split(" + ")]
            states.append(sum(
                self.term(kind, states[int(state)], self.stride if int(state) < 2 else 1, f"s{len(states)}.{side}.")
                for (kind, state), side in zip(terms, ("left", "right"))))
        return torch.cat([states[i] for i in outputs], 1)


def auxiliary_head(fields, cell, x):
    """Behind the cell whose output is x."""
    x = F.avg_pool2d(F.relu(x), [min(5, side) for side in x.shape[2:]], 3)
    x = F.relu(cell.normed(x, "auxiliary.first."))
    x = F.relu(cell.normed(x, "auxiliary.second."))
    scale = fields.get("auxiliary_scale", 1)
    assert x.shape[1:] == (int(768 * scale), 1, 1)
    return F.linear(x.flatten(1), cell.weights["auxiliary.linear.weight"], cell.weights["auxiliary.linear.bias"])


def amoebanet(table):
    def forward(fields, weights, batch):
        d, torchgpipe = fields["filters"], fields.get("variant") == "torchgpipe"
        epsilon = 1e-5 if torchgpipe else 1e-3
        x = operations.channels_first(batch["images"])
        stem = Cell(weights, d, False, epsilon, torchgpipe)
        widths = []
        if fields.get("stem") == "small":
            x = stem.normed(x, "", 1, 1)
        else:
            x = stem.normed(F.relu(x), "", 2, 1) if torchgpipe else stem.normed(x, "", 2)
            widths = [(d // 2, True), (d, True)] if torchgpipe else [(d // 4, True), (d // 2, True)]
        for section in range(3):
            widths += [(d * 2**section, True)] if section else []
            widths += [(d * 2**section, False)] * (fields["layers"] // 3)
        before = x
        for i, (channels, reduces) in enumerate(widths):
            weights.next()
            drop_path = fields.get("drop_path", 0) * (i + 1) / len(widths)
            cell = Cell(weights, channels, reduces, epsilon, torchgpipe, drop_path)
            x, before = cell.run(table[reduces], x, before, i == 0 and not torchgpipe), x
            if fields.get("auxiliary_weight") and channels == 2 * d and widths[i + 1] == (4 * d, True):
                auxiliary = auxiliary_head(fields, cell, x)
        weights.next()
        x = (x if torchgpipe else F.relu(x)).mean((2, 3))
        x = x * weights.dropout(x.shape, fields.get("dropout", 0))
        logits = F.linear(x, weights["linear.weight"], weights["linear.bias"])
        return (logits, auxiliary) if fields.get("auxiliary_weight") else logits

    return forward
