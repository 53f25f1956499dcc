#include "network/gradient_calls.h"

#include <map>
#include <utility>

#include "operations/catalogue.h"

namespace stagecoach {
namespace {

class Writer final : public GradientWriter {
 public:
  explicit Writer(const LayerGraph& graph) : graph_(graph) {
    backward_.values = graph.values;
    FindNeeds();
  }

  GradientCalls Write() {
    for (const ValueId output : graph_.outputs) {
      ValueId gradient;
      if (Needs(output)) {
        gradient = NewValue(graph_.value(output).type);
        shares_[output].push_back(gradient);
      }
      backward_.output_gradients.push_back(gradient);
    }
    backward_.parameter_gradients.resize(graph_.parameters.size());
    for (const ValueId parameter : graph_.parameters) {
      if (Needs(parameter)) ParameterGradient(parameter);
    }
    for (auto call = graph_.calls.rbegin(); call != graph_.calls.rend(); ++call) {
      current_ = &*call;
      if (!AnyOutputHasShares()) continue;
      OperationNamed(call->operation).Gradient(call->attributes, *this);
    }
    for (const ValueId input : graph_.inputs) {
      backward_.input_gradients.push_back(Needs(input) ? Sum(input) : ValueId());
    }
    return std::move(backward_);
  }

  int inputs() const override { return static_cast<int>(current_->inputs.size()); }
  const ValueType& input_type(int i) const override { return graph_.value(input(i)).type; }
  ValueId input(int i) const override { return current_->inputs[static_cast<size_t>(i)]; }
  ValueId output(int i) const override { return current_->outputs[static_cast<size_t>(i)]; }
  bool Wants(int i) const override { return Needs(input(i)); }
  ValueId OutputGradient(int i) const override {
    return const_cast<Writer*>(this)->Sum(
        output(i));  // NOLINT: sums are written when first asked for
  }

  std::vector<ValueId> Emit(std::string_view operation, Attributes attributes,
                            std::vector<ValueId> inputs) override {
    std::vector<ValueType> types;
    for (const ValueId id : inputs) types.push_back(TypeOf(id));
    absl::StatusOr<std::vector<ValueType>> made =
        OperationNamed(operation).Types(attributes, types, {});
    CHECK(made.ok()) << operation << " in the gradient of " << CurrentName() << ": "
                     << made.status();
    Call call{std::string(operation), std::move(attributes), std::move(inputs), {}, {}};
    for (ValueType& type : *made) call.outputs.push_back(NewValue(std::move(type)));
    backward_.calls.push_back(std::move(call));
    return backward_.calls.back().outputs;
  }

  void EmitAdding(std::string_view operation, Attributes attributes, std::vector<ValueId> inputs,
                  const std::vector<int>& parameters) override {
    Call call{std::string(operation), std::move(attributes), std::move(inputs), {}, {}};
    std::vector<ValueType> types, adds;
    for (const ValueId id : call.inputs) types.push_back(TypeOf(id));
    for (const int i : parameters) {
      const Value& parameter = graph_.value(input(i));
      CHECK(parameter.origin == Origin::kParameter) << "gradients are added to for parameters only";
      call.adds.push_back(ParameterGradient(input(i)));
      adds.push_back(TypeOf(call.adds.back()));
    }
    const absl::Status status =
        OperationNamed(operation).Types(call.attributes, types, adds).status();
    CHECK(status.ok()) << operation << " in the gradient of " << CurrentName() << ": " << status;
    backward_.calls.push_back(std::move(call));
  }

  void Contribute(int i, ValueId gradient) override {
    CHECK(Needs(input(i)) && gradient.valid())
        << "a gradient for input " << i << " of " << CurrentName();
    shares_[input(i)].push_back(gradient);
  }

 private:
  const std::string& CurrentName() const {
    static const std::string inputs = "the inputs";
    return current_ == nullptr ? inputs : current_->operation;
  }
  bool Needs(ValueId id) const { return needs_[static_cast<size_t>(id.value)]; }
  const ValueType& TypeOf(ValueId id) const {
    return backward_.values[static_cast<size_t>(id.value)].type;
  }
  ValueId NewValue(ValueType type) {
    backward_.values.push_back({std::move(type), Origin::kCall, 0});
    return ValueId(static_cast<int>(backward_.values.size()) - 1);
  }

  ValueId ParameterGradient(ValueId parameter) {
    const Value& value = graph_.value(parameter);
    ValueId& gradient = backward_.parameter_gradients[static_cast<size_t>(value.index)];
    if (!gradient.valid()) gradient = NewValue(WeightType(Element::kFloat32, value.type.shape));
    return gradient;
  }

  void FindNeeds() {
    needs_.assign(graph_.values.size(), false);
    for (const auto* ids : {&graph_.parameters, &graph_.inputs}) {
      for (const ValueId id : *ids) {
        needs_[static_cast<size_t>(id.value)] = !graph_.value(id).constant;
      }
    }
    for (const Call& call : graph_.calls) {
      bool any = false;
      for (const ValueId id : call.inputs) any = any || Needs(id);
      for (const ValueId id : call.outputs) {
        needs_[static_cast<size_t>(id.value)] =
            any && graph_.value(id).type.element != Element::kIds;
      }
    }
  }

  bool AnyOutputHasShares() const {
    for (const ValueId id : current_->outputs) {
      if (shares_.contains(id)) return true;
    }
    return false;
  }

  // One value out of all shares, each sum rounded once.
  ValueId Sum(ValueId id) {
    const auto found = shares_.find(id);
    if (found == shares_.end()) return ValueId();
    std::vector<ValueId>& shares = found->second;
    ValueId sum = shares[0];
    for (size_t i = 1; i < shares.size(); ++i) sum = Emit("add", {}, {sum, shares[i]})[0];
    shares = {sum};
    return sum;
  }

  const LayerGraph& graph_;
  GradientCalls backward_;
  std::vector<bool> needs_;                         // by value of the graph
  std::map<ValueId, std::vector<ValueId>> shares_;  // of the gradients of the graph's values
  const Call* current_ = nullptr;
};

}  // namespace

GradientCalls WriteGradientCalls(const LayerGraph& graph) { return Writer(graph).Write(); }

}  // namespace stagecoach
