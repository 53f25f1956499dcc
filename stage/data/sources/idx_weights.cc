#include "stage/data/sources/idx_weights.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "operations/losses/loss_types.h"

namespace stagecoach {

absl::StatusOr<std::vector<float>> IdxWeights(const IdxFile& file) {
  std::vector<float> weights(static_cast<size_t>(file.header.count()));
  for (size_t i = 0; i < weights.size(); ++i) {
    uint32_t bits = 0;  // the highest byte first
    for (const uint8_t byte : file.item(static_cast<int64_t>(i))) bits = bits << 8 | byte;
    weights[i] = std::bit_cast<float>(bits);
    if (IsLossWeight(weights[i])) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        file.where, ": weight ", weights[i], " of sample ", i, "; give weights of 0 or ",
        kLeastWeight, " to ", kMostWeight, " as float32, the highest byte first"));
  }
  return weights;
}

absl::Status CheckSomeWeight(const std::string& where, std::span<const float> weights,
                             const std::string& what) {
  if (std::any_of(weights.begin(), weights.end(), [](float weight) { return weight > 0; })) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(where, ": the ", weights.size(), " images to ", what,
                   " all have weight 0; give those that count a weight above 0"));
}

}  // namespace stagecoach
