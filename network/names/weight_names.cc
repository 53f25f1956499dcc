#include "network/names/weight_names.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/suggest.h"
#include "network/names/name_tables.h"

namespace stagecoach {
namespace {

std::vector<WeightName> OwnNames(const Network& network) {
  std::vector<WeightName> names;
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
  if (layout == WeightLayout::kChannelsFirst) return {shape[0], shape[3], shape[1], shape[2]};
  std::vector<int64_t> extents = shape.extents();
  if (layout == WeightLayout::kOnesInFront) {
    while (extents.size() < 3) extents.insert(extents.begin(), 1);
  }
  return Shape(std::move(extents));
}

absl::StatusOr<std::vector<WeightName>> WeightNames(const Network& network,
                                                    std::string_view table) {
  std::vector<WeightName> names = OwnNames(network);
  if (table == kOwnNames) return names;
  if (table != kTorchvisionNames && table != kTimmNames) {
    return absl::NotFoundError(absl::StrCat(
        "there is no table of names \"", std::string(table), "\"",
        Suggestion(std::string(table), {std::string(kOwnNames), std::string(kTimmNames),
                                        std::string(kTorchvisionNames)})));
  }
  absl::Status status;  // of a network of no family the last one's
  for (NameTable* const name : {&NameVit, &NameResnet}) {
    std::vector<WeightName> named = names;
    status = name(network, table, &named);
    if (status.ok()) return named;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the network is none that ", std::string(table), " has names for: it ", status.message(),
      "; a resnet with form: imagenet and norm: batch is, and a vit"));
}

void FromOtherLayout(const WeightName& name, std::span<const float> other, std::span<float> ours) {
  CHECK_EQ(other.size(), ours.size()) << name.ours;
  if (name.layout != WeightLayout::kChannelsFirst) {
    std::copy(other.begin(), other.end(), ours.begin());
    return;
  }
  ForPlaces(name, [&](int64_t to, int64_t from) {
    ours[static_cast<size_t>(to)] = other[static_cast<size_t>(from)];
  });
}

void ToOtherLayout(const WeightName& name, std::span<const float> ours, std::span<float> other) {
  CHECK_EQ(other.size(), ours.size()) << name.ours;
  if (name.layout != WeightLayout::kChannelsFirst) {
    std::copy(ours.begin(), ours.end(), other.begin());
    return;
  }
  ForPlaces(name, [&](int64_t from, int64_t to) {
    other[static_cast<size_t>(to)] = ours[static_cast<size_t>(from)];
  });
}

}  // namespace stagecoach
