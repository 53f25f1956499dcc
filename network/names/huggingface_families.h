// The names of Hugging Face's families of models, as tables. A network of any of them is an embedding,
// blocks of an attention and an MLP, a layer in front of the head, and the head
// (network/names/huggingface_names.cc).
// Threads: any.
// Source:  modeling_*.py of the Python package transformers, versions 4.40 to 5.
#ifndef STAGECOACH_NETWORK_NAMES_HUGGINGFACE_FAMILIES_H_
#define STAGECOACH_NETWORK_NAMES_HUGGINGFACE_FAMILIES_H_

#include <string>
#include <vector>

namespace stagecoach {

enum class FamilyPlace { kEmbedding, kAttention, kMlp, kBeforeHead, kHead };

// How the library stores an array. kInOut: [in, out]. kQueryKeyValue: as three, whose names stand
// in the place of the "*".
enum class ArrayForm { kSame, kInOut, kQueryKeyValue };

struct FamilyRow {
  FamilyPlace place;
  const char* ours;
  const char* theirs;
  ArrayForm form = ArrayForm::kSame;
  bool optional = false;  // a network may do without the array
};

struct ModelNames {
  const char *base, *blocks;  // prefixes of names; a whole network's and, within it, a block's
  const char *norm, *mlp;     // kinds of layers
  // Patterns of the functions of the first layer and of the one in front of the head.
  const char *embedding, *before_head;
  bool post_norm = false;  // of a block, behind the sum
  bool rotary = false;
  bool causal = true;
  const char *query, *key, *value;
  bool old_norms = false;  // ".weight" and ".bias" of a norm once were ".gamma" and ".beta"
  std::vector<FamilyRow> rows;
  // Names that begin so stand beside the base, not within.
  const char* head;
  const char* head_weight;  // stored beside a tied embedding, or not
  const char *head_bias = nullptr, *head_bias_copy = nullptr;
  std::vector<const char*> ignored =
      {};  // patterns of tensors that are no weights of the network's
};

const ModelNames& Gpt2Names();
const ModelNames& LlamaNames();  // which Mistral, Qwen2 and Qwen3 have too
const ModelNames& BertNames();

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_NAMES_HUGGINGFACE_FAMILIES_H_
