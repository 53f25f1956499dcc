#include "bench/operations/network_calls.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "operations/catalogue.h"
#include "operations/loss_types.h"

namespace stagecoach {
namespace {

std::string TypesText(const std::vector<ValueType>& types) {
  return absl::StrJoin(types, " ", [](std::string* out, const ValueType& type) {
    absl::StrAppend(out, FormatType(type));
  });
}

class CallCounter {
 public:
  void Count(const Call& call, CallTypes types) {
    Attributes attributes = call.attributes;
    if (attributes.Find("draw") != nullptr) attributes.Set("draw", int64_t{0});
    const std::string key = absl::StrCat(call.operation, "|", FormatAttributes(attributes), "|",
                                         TypesText(types.inputs), "|", TypesText(types.outputs),
                                         "|", TypesText(types.adds));
    const auto [found, added] = places_.emplace(key, calls_.size());
    if (added) {
      calls_.push_back(
          {{.operation = call.operation, .attributes = call.attributes}, std::move(types), 0});
    }
    ++calls_[found->second].times;
  }
  void Count(const LayerLists& lists, const CallList& list) {
    for (const ListedCall& listed : list.calls) Count(listed.call, lists.TypesOf(listed.call));
  }
  std::vector<NetworkCall> Take() { return std::move(calls_); }

 private:
  std::vector<NetworkCall> calls_;
  std::map<std::string, size_t> places_;
};

void CountLoss(const Network& network, CallCounter& counter) {
  const Objective& objective = network.objective;
  Call call{.operation = objective.operation, .attributes = objective.attributes};
  call.attributes.Set("gradient", true);
  CallTypes types;
  types.inputs.push_back(network.wire(objective.output).type);
  for (const ValueType& type : objective.loaded()) types.inputs.push_back(type);
  types.inputs.push_back(ScaleType());
  const auto outputs =
      OperationNamed(call.operation).Types(call.attributes, types.inputs, types.adds);
  CHECK_OK(outputs.status());
  types.outputs = *outputs;
  counter.Count(call, std::move(types));
}

}  // namespace

std::vector<NetworkCall> NetworkCalls(const Network& network) {
  CallCounter counter;
  for (const NetworkLayer& layer : network.layers)
    counter.Count(*layer.lists, layer.lists->forward);
  CountLoss(network, counter);
  for (auto layer = network.layers.rbegin(); layer != network.layers.rend(); ++layer) {
    counter.Count(*layer->lists, layer->lists->backward);
  }
  return counter.Take();
}

std::string InputsText(const CallTypes& types) { return TypesText(types.inputs); }

int64_t LeastBytes(const CallTypes& types, int64_t samples, DType activation) {
  int64_t ids = 0;
  for (const ValueType& type : types.inputs) {
    if (type.element == Element::kIds) ids += TypeElements(type, samples);
  }
  const auto touched = [&](const ValueType& type) {
    const int64_t bytes = TypeBytes(type, samples, activation);
    const bool looked_up = ids > 0 && type.leading == Leading::kOne && type.shape.rank() == 2;
    if (!looked_up) return bytes;
    return std::min(bytes, ids * (bytes / type.shape[0]));
  };
  int64_t bytes = 0;
  for (const ValueType& type : types.inputs) bytes += touched(type);
  for (const ValueType& type : types.outputs) bytes += touched(type);
  for (const ValueType& type : types.adds) bytes += 2 * touched(type);
  return bytes;
}

double FloorSeconds(double products, double bytes, double flops_per_second,
                    double bytes_per_second) {
  return std::max(products / flops_per_second, bytes / bytes_per_second);
}

}  // namespace stagecoach
