#include "network/weight_names.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/status.h"
#include "base/suggest.h"
#include "network/layer_builder.h"

namespace stagecoach {
namespace {

using NameTable = std::vector<WeightName>;

NameTable OwnNames(const Network& network) {
  NameTable names;
  for (const NetworkLayer& layer : network.layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      if (!parameter.tied()) names.push_back({.ours = parameter.name, .shape = parameter.shape});
    }
    for (const StateSpec& state : layer.states) {
      names.push_back({.ours = state.name, .shape = state.shape});
    }
  }
  for (WeightName& name : names) name.other = name.ours;
  return names;
}

// Of "first.convolution.weight": 1. A stem's has no piece.
absl::StatusOr<int> PieceNumber(std::string_view piece) {
  constexpr std::string_view kPieces[] = {"", "first", "second", "third"};
  const auto* const found = std::find(std::begin(kPieces), std::end(kPieces), piece);
  if (found == std::end(kPieces)) {
    return absl::InvalidArgumentError(absl::StrCat("has a ", std::string(piece)));
  }
  return std::max(1, static_cast<int>(found - std::begin(kPieces)));
}

// `path`: of an array within a block or the stem, "first.batch_norm.running_mean"; behind it "bn1.running_mean".
absl::StatusOr<std::string> TorchvisionPath(std::string_view path) {
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

constexpr int kTorchvisionStages = 4;

// A stage's blocks have as many channels; torchvision counts stages from 1, blocks from 0.
class BlockCounter {
 public:
  absl::StatusOr<std::string> Prefix(const NetworkLayer& layer) {
    if (layer.label == "stem") return std::string();
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

absl::StatusOr<NameTable> TorchvisionNames(const Network& network) {
  if (network.layers.empty() ||
      !absl::StartsWith(network.layers[0].function, "resnet_imagenet_stem")) {
    return absl::InvalidArgumentError("does not begin with the stem imagenet");
  }
  NameTable names = OwnNames(network);
  size_t next = 0;
  BlockCounter counter;
  for (const NetworkLayer& layer : network.layers) {
    const bool head = layer.label == "head";
    std::string prefix;
    if (!head) {
      ASSIGN_OR_RETURN(prefix, counter.Prefix(layer));
    }
    const size_t own_prefix = NamePrefix(layer.index).size();
    for (const size_t end = next + layer.parameters.size() + layer.states.size(); next < end;
         ++next) {
      WeightName& name = names[next];
      const std::string path = name.ours.substr(own_prefix);
      if (head) {
        if (!absl::StartsWith(path, "linear.")) {
          return absl::InvalidArgumentError(absl::StrCat("has ", path));
        }
        name.other = absl::StrCat("fc.", path.substr(std::string_view("linear.").size()));
        continue;
      }
      ASSIGN_OR_RETURN(const std::string other, TorchvisionPath(path));
      name.other = prefix + other;
      if (name.shape.rank() == 4) name.layout = WeightLayout::kChannelsFirst;
    }
  }
  if (counter.stages() != kTorchvisionStages) {
    return absl::InvalidArgumentError(absl::StrCat("has ", counter.stages(),
                                                   " stages of blocks and not ", kTorchvisionStages,
                                                   ": form: imagenet has these"));
  }
  return names;
}

// visit(ours, other) for the places of each number of a convolution's weight.
template <typename Visit>
void ForPlaces(const WeightName& name, const Visit& visit) {
  CHECK_EQ(name.shape.rank(), 4) << name.ours;
  const int64_t out = name.shape[0], area = name.shape[1] * name.shape[2], in = name.shape[3];
  for (int64_t o = 0; o < out; ++o) {
    for (int64_t p = 0; p < area; ++p) {
      for (int64_t i = 0; i < in; ++i) visit((o * area + p) * in + i, (o * in + i) * area + p);
    }
  }
}

}  // namespace

Shape WeightName::OtherShape() const {
  if (layout == WeightLayout::kSame) return shape;
  return {shape[0], shape[3], shape[1], shape[2]};
}

absl::StatusOr<NameTable> WeightNames(const Network& network, std::string_view table) {
  if (table == "stagecoach") return OwnNames(network);
  if (table != "torchvision") {
    return absl::NotFoundError(
        absl::StrCat("there is no table of names \"", std::string(table), "\"",
                     Suggestion(std::string(table), {"stagecoach", "torchvision"})));
  }
  absl::StatusOr<NameTable> names = TorchvisionNames(network);
  if (names.ok()) return names;
  return absl::InvalidArgumentError(
      absl::StrCat("the network is none that torchvision has names for: it ",
                   names.status().message(), "; a resnet with form: imagenet and norm: batch is"));
}

void FromOtherLayout(const WeightName& name, std::span<const float> other, std::span<float> ours) {
  CHECK_EQ(other.size(), ours.size()) << name.ours;
  if (name.layout == WeightLayout::kSame) {
    std::copy(other.begin(), other.end(), ours.begin());
    return;
  }
  ForPlaces(name, [&](int64_t to, int64_t from) {
    ours[static_cast<size_t>(to)] = other[static_cast<size_t>(from)];
  });
}

void ToOtherLayout(const WeightName& name, std::span<const float> ours, std::span<float> other) {
  CHECK_EQ(other.size(), ours.size()) << name.ours;
  if (name.layout == WeightLayout::kSame) {
    std::copy(ours.begin(), ours.end(), other.begin());
    return;
  }
  ForPlaces(name, [&](int64_t from, int64_t to) {
    other[static_cast<size_t>(to)] = ours[static_cast<size_t>(from)];
  });
}

}  // namespace stagecoach
