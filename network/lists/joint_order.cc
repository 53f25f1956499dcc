// JointOrder: memory decides when a weight gradient is computed; numbers do not depend on it.
#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <utility>

#include "base/errors/check.h"
#include "network/lists/gradient_calls.h"

namespace stagecoach {
namespace {

class Merger {
 public:
  Merger(const std::vector<Call>& input_part, const std::vector<Call>& weight_part,
         const std::vector<ValueId>& kept)
      : input_part_(input_part), weight_part_(weight_part) {
    for (const ValueId id : kept) ++readers_[id];
    for (const Call& call : input_part) Expect(call);
    unmade_.resize(weight_part.size());
    for (size_t i = 0; i < weight_part.size(); ++i) {
      Expect(weight_part[i]);
      for (const ValueId id : weight_part[i].adds) adding_[id].push(i);
    }
    for (size_t i = 0; i < weight_part.size(); ++i) {
      for (const ValueId id : weight_part[i].inputs) {
        if (!made_later_.contains(id)) continue;
        ++unmade_[i];
        waiting_for_[id].push_back(i);
      }
      if (unmade_[i] == 0) ready_.insert(i);
    }
  }

  std::vector<Call> Merge() {
    for (const Call& call : input_part_) {
      while (TakeOneOf([this](size_t i) { return FreesSomething(weight_part_[i]); })) {
      }
      Run(call);
    }
    while (TakeOneOf([](size_t) { return true; })) {
    }
    CHECK_EQ(merged_.size(), input_part_.size() + weight_part_.size()) << "calls of a backward";
    return std::move(merged_);
  }

 private:
  void Expect(const Call& call) {
    for (const ValueId id : call.inputs) ++readers_[id];
    made_later_.insert(call.outputs.begin(), call.outputs.end());
  }

  void Run(const Call& call) {
    for (const ValueId id : call.inputs) --readers_[id];
    for (const ValueId id : call.outputs) {
      for (const size_t waiting : waiting_for_[id]) {
        if (--unmade_[waiting] == 0) ready_.insert(waiting);
      }
    }
    merged_.push_back(call);
  }

  void Take(size_t i) {
    ready_.erase(i);
    for (const ValueId id : weight_part_[i].adds) adding_[id].pop();
    Run(weight_part_[i]);
  }

  template <typename Suits>
  bool TakeOneOf(Suits suits) {
    for (const size_t i : ready_) {
      if (!IsNextOfItsParameters(i) || !suits(i)) continue;
      Take(i);
      return true;
    }
    return false;
  }

  bool IsNextOfItsParameters(size_t i) const {
    const auto& adds = weight_part_[i].adds;
    return std::all_of(adds.begin(), adds.end(),
                       [&](ValueId id) { return adding_.at(id).front() == i; });
  }

  // Is it the last to read something?
  bool FreesSomething(const Call& call) const {
    return std::any_of(call.inputs.begin(), call.inputs.end(), [&](ValueId id) {
      return readers_.at(id) == std::count(call.inputs.begin(), call.inputs.end(), id);
    });
  }

  const std::vector<Call>& input_part_;
  const std::vector<Call>& weight_part_;
  std::map<ValueId, int64_t> readers_;  // that are still to come
  std::set<ValueId> made_later_;
  std::map<ValueId, std::vector<size_t>> waiting_for_;
  std::map<ValueId, std::queue<size_t>> adding_;  // in their order, by parameter
  std::vector<int> unmade_;                       // inputs of each weight call
  std::set<size_t> ready_;
  std::vector<Call> merged_;
};

}  // namespace

std::vector<Call> JointOrder(const std::vector<Call>& input_part,
                             const std::vector<Call>& weight_part,
                             const std::vector<ValueId>& kept) {
  return Merger(input_part, weight_part, kept).Merge();
}

}  // namespace stagecoach
