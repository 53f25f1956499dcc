// JoinCalls: pairs of calls of a joint backward that have one joint operation (operations/joint.h).
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "network/lists/gradient_calls.h"
#include "operations/catalogue.h"

namespace stagecoach {
namespace {

// By the operation of the first part.
const std::map<std::string_view, const Operation*>& JointOperations() {
  static const auto* const found = [] {
    auto* const joint = new std::map<std::string_view, const Operation*>();
    for (const Operation* operation : AllOperations()) {
      if (operation->Parts() != nullptr)
        joint->emplace(operation->Parts()->input_gradient, operation);
    }
    return joint;
  }();
  return *found;
}

std::optional<Call> Joined(const Call& first, const Call& second) {
  const auto found = JointOperations().find(first.operation);
  if (found == JointOperations().end()) return std::nullopt;
  const JointParts& parts = *found->second->Parts();
  std::vector<ValueId> read;
  for (const int i : parts.weight_inputs) read.push_back(first.inputs[static_cast<size_t>(i)]);
  const Call weights{std::string(parts.weight_gradient), {}, std::move(read), {}, second.adds};
  if (second != weights) return std::nullopt;
  return Call{std::string(found->second->name()), first.attributes, first.inputs, first.outputs,
              second.adds};
}

}  // namespace

std::vector<Call> JoinCalls(std::vector<Call> calls) {
  std::vector<Call> joined;
  for (Call& call : calls) {
    std::optional<Call> both = joined.empty() ? std::nullopt : Joined(joined.back(), call);
    if (both.has_value()) {
      joined.back() = *std::move(both);
    } else {
      joined.push_back(std::move(call));
    }
  }
  return joined;
}

}  // namespace stagecoach
