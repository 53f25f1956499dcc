#include "network/lists/update_calls.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "operations/call_types.h"
#include "operations/catalogue.h"

namespace stagecoach {
namespace {

class UpdateCallWriter final : public UpdateWriter {
 public:
  UpdateCallWriter(const LayerGraph& graph, std::vector<Value>* values)
      : graph_(graph), values_(*values) {}

  absl::StatusOr<UpdateCalls> Write() {
    for (const Call& call : graph_.calls) {
      current_ = &call;
      OperationNamed(call.operation).Update(call.attributes, *this);
    }
    if (!status_.ok()) return status_;
    return std::move(updates_);
  }

  const ValueType& input_type(int i) const override { return graph_.value(Input(i)).type; }
  ValueId output(int i) const override { return current_->outputs[static_cast<size_t>(i)]; }
  ValueId Accumulator(Element element, Shape shape) override {
    const auto index = static_cast<int>(updates_.accumulators.size());
    values_.push_back({WeightType(element, std::move(shape)), Origin::kAccumulator, index});
    updates_.accumulators.emplace_back(static_cast<int>(values_.size()) - 1);
    return updates_.accumulators.back();
  }
  void EmitFold(std::string_view operation, Attributes attributes, std::vector<ValueId> inputs,
                const std::vector<ValueId>& accumulators) override {
    for (const ValueId id : accumulators) CheckOrigin(id, Origin::kAccumulator);
    Emit(operation, std::move(attributes), std::move(inputs), accumulators, &updates_.folds);
  }
  void EmitCommit(std::string_view operation, Attributes attributes,
                  std::vector<ValueId> accumulators, const std::vector<int>& states) override {
    for (const ValueId id : accumulators) CheckOrigin(id, Origin::kAccumulator);
    std::vector<ValueId> changed;
    for (const int i : states) {
      CheckOrigin(Input(i), Origin::kState);
      changed.push_back(Input(i));
    }
    Emit(operation, std::move(attributes), std::move(accumulators), changed, &updates_.commits);
  }

 private:
  ValueId Input(int i) const { return current_->inputs[static_cast<size_t>(i)]; }
  const Value& At(ValueId id) const { return values_[static_cast<size_t>(id.value)]; }
  void CheckOrigin(ValueId id, Origin origin) {
    if (At(id).origin == origin || !status_.ok()) return;
    status_ = absl::InvalidArgumentError(absl::StrCat(current_->operation, ": would change value ",
                                                      id.value, ", which is no state"));
  }
  void Emit(std::string_view operation, Attributes attributes, std::vector<ValueId> inputs,
            const std::vector<ValueId>& changed, std::vector<Call>* calls) {
    std::vector<ValueType> types, adds;
    for (const ValueId id : inputs) types.push_back(At(id).type);
    for (const ValueId id : changed) adds.push_back(At(id).type);
    const absl::Status status =
        TypesOfCall(OperationNamed(operation), attributes, types, adds).status();
    if (!status.ok() && status_.ok()) {
      status_ = absl::InvalidArgumentError(absl::StrCat(
          current_->operation, ": its update, ", std::string(operation), ": ", status.message()));
    }
    calls->push_back(
        {std::string(operation), std::move(attributes), std::move(inputs), {}, changed});
  }

  const LayerGraph& graph_;
  std::vector<Value>& values_;
  UpdateCalls updates_;
  const Call* current_ = nullptr;
  absl::Status status_;  // the first error
};

}  // namespace

absl::StatusOr<UpdateCalls> WriteUpdateCalls(const LayerGraph& graph, std::vector<Value>* values) {
  return UpdateCallWriter(graph, values).Write();
}

}  // namespace stagecoach
