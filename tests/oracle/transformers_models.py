#!/usr/bin/env python3
"""Compares zoo entries with Hugging Face's Llama, Mistral, Qwen2, Qwen3 and GPT-2 for causal language models and its BERT for
masked ones, in float32.

usage: transformers_models.py STAGECOACH_ORACLE BUILD_FOLDER

A model of the library `transformers` with random weights and `stagecoach-oracle run` with the same ones compute a
step: logits, loss (the library's own) and the gradient of every parameter must agree within 1e-5 of an array's
largest value, for one and three stages. The tables NAMES below say which parameter is which. A perturbed weight and
another setting, as of rotary positions, must be found. The library comes from PyPI into a virtual environment beside
the PyTorch that is installed. Exit status: 0 equal, 1 not, 77 PyTorch or PyPI are not to be had.
"""

import pathlib
import sys
import tempfile

import transformers_library  # before what comes with it

import numpy as np
import torch

import networks

transformers = transformers_library.transformers
TOLERANCE = 1e-5  # of the largest value of an array
SCALING = {"rotary_factor": "factor", "rotary_low_frequency_factor": "low_freq_factor",
           "rotary_high_frequency_factor": "high_freq_factor", "rotary_original_context": "original_max_position_embeddings"}


class Llama:
    """Mistral and Qwen2 too, and Qwen3, whose heads are normalised: with us always with its epsilon of 1e-6."""

    ENTRY, BLOCKS = "llama", "model.layers."
    # Ours, and the library's, several of which are rows of ours one after the other; with a dot in front those of a
    # block, which is two of our layers. A model has a line if it has the names on its right.
    NAMES = """
        model/0000/token.weight                        model.embed_tokens.weight
        model/{attention}/rms_norm.weight              .input_layernorm.weight
        model/{attention}/attention.qkv.weight         .self_attn.q_proj.weight .self_attn.k_proj.weight .self_attn.v_proj.weight
        model/{attention}/attention.qkv.bias           .self_attn.q_proj.bias .self_attn.k_proj.bias .self_attn.v_proj.bias
        model/{attention}/attention.query_norm.weight  .self_attn.q_norm.weight
        model/{attention}/attention.key_norm.weight    .self_attn.k_norm.weight
        model/{attention}/attention.proj.weight        .self_attn.o_proj.weight
        model/{mlp}/rms_norm.weight                    .post_attention_layernorm.weight
        model/{mlp}/swiglu.gate.weight                 .mlp.gate_proj.weight
        model/{mlp}/swiglu.up.weight                   .mlp.up_proj.weight
        model/{mlp}/swiglu.down.weight                 .mlp.down_proj.weight
        model/{norm}/weight                            model.norm.weight
        model/{head}/weight                            lm_head.weight
    """
    CONFIG = {"vocab_size": 37, "hidden_size": 32, "intermediate_size": 56, "num_hidden_layers": 3,
              "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 16,
              "rope_theta": 500000.0, "rms_norm_eps": 1e-5}
    OTHER = {"rope_theta": 550000.0}

    @staticmethod
    def fields(config):
        scaling = getattr(config, "rope_scaling", None) or {"rope_type": "none"}
        numbers = {ours: scaling[theirs] for ours, theirs in SCALING.items() if theirs in scaling}
        return {"layers": config.num_hidden_layers, "width": config.hidden_size, "heads": config.num_attention_heads,
                "key_heads": config.num_key_value_heads, "head_width": getattr(config, "head_dim", None) or 0,
                "rotary_scaling": scaling["rope_type"], **numbers, "qkv_bias": config.model_type == "qwen2",
                "hidden": config.intermediate_size, "context": config.max_position_embeddings,
                "vocabulary": config.vocab_size, "rotary_theta": config.rope_theta, "epsilon": config.rms_norm_eps,
                "qk_norm": config.model_type == "qwen3", "tied_embeddings": config.tie_word_embeddings}


