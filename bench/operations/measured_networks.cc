#include "bench/operations/measured_networks.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "network/zoo/gpt.h"
#include "network/zoo/resnet.h"

namespace stagecoach {
namespace {

const std::vector<MeasuredNetwork>& Networks() {
  using Sides = std::vector<int64_t>;
  const auto gpt = [](int64_t layers, int64_t width, int64_t heads) {
    return GptSpec{
        .layers = layers, .width = width, .heads = heads, .context = 1024, .vocabulary = 50257};
  };
  static const auto* const rows = new std::vector<MeasuredNetwork>{
      {"gpt2_1.5b", gpt(48, 1600, 25), 8},
      {"gpt2_124m", gpt(12, 768, 12), 32},
      {"resnet_50",
       ResnetSpec{.image = Sides{224, 224, 3},
                  .classes = 1000,
                  .depth = 50,
                  .form = ResnetForm::kImagenet},
       32},
      {"tiny_gpt", GptSpec{.layers = 2, .width = 64, .heads = 2, .context = 32, .vocabulary = 256},
       4},
      {"tiny_resnet", ResnetSpec{.image = Sides{8, 8, 3}, .classes = 10, .depth = 8, .width = 8},
       4},
  };
  return *rows;
}

}  // namespace

absl::StatusOr<std::vector<MeasuredNetwork>> ChosenNetworks(const std::string& names,
                                                            int64_t samples) {
  const auto name_of = [](std::string* out, const MeasuredNetwork& row) { *out += row.name; };
  std::vector<MeasuredNetwork> chosen;
  for (const std::string& name : std::vector<std::string>(absl::StrSplit(names, ','))) {
    const auto row = std::find_if(Networks().begin(), Networks().end(),
                                  [&](const MeasuredNetwork& row) { return row.name == name; });
    if (row == Networks().end()) {
      return absl::InvalidArgumentError(absl::StrCat("--networks: \"", name, "\" is none of ",
                                                     absl::StrJoin(Networks(), ", ", name_of)));
    }
    chosen.push_back(*row);
    if (samples > 0) chosen.back().samples = samples;
  }
  return chosen;
}

}  // namespace stagecoach
