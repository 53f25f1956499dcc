#include "checkpoint/other_weights.h"

#include "absl/strings/str_cat.h"
#include "checkpoint/names.h"

namespace stagecoach {
namespace {

struct OtherWeights {
  const char *file, *what, *remedy;
};

constexpr char kBeginWith[] =
    "a job begins with them (initialize.from, initialize.names: huggingface)";
constexpr char kSavePretrained[] =
    "write safetensors: AutoModelForCausalLM.from_pretrained(FOLDER).save_pretrained(OTHER)";
constexpr char kSaveFile[] = "write them as safetensors (docs/formats.md says how)";
constexpr char kNameFile[] = "name this file itself";

// As PyTorch, Hugging Face's libraries and Meta name them.
constexpr OtherWeights kKnown[] = {
    {"model.safetensors.index.json", "sharded weights", kBeginWith},
    {"pytorch_model.bin.index.json", "sharded weights in PyTorch's pickles", kSavePretrained},
    {"pytorch_model.bin", "weights in PyTorch's pickle", kSavePretrained},
    {"consolidated.00.pth", "weights in PyTorch's pickles, by Meta's names",
     "take the same model's folder with model.safetensors"},
    {"model.pth", "weights in PyTorch's pickle", kSaveFile},
    {"model.pt", "weights in PyTorch's pickle", kSaveFile},
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