class Gpt2:
    ENTRY, BLOCKS = "gpt", "transformer.h."
    NAMES = """
        model/0000/token.weight                 transformer.wte.weight
        model/0000/position.weight              transformer.wpe.weight
        model/{attention}/layer_norm.weight     .ln_1.weight
        model/{attention}/layer_norm.bias       .ln_1.bias
        model/{attention}/attention.qkv.weight  .attn.c_attn.weight
        model/{attention}/attention.qkv.bias    .attn.c_attn.bias
        model/{attention}/attention.proj.weight .attn.c_proj.weight
        model/{attention}/attention.proj.bias   .attn.c_proj.bias
        model/{mlp}/layer_norm.weight           .ln_2.weight
        model/{mlp}/layer_norm.bias             .ln_2.bias
        model/{mlp}/mlp.up.weight               .mlp.c_fc.weight
        model/{mlp}/mlp.up.bias                 .mlp.c_fc.bias
        model/{mlp}/mlp.down.weight             .mlp.c_proj.weight
        model/{mlp}/mlp.down.bias               .mlp.c_proj.bias
        model/{norm}/weight                     transformer.ln_f.weight
        model/{norm}/bias                       transformer.ln_f.bias
        model/{head}/weight                     lm_head.weight
    """
    CONFIG = {"vocab_size": 37, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 16, "embd_pdrop": 0,
              "resid_pdrop": 0, "attn_pdrop": 0}
    OTHER = {"layer_norm_epsilon": 1e-2}

    @staticmethod
    def fields(config):
        return {"layers": config.n_layer, "width": config.n_embd, "heads": config.n_head,
                "context": config.n_positions, "vocabulary": config.vocab_size, "hidden": config.n_inner or 0,
                "epsilon": config.layer_norm_epsilon, "exact_gelu": config.activation_function == "gelu",
                "tied_embeddings": config.tie_word_embeddings}


class Bert:
    """Its head's matrix is the embedding's."""

    ENTRY, BLOCKS = "bert", "bert.encoder.layer."
    NAMES = """
        model/0000/token.weight                 bert.embeddings.word_embeddings.weight
        model/0000/position.weight              bert.embeddings.position_embeddings.weight
        model/0000/segment.weight               bert.embeddings.token_type_embeddings.weight
        model/0000/layer_norm.weight            bert.embeddings.LayerNorm.weight
        model/0000/layer_norm.bias              bert.embeddings.LayerNorm.bias
        model/{attention}/attention.qkv.weight  .attention.self.query.weight .attention.self.key.weight .attention.self.value.weight
        model/{attention}/attention.qkv.bias    .attention.self.query.bias .attention.self.key.bias .attention.self.value.bias
        model/{attention}/attention.proj.weight .attention.output.dense.weight
        model/{attention}/attention.proj.bias   .attention.output.dense.bias
        model/{attention}/layer_norm.weight     .attention.output.LayerNorm.weight
        model/{attention}/layer_norm.bias       .attention.output.LayerNorm.bias
        model/{mlp}/mlp.up.weight               .intermediate.dense.weight
        model/{mlp}/mlp.up.bias                 .intermediate.dense.bias
        model/{mlp}/mlp.down.weight             .output.dense.weight
        model/{mlp}/mlp.down.bias               .output.dense.bias
        model/{mlp}/layer_norm.weight           .output.LayerNorm.weight
        model/{mlp}/layer_norm.bias             .output.LayerNorm.bias
        model/{norm}/linear.weight              cls.predictions.transform.dense.weight
        model/{norm}/linear.bias                cls.predictions.transform.dense.bias
        model/{norm}/layer_norm.weight          cls.predictions.transform.LayerNorm.weight
        model/{norm}/layer_norm.bias            cls.predictions.transform.LayerNorm.bias
        model/{head}/bias                       cls.predictions.bias
    """
    CONFIG = {"vocab_size": 37, "hidden_size": 32, "intermediate_size": 56, "num_hidden_layers": 3, "num_attention_heads": 4,
              "max_position_embeddings": 16, "type_vocab_size": 3, "hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0,
              "tie_word_embeddings": True, "pad_token_id": None}  # a padding's embedding would have no gradient there
    OTHER = {"layer_norm_eps": 1e-2}

    @staticmethod
    def fields(config):
        return {"layers": config.num_hidden_layers, "width": config.hidden_size, "heads": config.num_attention_heads,
                "context": config.max_position_embeddings, "vocabulary": config.vocab_size, "segments": config.type_vocab_size,
                "hidden": config.intermediate_size, "epsilon": config.layer_norm_eps,
                "tanh_gelu": config.hidden_act == "gelu_new"}


