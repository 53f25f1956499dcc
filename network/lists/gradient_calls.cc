#include "network/lists/gradient_calls.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "operations/call_types.h"
#include "operations/catalogue.h"

namespace stagecoach {
namespace {

class Writer final : public GradientWriter {
 public:
  explicit Writer(const LayerGraph& graph) : graph_(graph) {
    backward_.values = graph.values;
    FindNeeds();
  }

  absl::StatusOr<GradientCalls> Write() {
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
      asked_.clear();
      OperationNamed(call->operation).Gradient(call->attributes, *this);
      CheckAllAsked();
      if (!status_.ok()) return status_;
    }
    current_ = nullptr;
    for (const ValueId input : graph_.inputs) {
      backward_.input_gradients.push_back(Needs(input) ? Sum(input) : ValueId());
    }
    if (!status_.ok()) return status_;
    return std::move(backward_);
  }

  int inputs() const override { return static_cast<int>(current_->inputs.size()); }
  const ValueType& input_type(int i) const override { return graph_.value(input(i)).type; }
  ValueId input(int i) const override { return current_->inputs[static_cast<size_t>(i)]; }
  ValueId output(int i) const override { return current_->outputs[static_cast<size_t>(i)]; }
  bool Wants(int i) const override { return Needs(input(i)); }
  ValueId OutputGradient(int i) const override {
    auto* const writer =
        const_cast<Writer*>(this);  // NOLINT: sums are written when first asked for
    writer->asked_.insert(output(i));
    return writer->Sum(output(i));
  }

  std::vector<ValueId> Emit(std::string_view operation, Attributes attributes,
                            std::vector<ValueId> inputs) override {
    // Whoever writes a call knows how many outputs it has; no operation has more than these.
    const std::vector<ValueId> nothing(4);
    const std::vector<ValueType> types = TypesOf(inputs);
    if (!status_.ok()) return nothing;
    absl::StatusOr<std::vector<ValueType>> made =
        TypesOfCall(OperationNamed(operation), attributes, types, {});
    if (!made.ok()) {
      RefuseCall(operation, made.status());
      return nothing;
    }
    Call call{std::string(operation), std::move(attributes), std::move(inputs), {}, {}};
    for (ValueType& type : *made) call.outputs.push_back(NewValue(std::move(type)));
    backward_.calls.push_back(std::move(call));
    return backward_.calls.back().outputs;
  }

  void EmitAdding(std::string_view operation, Attributes attributes, std::vector<ValueId> inputs,
                  const std::vector<int>& parameters) override {
    Call call{std::string(operation), std::move(attributes), std::move(inputs), {}, {}};
    const std::vector<ValueType> types = TypesOf(call.inputs);
    std::vector<ValueType> adds;
    for (const int i : parameters) {
      if (graph_.value(input(i)).origin != Origin::kParameter)
        Refuse("is given a weight that is no parameter");
      if (!status_.ok()) return;
      call.adds.push_back(ParameterGradient(input(i)));
      adds.push_back(TypeOf(call.adds.back()));
    }
    const absl::Status status =
        TypesOfCall(OperationNamed(operation), call.attributes, types, adds).status();
    if (!status.ok()) return RefuseCall(operation, status);
    backward_.calls.push_back(std::move(call));
  }

  void Contribute(int i, ValueId gradient) override {
    if (!status_.ok()) return;
    CHECK(Needs(input(i)) && gradient.valid())
        << "a gradient for input " << i << " of " << CurrentName();
    shares_[input(i)].push_back(gradient);
  }

  void Refuse(std::string_view why) override {
    if (!status_.ok()) return;
    status_ = absl::InvalidArgumentError(absl::StrCat(CurrentName(), ": ", std::string(why)));
  }

 private:
  const std::string& CurrentName() const {
    static const std::string inputs = "the inputs";
    return current_ == nullptr ? inputs : current_->operation;
  }
  void RefuseCall(std::string_view operation, const absl::Status& why) {
    Refuse(absl::StrCat("its gradient, ", std::string(operation), ": ", why.message()));
  }
  // Of what a call of the backward reads. A gradient that nobody gave has none.
  std::vector<ValueType> TypesOf(const std::vector<ValueId>& ids) {
    std::vector<ValueType> types;
    for (const ValueId id : ids) {
      if (!id.valid()) Refuse("is read for what has no gradient");
      if (!status_.ok()) return {};
      types.push_back(TypeOf(id));
    }
    return types;
  }
  // A rule passes on what arrives for outputs that it knows a gradient of.
  void CheckAllAsked() {
    for (size_t i = 0; i < current_->outputs.size(); ++i) {
      const ValueId id = current_->outputs[i];
      if (!shares_.contains(id) || asked_.contains(id)) continue;
      Refuse(absl::StrCat("has no gradient through output ", i));
    }
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
  std::set<ValueId> asked_;  // outputs of the call at hand whose gradients its rule has taken
  const Call* current_ = nullptr;
  absl::Status status_;  // the first error
};

}  // namespace

absl::StatusOr<GradientCalls> WriteGradientCalls(const LayerGraph& graph) {
  return Writer(graph).Write();
}

}  // namespace stagecoach
