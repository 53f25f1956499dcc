#include "network/lists/layer_graph.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "operations/call_types.h"
#include "operations/catalogue.h"

namespace stagecoach {
namespace {

absl::StatusOr<std::vector<ValueType>> TypesOf(const LayerGraph& graph, std::string_view operation,
                                               const Attributes& attributes,
                                               const std::vector<ValueId>& inputs,
                                               const std::vector<ValueId>& adds = {}) {
  ASSIGN_OR_RETURN(const Operation* found, FindOperation(operation));
  RETURN_IF_ERROR(found->CheckAttributes(attributes));
  const auto types = [&](const std::vector<ValueId>& ids) {
    std::vector<ValueType> of;
    for (const ValueId id : ids) {
      CHECK(id.valid() && id.value < static_cast<int>(graph.values.size()))
          << operation << " reads value " << id.value;
      of.push_back(graph.value(id).type);
    }
    return of;
  };
  return TypesOfCall(*found, attributes, types(inputs), types(adds));
}

}  // namespace

ValueId LayerWriter::NewValue(ValueType type, Origin origin, int index) {
  graph_.values.push_back({std::move(type), origin, index});
  return ValueId(static_cast<int>(graph_.values.size()) - 1);
}

ValueId LayerWriter::Input(ValueType type, bool gradient) {
  const bool constant = !gradient || type.element == Element::kIds;
  graph_.inputs.push_back(
      NewValue(std::move(type), Origin::kInput, static_cast<int>(graph_.inputs.size())));
  graph_.values.back().constant = constant;
  return graph_.inputs.back();
}

ValueId LayerWriter::Parameter(Element element, Shape shape, bool trained) {
  graph_.parameters.push_back(NewValue(WeightType(element, std::move(shape)), Origin::kParameter,
                                       static_cast<int>(graph_.parameters.size())));
  graph_.values.back().constant = !trained;
  return graph_.parameters.back();
}

ValueId LayerWriter::State(Shape shape, Element element) {
  graph_.states.push_back(NewValue(WeightType(element, std::move(shape)), Origin::kState,
                                   static_cast<int>(graph_.states.size())));
  return graph_.states.back();
}

const ValueType& LayerWriter::type(ValueId id) const {
  CHECK(id.valid()) << status_.message();
  return graph_.value(id).type;
}

std::vector<ValueId> LayerWriter::Emit(std::string_view operation, Attributes attributes,
                                       std::vector<ValueId> inputs) {
  return EmitChanging(operation, std::move(attributes), std::move(inputs), {});
}

std::vector<ValueId> LayerWriter::EmitChanging(std::string_view operation, Attributes attributes,
                                               std::vector<ValueId> inputs,
                                               std::vector<ValueId> states) {
  // Whoever writes a call knows how many outputs it has; no operation has more than these.
  const std::vector<ValueId> nothing(4);
  if (!status_.ok()) return nothing;
  absl::StatusOr<std::vector<ValueType>> types =
      TypesOf(graph_, operation, attributes, inputs, states);
  if (!types.ok()) {
    status_ = Annotate(types.status(), std::string(operation));
    return nothing;
  }
  Call call{
      std::string(operation), std::move(attributes), std::move(inputs), {}, std::move(states)};
  for (ValueType& type : *types) {
    call.outputs.push_back(NewValue(std::move(type), Origin::kCall, 0));
  }
  graph_.calls.push_back(std::move(call));
  return graph_.calls.back().outputs;
}

bool LayerWriter::AddToLast(ValueId output, ValueId trunk) {
  if (!status_.ok() || graph_.calls.empty()) return false;
  Call& call = graph_.calls.back();
  if (call.outputs != std::vector<ValueId>{output}) return false;
  std::optional<Attributes> sum = OperationNamed(call.operation).WithSum(call.attributes);
  if (!sum.has_value()) return false;
  call.attributes = *std::move(sum);
  call.inputs.push_back(trunk);
  const auto types = TypesOf(graph_, call.operation, call.attributes, call.inputs);
  status_ = Annotate(types.status(), absl::StrCat(call.operation, " onto its trunk"));
  return true;
}

absl::StatusOr<LayerGraph> LayerWriter::Finish(std::vector<ValueId> outputs) {
  RETURN_IF_ERROR(status_);
  graph_.outputs = std::move(outputs);
  return std::move(graph_);
}

}  // namespace stagecoach