COMMON = {"initializer_range": 0.2, "attn_implementation": "eager", "use_cache": False, "tie_word_embeddings": False}
# What it is to us, the library's names of configuration and model, and what is set.
MODELS = {
    "Llama": (Llama, "LlamaConfig", "LlamaForCausalLM", {}),
    "tied Llama": (Llama, "LlamaConfig", "LlamaForCausalLM", {"tie_word_embeddings": True}),
    # Of the four pairs of a head, with its theta, the first stays, the second lies between and two are divided.
    "Llama 3.1": (Llama, "LlamaConfig", "LlamaForCausalLM",
                  {"rope_theta": 100.0, "rope_scaling": {
                      "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                      "original_max_position_embeddings": 40}}),
    "linear Llama": (Llama, "LlamaConfig", "LlamaForCausalLM", {"rope_scaling": {"rope_type": "linear", "factor": 2.5}}),
    "Mistral": (Llama, "MistralConfig", "MistralForCausalLM", {"sliding_window": None, "head_dim": 10}),
    "Qwen2": (Llama, "Qwen2Config", "Qwen2ForCausalLM", {"rope_theta": 1000000.0, "rms_norm_eps": 1e-6}),
    "Qwen3": (Llama, "Qwen3Config", "Qwen3ForCausalLM",
              {"rope_theta": 1000000.0, "rms_norm_eps": 1e-6, "head_dim": 10}),
    "tied Qwen3": (Llama, "Qwen3Config", "Qwen3ForCausalLM",
                   {"rope_theta": 1000000.0, "rms_norm_eps": 1e-6, "tie_word_embeddings": True}),
    "GPT-2": (Gpt2, "GPT2Config", "GPT2LMHeadModel", {}),
    "exact GPT-2": (Gpt2, "GPT2Config", "GPT2LMHeadModel",
                    {"activation_function": "gelu", "layer_norm_epsilon": 1e-3, "n_inner": 56}),
    "tied GPT-2": (Gpt2, "GPT2Config", "GPT2LMHeadModel", {"tie_word_embeddings": True}),
    "BERT": (Bert, "BertConfig", "BertForMaskedLM", {"layer_norm_eps": 1e-6}),
    "BERT with tanh": (Bert, "BertConfig", "BertForMaskedLM", {"hidden_act": "gelu_new"}),
}


def names_of(family, model):
    """{our name: the library's}: all of the model, each once. That none of ours is left our program checks."""
    known = dict(model.named_parameters())
    blocks = model.config.num_hidden_layers
    table = {}
    for block in range(blocks):
        layers = {"attention": 1 + 2 * block, "mlp": 2 + 2 * block, "norm": 1 + 2 * blocks, "head": 2 + 2 * blocks}
        numbers = {name: f"{layer:04d}" for name, layer in layers.items()}
        for line in family.NAMES.strip().splitlines():
            ours, *theirs = line.format(**numbers).split()
            theirs = [f"{family.BLOCKS}{block}{name}" if name.startswith(".") else name for name in theirs]
            if all(name in known for name in theirs):
                table[ours] = theirs
    assert sorted(name for names in table.values() for name in names) == sorted(known)
    return table


class Model:
    """One model of the library, with random weights."""

    def __init__(self, name, **changes):
        self.family, config, model, settings = MODELS[name]
        config = getattr(transformers, config)(**{**COMMON, **self.family.CONFIG, **settings, **changes})
        self.fields = self.family.fields(config)
        torch.manual_seed(3)
        self.model = getattr(transformers, model)(config)
        with torch.no_grad():  # norms that are all ones, and biases of zero, would hide what is confused
            for parameter in self.model.parameters():
                if parameter.dim() == 1:
                    parameter += 0.2 * torch.randn_like(parameter)
        self.table = names_of(self.family, self.model)
        self.turned = {f"{name}.weight" for name, module in self.model.named_modules()
                       if isinstance(module, transformers.pytorch_utils.Conv1D)}  # [in, out]

    def arrays(self, take):
        """Under our names, of each parameter what `take` gives."""
        theirs = {name: take(parameter).numpy() for name, parameter in self.model.named_parameters()}
        theirs |= {name: theirs[name].T for name in self.turned}
        return {ours: np.concatenate([theirs[name] for name in names]) for ours, names in self.table.items()}

    def weights(self):
        return self.arrays(lambda parameter: parameter.detach())

    @staticmethod
    def logits_of(model, batch, **labels):
        """What a model of the library gives for a batch."""
        ids = {"input_ids": "tokens", "token_type_ids": "segments"}
        return model(**labels, **{theirs: torch.tensor(batch[ours].astype(np.int64))
                                  for theirs, ours in ids.items() if ours in batch})

    def step(self, batch):
        """Named as by `stagecoach-oracle run`. The loss is the library's, of targets that it need not shift."""
        targets = torch.tensor(batch["targets"].astype(np.int64))
        self.model.zero_grad()
        shifted = {} if self.family is Bert else {"shift_labels": targets}
        out = self.logits_of(self.model, batch, labels=targets, **shifted)
        out.loss.backward()
        gradients = self.arrays(lambda parameter: parameter.grad)
        step = {"output": out.logits.detach().numpy(), "loss": out.loss.detach().reshape(1).numpy()}
        return step | {f"grad/{name}": gradient for name, gradient in gradients.items()}


def compare(oracle, name, report):
    model = Model(name)
    batch = networks.make_batch(model.fields, np.random.default_rng(11))
    with tempfile.TemporaryDirectory() as folder:
        network = networks.Network(oracle, name, (model.family.ENTRY, None, model.fields, {}), pathlib.Path(folder))
        weights, truth = model.weights(), model.step(batch)
        for stages, micro_batches, mode in ((1, 1, "never"), (3, 1, "always"), (3, 2, "except_first")):
            ours = network.ours(weights, batch, "--stages", stages, "--micro-batches", micro_batches,
                                "--rematerialization", mode)
            for part, value in truth.items():
                report.near(f"{name} K={stages} M={micro_batches} {part}", ours[part], value, TOLERANCE)
        perturbed = {path: array.copy() for path, array in weights.items()}
        perturbed["model/0003/attention.qkv.weight"][-1, 0] += 0.1  # one number, of a value's projection
        must_differ(report, f"{name} with a perturbed weight", network.ours(perturbed, batch), truth)
        other = Model(name, **model.family.OTHER).step(batch)
        must_differ(report, f"{name} with {model.family.OTHER}", network.ours(weights, batch), other)


def must_differ(report, what, ours, truth):
    """By far more than is allowed, or the comparison says nothing."""
    report.checks += 1
    for part in ("output", "grad/model/0000/token.weight"):
        error = np.abs(ours[part] - truth[part]).max() / np.abs(truth[part]).max()
        if not error > 100 * TOLERANCE:
            report.fail(what, f"{part} differs by {error:.1e} of the largest value alone")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.split("\n\n")[1])
    torch.set_num_threads(1)
    report = networks.Report("cpu")
    with networks.Oracle(sys.argv[1]) as oracle:
        for name in MODELS:
            compare(oracle, name, report)
    print(f"transformers {transformers.__version__}, PyTorch {torch.__version__}: {report.checks} comparisons, "
          f"{report.failures} failures")
    sys.exit(1 if report.failures else 0)


if __name__ == "__main__":
    main()
