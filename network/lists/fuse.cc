// The table of rewrites of a backward.
#include <optional>
#include <set>
#include <utility>

#include "network/lists/gradient_calls.h"
#include "operations/catalogue.h"
#include "operations/linear.h"

namespace stagecoach {
namespace {

class Fuser {
 public:
  Fuser(const LayerGraph& graph, GradientCalls* backward)
      : calls_(backward->calls), uses_(backward->values.size(), 0), maker_(uses_.size(), -1) {
    for (const ValueId id : backward->input_gradients) CountUse(id);
    for (size_t i = 0; i < calls_.size(); ++i) {
      for (const ValueId id : calls_[i].inputs) CountUse(id);
      for (const ValueId id : calls_[i].outputs) Maker(id) = static_cast<int>(i);
    }
    for (const Call& call : graph.calls) {
      if (call.operation == "linear" && call.outputs.size() == 2) {
        inputs_of_gelu_.insert(call.outputs[0]);
      }
    }
  }

  void Run() {
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (calls_[i].operation == "gelu_gradient") GeluOfLinear(i);
      if (calls_[i].operation == "add") SumOfBranch(i);
    }
    std::erase_if(calls_, [](const Call& call) { return call.operation.empty(); });
  }

 private:
  void CountUse(ValueId id) {
    if (id.valid()) ++uses_[static_cast<size_t>(id.value)];
  }
  int& Maker(ValueId id) { return maker_[static_cast<size_t>(id.value)]; }

  // The call that makes a value and nothing else, if the value is read once; else null.
  Call* OnlyFor(ValueId id) {
    if (Maker(id) < 0 || uses_[static_cast<size_t>(id.value)] != 1) return nullptr;
    Call& call = calls_[static_cast<size_t>(Maker(id))];
    return call.outputs.size() == 1 ? &call : nullptr;
  }

  // In an mlp: the input gradient of the second linear and the gradient of the GELU before it.
  void GeluOfLinear(size_t i) {
    const ValueId gelu_input = calls_[i].inputs[1];
    Call* linear = OnlyFor(calls_[i].inputs[0]);
    if (linear == nullptr || linear->operation != "linear_input_gradient") return;
    if (linear->inputs.size() != 2) return;
    if (!inputs_of_gelu_.contains(gelu_input)) return;
    linear->attributes = ToAttributes(LinearInputGradientAttributes{.gelu = true});
    linear->inputs.push_back(gelu_input);
    StandFor(i, linear);
  }

  // At the beginning of a branch: the norm's input gradient and the sum with the trunk's.
  void SumOfBranch(size_t i) {
    Call* branch = OnlyFor(calls_[i].inputs[1]);
    if (branch == nullptr) return;
    std::optional<Attributes> sum = OperationNamed(branch->operation).WithSum(branch->attributes);
    if (!sum.has_value()) return;
    branch->attributes = *std::move(sum);
    branch->inputs.push_back(calls_[i].inputs[0]);
    StandFor(i, branch);
  }

  // The rewritten call stands where the later of the two stood: there all that it reads is made.
  void StandFor(size_t i, Call* rewritten) {
    rewritten->outputs = calls_[i].outputs;
    calls_[i] = std::exchange(*rewritten, Call());
    Maker(calls_[i].outputs[0]) = static_cast<int>(i);
  }

  std::vector<Call>& calls_;
  std::vector<int> uses_, maker_;  // by value
  std::set<ValueId> inputs_of_gelu_;
};

}  // namespace

void FuseGradientCalls(const LayerGraph& graph, GradientCalls* backward) {
  Fuser(graph, backward).Run();
}

}  // namespace stagecoach
