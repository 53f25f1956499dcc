"""The optimizers' updates in float64: PyTorch's own where it has one, TensorFlow's RMSProp, LAMB and Adafactor by their
formulas.

Rate, scale and shapes are those of updates.cc.
"""

import torch

DECAY = 0.04  # of matrices


def gradients(arrays, step, parameters):
    return [
        0.5 * torch.tensor(arrays[f"updates/gradient/{step}/{p}"], dtype=torch.float64)
        for p in range(len(parameters))
    ]


def torch_optimizer(make, decay):
    """Updates by an optimizer of PyTorch's; only matrices decay."""

    def run(arrays, steps, parameters):
        groups = [{"params": [w], "weight_decay": decay if w.dim() >= 2 else 0} for w in parameters]
        optimizer = make(groups)
        for step in range(steps):
            for w, g in zip(parameters, gradients(arrays, step, parameters)):
                w.grad = g
            for group in optimizer.param_groups:
                group["lr"] = 0.01 * (step + 1)
            optimizer.step()

    return run


def tensorflow_rmsprop(rho, momentum, epsilon, decay):
    """tf.train.RMSPropOptimizer: the mean of squares begins at 1, epsilon is under the root."""

    def run(arrays, steps, parameters):
        squares = [torch.ones_like(w) for w in parameters]
        moments = [torch.zeros_like(w) for w in parameters]
        for step in range(steps):
            for p, g in enumerate(gradients(arrays, step, parameters)):
                w = parameters[p]
                if w.dim() >= 2:
                    g = g + decay * w
                squares[p] = rho * squares[p] + (1 - rho) * g * g
                moments[p] = momentum * moments[p] + 0.01 * (step + 1) * g / (squares[p] + epsilon).sqrt()
                w -= moments[p]

    return run


def lamb(beta1, beta2, epsilon, decay, adapt_all):
    """Algorithm 2 of arXiv 1904.00962 with phi(z) = z."""

    def run(arrays, steps, parameters):
        first = [torch.zeros_like(w) for w in parameters]
        second = [torch.zeros_like(w) for w in parameters]
        for step in range(steps):
            for p, g in enumerate(gradients(arrays, step, parameters)):
                w, t = parameters[p], step + 1
                first[p] = beta1 * first[p] + (1 - beta1) * g
                second[p] = beta2 * second[p] + (1 - beta2) * g * g
                u = first[p] / (1 - beta1**t) / ((second[p] / (1 - beta2**t)).sqrt() + epsilon)
                matrix = w.dim() >= 2
                if matrix:
                    u = u + decay * w
                ratio = w.norm() / u.norm() if matrix or adapt_all else 1.0
                w -= 0.01 * t * ratio * u

    return run


def rms(x):
    return x.square().mean().sqrt()


def adafactor(beta1=0.0, clip=1.0, decay=0.0, relative=False, scales=False):
    """Algorithms 4 and 5 of arXiv 1804.04235 with the decays and bounds of its section 7."""

    def run(arrays, steps, parameters):
        rows = [torch.zeros(w.shape[:1], dtype=w.dtype) for w in parameters]  # or squares, of a vector
        columns = [torch.zeros(w.shape[1:], dtype=w.dtype) for w in parameters]
        moments = [torch.zeros_like(w) for w in parameters]
        for step in range(steps):
            t = step + 1
            rest = t**-0.8
            rate = min(0.01 * t, t**-0.5) if relative else 0.01 * t
            for p, g in enumerate(gradients(arrays, step, parameters)):
                w = parameters[p]
                squares = g * g + 1e-30
                if w.dim() == 2:
                    rows[p] = (1 - rest) * rows[p] + rest * squares.mean(1)
                    columns[p] = (1 - rest) * columns[p] + rest * squares.mean(0)
                    v = torch.outer(rows[p], columns[p]) / rows[p].mean()
                else:
                    v = rows[p] = (1 - rest) * rows[p] + rest * squares
                u = g / v.sqrt()
                u = u / max(1.0, rms(u) / clip)
                moments[p] = beta1 * moments[p] + (1 - beta1) * u
                scale = max(1e-3, rms(w)) if scales else 1.0
                w -= rate * (scale * moments[p] + (decay if w.dim() == 2 else 0.0) * w)

    return run


UPDATES = {
    "adafactor": adafactor(),
    "adafactor_all": adafactor(0.9, 0.5, DECAY, True, True),
    "nesterov": torch_optimizer(
        lambda groups: torch.optim.SGD(groups, lr=1, momentum=0.9, nesterov=True), 0
    ),
    "rmsprop_tensorflow": tensorflow_rmsprop(0.9, 0.9, 1.0, DECAY),
    "rmsprop_tensorflow_plain": tensorflow_rmsprop(0.95, 0.0, 1e-3, 0.0),
    "rmsprop_pytorch": torch_optimizer(
        lambda groups: torch.optim.RMSprop(groups, alpha=0.95, eps=1e-3, momentum=0.9), DECAY
    ),
    "rmsprop_pytorch_plain": torch_optimizer(
        lambda groups: torch.optim.RMSprop(groups, alpha=0.95, eps=1e-3), 0
    ),
    "lamb": lamb(0.9, 0.99, 1e-6, DECAY, False),
    "lamb_all": lamb(0.9, 0.99, 1e-6, DECAY, True),
}


def compare_updates(arrays, metadata, report):
    ends = {}
    for name, run in UPDATES.items():
        parameters = [
            torch.tensor(arrays[f"updates/start/{p}"], dtype=torch.float64) for p in range(2)
        ]
        with torch.no_grad():
            run(arrays, int(metadata["updates/steps"]), parameters)
        for p, truth in enumerate(parameters):
            report.near(f"update {name} {p}", arrays[f"updates/end/{name}/{p}"], truth, 2e-6)
        ends[name] = parameters[0]
    # Each of them is another rule: one taken for another would be found.
    names = list(ends)
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            if {a, b} != {"lamb", "lamb_all"} and torch.allclose(ends[a], ends[b], rtol=1e-3):
                report.failures += 1
                print(f"  {a} and {b} end in the same values: the comparison shows nothing")
