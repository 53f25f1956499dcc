#include "checkpoint/other_weights.h"

#include "absl/strings/str_cat.h"
#include "checkpoint/names.h"

namespace stagecoach {
namespace {

struct OtherWeights {
  const char *file, *what, *remedy;
};

constexpr char kOneFile[] = "write the tensors of all shards into one safetensors file";
constexpr char kSaveFile[] = "write them as safetensors (docs/formats.md says how)";
constexpr char kNameFile[] = "name this file itself";

// As Hugging Face's libraries name them.
constexpr OtherWeights kKnown[] = {
    {"model.safetensors.index.json", "sharded weights", kOneFile},
    {"pytorch_model.bin.index.json", "sharded weights in PyTorch's pickles", kOneFile},
    {"pytorch_model.bin", "weights in PyTorch's pickle", kSaveFile},
    {"tf_model.h5", "weights of TensorFlow", kSaveFile},
    {"flax_model.msgpack", "weights of Flax", kSaveFile},
    {"diffusion_pytorch_model.safetensors", "weights", kNameFile},
    {"adapter_model.safetensors", "an adapter's weights, not a network's",
     "merge it into its network first"},
};

}  // namespace

std::string OtherWeightsIn(ReadableFiles& files, const std::string& folder) {
  for (const OtherWeights& other : kKnown) {
    if (!files.Look(JoinPath(folder, other.file)).ok()) continue;
    return absl::StrCat("holds ", other.what, " (", other.file, "); ", other.remedy);
  }
  return "";
}

}  // namespace stagecoach
