// Names and layouts of a network's arrays in other programs, for weights that come from there or go
// there. A table is a pure function of the network.
// Threads: any.
// Errors:  INVALID_ARGUMENT: the network has no such names, and which networks have; NOT_FOUND: no
//          table of that name.
#ifndef STAGECOACH_NETWORK_NAMES_WEIGHT_NAMES_H_
#define STAGECOACH_NETWORK_NAMES_WEIGHT_NAMES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/numbers/resampling.h"
#include "base/numbers/shape.h"
#include "network/network.h"

namespace stagecoach {

// Rows of a tensor of the other program, taken after its axes are in our order.
struct WeightPart {
  std::string tensor;                     // "layer1.0.conv1.weight"
  std::vector<std::string> aliases = {};  // other names of the tensor, as of an earlier version
  Shape shape = {};                       // of the whole tensor, there
  // Our axis i is its axis axes[i]. Its other axes have extent 1.
  std::vector<int> axes = {};
  int64_t first = 0, rows = 0;  // along our first axis
};

// Rows of an array that are learned positions of an image's patches, by rows of the image.
struct PatchGrid {
  int64_t first_row = 0;  // in front: other positions, as the class token's
  GridSize size;          // in patches
  friend bool operator==(const PatchGrid&, const PatchGrid&) = default;
};

// Our array is the concatenation of its parts along the first axis.
struct WeightName {
  std::string ours;  // "model/0001/first.convolution.weight"
  Shape shape = {};
  std::vector<WeightPart> parts = {};
  // A vit's positions: a file may have them for another grid (stage/weights/position_grid.h). They
  // have one part, with axes in our order.
  std::optional<PatchGrid> patches = {};
};

// A tensor that other programs may store beside `of`, which has the same numbers.
struct WeightCopy {
  std::string tensor, of;  // "lm_head.weight", "transformer.wte.weight"
};

struct WeightTable {
  std::vector<WeightName> names;     // in the order of the network's layers
  std::vector<std::string> ignored;  // patterns of tensors that hold no weights
  std::vector<WeightCopy> copies;    // of tied parameters
};

// Our own names, those of PyTorch's collections of models, and those of Hugging Face's library
// transformers.
inline constexpr std::string_view kOwnNames = "stagecoach", kTorchvisionNames = "torchvision",
                                  kTimmNames = "timm", kHuggingFaceNames = "huggingface";
// All of them.
std::vector<std::string> WeightTables();

// Names of every parameter that a network owns and every state, adapters left out. `table`: one of the
// names above. Torchvision and timm have names for a resnet with form: imagenet and batch norm, which
// are the same, and for a vit. Hugging Face has names for a bert, a gpt and a llama.
absl::StatusOr<WeightTable> WeightNames(const Network& network, std::string_view table);

// Copies the rows of parts[part] from the whole tensor into their place in our array, and back.
// Each span has all elements of its array. The rest of the target stays as it is.
void FromTensor(const WeightName& name, size_t part, std::span<const float> tensor,
                std::span<float> ours);
void ToTensor(const WeightName& name, size_t part, std::span<const float> ours,
              std::span<float> tensor);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_NAMES_WEIGHT_NAMES_H_
