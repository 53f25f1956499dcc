#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/errors/status.h"
#include "network/names/name_tables.h"

namespace stagecoach {
namespace {

// Of "first.convolution.weight": 1. A stem's has no piece.
absl::StatusOr<int> PieceNumber(std::string_view piece) {
  constexpr std::string_view kPieces[] = {"", "first", "second", "third"};
  const auto* const found = std::find(std::begin(kPieces), std::end(kPieces), piece);
  if (found == std::end(kPieces)) {
    return absl::InvalidArgumentError(absl::StrCat("has a ", std::string(piece)));
  }
  return std::max(1, static_cast<int>(found - std::begin(kPieces)));
}

// `path`: of an array within a block or the stem, "first.batch_norm.running_mean"; behind it
// "bn1.running_mean".
absl::StatusOr<std::string> BlockPath(std::string_view path) {
  std::vector<std::string> words = absl::StrSplit(std::string(path), '.');
  if (words.size() == 2) words.insert(words.begin(), "");
  if (words.size() != 3 || (words[1] != "convolution" && words[1] != "batch_norm")) {
    return absl::InvalidArgumentError(absl::StrCat("has ", std::string(path)));
  }
  const bool convolution = words[1] == "convolution";
  const std::string last = words[2] == "running_variance" ? "running_var" : words[2];
  if (words[0] == "shortcut") return absl::StrCat("downsample.", convolution ? 0 : 1, ".", last);
  ASSIGN_OR_RETURN(const int number, PieceNumber(words[0]));
  return absl::StrCat(convolution ? "conv" : "bn", number, ".", last);
}

absl::StatusOr<std::string> HeadPath(std::string_view path) {
  constexpr std::string_view kLinear = "linear.";
  if (path.starts_with(kLinear)) {
    return absl::StrCat("fc.", std::string(path.substr(kLinear.size())));
  }
  return absl::InvalidArgumentError(absl::StrCat("has ", std::string(path)));
}

constexpr int kTorchvisionStages = 4;

// A stage's blocks have as many channels; torchvision counts stages from 1, blocks from 0.
class BlockCounter {
 public:
  absl::StatusOr<std::string> Prefix(const NetworkLayer& layer) {
    if (layer.label == "stem" || layer.label == "head") return std::string();
    if ((layer.label != "basic_block" && layer.label != "bottleneck") || layer.parameters.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("has a layer ", layer.label));
    }
    const int64_t channels = layer.parameters[0].shape[0];
    block_ = channels == channels_ ? block_ + 1 : 0;
    if (channels != channels_) ++stage_;
    channels_ = channels;
    return absl::StrCat("layer", stage_, ".", block_, ".");
  }
  int stages() const { return stage_; }

 private:
  int64_t channels_ = 0;
  int stage_ = 0, block_ = 0;
};

}  // namespace

absl::Status NameResnet(const Network& network, std::string_view, WeightTable* table) {
  if (network.layers.empty() ||
      !absl::StartsWith(network.layers[0].function, "resnet_imagenet_stem")) {
    return absl::InvalidArgumentError("does not begin with the stem imagenet");
  }
  size_t next = 0;
  BlockCounter counter;
  for (const NetworkLayer& layer : network.layers) {
    ASSIGN_OR_RETURN(const std::string prefix, counter.Prefix(layer));
    const auto name = [&](const std::string& path, WeightName* entry) -> absl::Status {
      ASSIGN_OR_RETURN(const std::string other,
                       layer.label == "head" ? HeadPath(path) : BlockPath(path));
      entry->parts = {entry->shape.rank() == 4 ? ConvolutionTensor(prefix + other, entry->shape)
                                               : WholeTensor(prefix + other, entry->shape)};
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(ForNamesOf(layer, &next, &table->names, name));
  }
  if (counter.stages() != kTorchvisionStages) {
    return absl::InvalidArgumentError(absl::StrCat("has ", counter.stages(),
                                                   " stages of blocks and not ", kTorchvisionStages,
                                                   ": form: imagenet has these"));
  }
  return absl::OkStatus();
}

}  // namespace stagecoach
