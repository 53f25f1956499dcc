#include "bench/operations/measured_networks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/errors/status.h"
#include "network/network_kinds.h"
#include "network/zoo/gpt.h"
#include "network/zoo/resnet.h"

namespace stagecoach {
namespace {

struct Known {
  const char* name;
  NetworkSpec spec;
  int64_t samples;
};

const std::vector<Known>& KnownNetworks() {
  using Sides = std::vector<int64_t>;
  const auto gpt = [](int64_t layers, int64_t width, int64_t heads) {
    return GptSpec{
        .layers = layers, .width = width, .heads = heads, .context = 1024, .vocabulary = 50257};
  };
  static const auto* const rows = new std::vector<Known>{
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
                                                            int64_t samples, Precision precision) {
  const auto name_of = [](std::string* out, const Known& known) { *out += known.name; };
  std::vector<MeasuredNetwork> chosen;
  for (const std::string& name : std::vector<std::string>(absl::StrSplit(names, ','))) {
    const auto known = std::find_if(KnownNetworks().begin(), KnownNetworks().end(),
                                    [&](const Known& one) { return one.name == name; });
    if (known == KnownNetworks().end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--networks: \"", name, "\" is none of ", absl::StrJoin(KnownNetworks(), ", ", name_of)));
    }
    ASSIGN_OR_RETURN(Network network, ExpandNetwork(known->spec, precision));
    chosen.push_back({name, std::move(network), samples > 0 ? samples : known->samples});
  }
  return chosen;
}

absl::StatusOr<std::vector<MeasuredNetwork>> NetworksOfJob(const JobSpec& spec, int64_t samples) {
  const TrainingSpec& training = spec.training;
  const auto size = [&](int64_t i) {
    return MicroBatchSize(training.batch_size, training.micro_batches, i);
  };
  std::vector<int64_t> sizes = {size(0), size(training.micro_batches - 1)};
  if (sizes[0] == sizes[1]) sizes.pop_back();
  if (samples > 0) sizes = {samples};
  std::vector<MeasuredNetwork> networks;
  for (const int64_t one : sizes) {
    ASSIGN_OR_RETURN(Network network, ExpandJob(spec));
    networks.push_back({spec.name, std::move(network), one});
  }
  return networks;
}

}  // namespace stagecoach
