#include "network/names/huggingface_families.h"

namespace stagecoach {
namespace {

using Place = FamilyPlace;
using Form = ArrayForm;

}  // namespace

const ModelNames& Gpt2Names() {
  static const auto* const kNames = new ModelNames{
      .base = "transformer.",
      .blocks = "h.",
      .norm = "layer_norm",
      .mlp = "mlp",
      .embedding = "embedding",
      .before_head = "layer_norm*",
      .rows = {{Place::kEmbedding, "token.weight", "wte.weight"},
               {Place::kEmbedding, "position.weight", "wpe.weight"},
               {Place::kAttention, "layer_norm.weight", "ln_1.weight"},
               {Place::kAttention, "layer_norm.bias", "ln_1.bias"},
               {Place::kAttention, "attention.qkv.weight", "attn.c_attn.weight", Form::kInOut},
               {Place::kAttention, "attention.qkv.bias", "attn.c_attn.bias"},
               {Place::kAttention, "attention.proj.weight", "attn.c_proj.weight", Form::kInOut},
               {Place::kAttention, "attention.proj.bias", "attn.c_proj.bias"},
               {Place::kMlp, "layer_norm.weight", "ln_2.weight"},
               {Place::kMlp, "layer_norm.bias", "ln_2.bias"},
               {Place::kMlp, "mlp.up.weight", "mlp.c_fc.weight", Form::kInOut},
               {Place::kMlp, "mlp.up.bias", "mlp.c_fc.bias"},
               {Place::kMlp, "mlp.down.weight", "mlp.c_proj.weight", Form::kInOut},
               {Place::kMlp, "mlp.down.bias", "mlp.c_proj.bias"},
               {Place::kBeforeHead, "weight", "ln_f.weight"},
               {Place::kBeforeHead, "bias", "ln_f.bias"},
               {Place::kHead, "weight", "lm_head.weight", Form::kSame, /*optional=*/true}},
      .head = "lm_head.",
      .head_weight = "lm_head.weight",
      // Masks, which earlier versions of the library stored.
      .ignored = {"*.attn.bias", "*.attn.masked_bias"}};
  return *kNames;
}

const ModelNames& LlamaNames() {
  constexpr bool kOptional = true;
  static const auto* const kNames = new ModelNames{
      .base = "model.",
      .blocks = "layers.",
      .norm = "rms_norm",
      .mlp = "swiglu",
      .embedding = "embedding",
      .before_head = "rms_norm:*",
      .rotary = true,
      .query = "q_proj",
      .key = "k_proj",
      .value = "v_proj",
      .rows = {{Place::kEmbedding, "token.weight", "embed_tokens.weight"},
               {Place::kAttention, "rms_norm.weight", "input_layernorm.weight"},
               {Place::kAttention, "attention.qkv.weight", "self_attn.*.weight",
                Form::kQueryKeyValue},
               {Place::kAttention, "attention.qkv.bias", "self_attn.*.bias", Form::kQueryKeyValue,
                kOptional},
               {Place::kAttention, "attention.query_norm.weight", "self_attn.q_norm.weight",
                Form::kSame, kOptional},
               {Place::kAttention, "attention.key_norm.weight", "self_attn.k_norm.weight",
                Form::kSame, kOptional},
               {Place::kAttention, "attention.proj.weight", "self_attn.o_proj.weight"},
               {Place::kAttention, "attention.proj.bias", "self_attn.o_proj.bias", Form::kSame,
                kOptional},
               {Place::kMlp, "rms_norm.weight", "post_attention_layernorm.weight"},
               {Place::kMlp, "swiglu.gate.weight", "mlp.gate_proj.weight"},
               {Place::kMlp, "swiglu.up.weight", "mlp.up_proj.weight"},
               {Place::kMlp, "swiglu.down.weight", "mlp.down_proj.weight"},
               {Place::kBeforeHead, "weight", "norm.weight"},
               {Place::kHead, "weight", "lm_head.weight", Form::kSame, kOptional}},
      .head = "lm_head.",
      .head_weight = "lm_head.weight",
      // Angles, which earlier versions of the library stored.
      .ignored = {"*rotary_emb.inv_freq"}};
  return *kNames;
}

const ModelNames& BertNames() {
  static const auto* const kNames = new ModelNames{
      .base = "bert.",
      .blocks = "encoder.layer.",
      .norm = "layer_norm",
      .mlp = "mlp",
      .embedding = "bert_embedding:*",
      .before_head = "transform(*",
      .post_norm = true,
      .causal = false,
      .query = "query",
      .key = "key",
      .value = "value",
      .old_norms = true,
      .rows = {{Place::kEmbedding, "token.weight", "embeddings.word_embeddings.weight"},
               {Place::kEmbedding, "position.weight", "embeddings.position_embeddings.weight"},
               {Place::kEmbedding, "segment.weight", "embeddings.token_type_embeddings.weight"},
               {Place::kEmbedding, "layer_norm.weight", "embeddings.LayerNorm.weight"},
               {Place::kEmbedding, "layer_norm.bias", "embeddings.LayerNorm.bias"},
               {Place::kAttention, "attention.qkv.weight", "attention.self.*.weight",
                Form::kQueryKeyValue},
               {Place::kAttention, "attention.qkv.bias", "attention.self.*.bias",
                Form::kQueryKeyValue},
               {Place::kAttention, "attention.proj.weight", "attention.output.dense.weight"},
               {Place::kAttention, "attention.proj.bias", "attention.output.dense.bias"},
               {Place::kAttention, "layer_norm.weight", "attention.output.LayerNorm.weight"},
               {Place::kAttention, "layer_norm.bias", "attention.output.LayerNorm.bias"},
               {Place::kMlp, "mlp.up.weight", "intermediate.dense.weight"},
               {Place::kMlp, "mlp.up.bias", "intermediate.dense.bias"},
               {Place::kMlp, "mlp.down.weight", "output.dense.weight"},
               {Place::kMlp, "mlp.down.bias", "output.dense.bias"},
               {Place::kMlp, "layer_norm.weight", "output.LayerNorm.weight"},
               {Place::kMlp, "layer_norm.bias", "output.LayerNorm.bias"},
               {Place::kBeforeHead, "linear.weight", "cls.predictions.transform.dense.weight"},
               {Place::kBeforeHead, "linear.bias", "cls.predictions.transform.dense.bias"},
               {Place::kBeforeHead, "layer_norm.weight",
                "cls.predictions.transform.LayerNorm.weight"},
               {Place::kBeforeHead, "layer_norm.bias", "cls.predictions.transform.LayerNorm.bias"},
               {Place::kHead, "bias", "cls.predictions.bias"}},
      .head = "cls.",
      .head_weight = "cls.predictions.decoder.weight",
      .head_bias = "cls.predictions.bias",
      .head_bias_copy = "cls.predictions.decoder.bias",
      // Numbers of positions, and parts that learn whether two sentences follow each other.
      .ignored = {"*embeddings.position_ids", "*pooler.dense.weight", "*pooler.dense.bias",
                  "cls.seq_relationship.weight", "cls.seq_relationship.bias"}};
  return *kNames;
}

}  // namespace stagecoach
