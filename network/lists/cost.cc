#include "network/lists/cost.h"

#include <algorithm>
#include <set>

#include "operations/catalogue.h"

namespace stagecoach {
namespace {

constexpr int64_t kOneSample = 1;

// A call is below 2^62 (network/limits.h), so the next one fits as well.
constexpr int64_t kMostFlops = int64_t{1} << 62;

Cost CostOfCalls(const LayerLists& lists, const CallList& list) {
  Cost sum;
  for (const ListedCall& listed : list.calls) {
    const Call& call = listed.call;
    const Cost cost =
        OperationNamed(call.operation).CostOf(call.attributes, lists.TypesOf(call), kOneSample);
    sum.products = std::min(kMostFlops, sum.products + cost.products);
    sum.flops = std::min(kMostFlops, sum.flops + cost.flops);
  }
  return sum;
}

class Walk {
 public:
  Walk(const LayerLists& lists, DType activation, int64_t samples)
      : lists_(lists), activation_(activation), samples_(samples) {}

  int64_t Bytes(ValueId id) const {
    if (!id.valid()) return 0;
    return TypeBytes(lists_.value(id).type, samples_, activation_);
  }
  int64_t Bytes(const std::vector<ValueId>& ids) const {
    int64_t sum = 0;
    for (const ValueId id : std::set<ValueId>(ids.begin(), ids.end())) sum += Bytes(id);
    return sum;
  }

  // Peak beyond what is there at the beginning. `staying`: somebody else holds them for longer.
  int64_t PeakOf(const CallList& list, const std::vector<ValueId>& staying) const {
    const std::set<ValueId> stay(staying.begin(), staying.end());
    int64_t alive = 0, peak = 0;
    const auto drop = [&](ValueId id) {
      if (!stay.contains(id)) alive -= Bytes(id);
    };
    for (const ValueId id : list.unused) drop(id);
    for (const ListedCall& listed : list.calls) {
      const std::vector<ValueId>& outputs = listed.call.outputs;
      for (size_t i = 0; i < outputs.size(); ++i) {
        if (i > 0 || !listed.in_place.has_value()) alive += Bytes(outputs[i]);
      }
      peak = std::max(peak, alive);
      // What output 0 was made in the memory of is counted as that output from here on.
      for (const ValueId id : listed.dropped) {
        const bool handed_on = listed.in_place.has_value() &&
                               id == listed.call.inputs[static_cast<size_t>(*listed.in_place)];
        if (!handed_on) drop(id);
      }
    }
    return peak;
  }

 private:
  const LayerLists& lists_;
  const DType activation_;
  const int64_t samples_;
};

}  // namespace

ListCost CostOfLists(const LayerLists& lists) {
  const Cost forward = CostOfCalls(lists, lists.forward);
  const Cost backward = CostOfCalls(lists, lists.backward);
  return {forward.products, forward.flops, backward.flops, backward.products};
}

int64_t EvaluationFlops(const LayerLists& lists) {
  return CostOfCalls(lists, lists.evaluation).flops;
}

int64_t MostDrawn(const LayerLists& lists) {
  int64_t most = 0;
  for (const ListedCall& listed : lists.forward.calls) {
    const Call& call = listed.call;
    most =
        std::max(most, OperationNamed(call.operation).Drawn(call.attributes, lists.TypesOf(call)));
  }
  return most;
}

int64_t StashBytes(const LayerLists& lists, DType activation, int64_t samples) {
  return Walk(lists, activation, samples).Bytes(lists.stash);
}

int64_t AccumulatorBytes(const LayerLists& lists) {
  int64_t bytes = 0;
  for (const ValueId id : lists.accumulators) {
    bytes += TypeBytes(lists.value(id).type, 1, DType::kF32);
  }
  return bytes;
}

int64_t PeakOfList(const LayerLists& lists, const CallList& list, DType activation,
                   const std::vector<ValueId>& staying, int64_t samples) {
  return Walk(lists, activation, samples).PeakOf(list, staying);
}

}  // namespace stagecoach
