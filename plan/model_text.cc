#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "network/layer_kinds.h"
#include "plan/model_spec.h"

namespace stagecoach {
namespace {

// Of one value; 0 for ids.
int64_t WidthOf(const ExpandedModel& model, const std::vector<WireId>& wires) {
  CHECK_EQ(wires.size(), size_t{1}) << "a layer with one value in and one out";
  const ValueType& type = model.wire(wires[0]).type;
  return type.element == Element::kIds ? 0 : type.shape.back();
}

}  // namespace

std::string CanonicalModelText(const ExpandedModel& model) {
  std::string text =
      absl::StrCat("model 1\ncontext ", model.targets(), "\nvocabulary ", model.classes(), "\n");
  for (const ExpandedLayer& layer : model.layers) {
    absl::StrAppend(&text, "layer ", layer.index, " ", layer.function, " ",
                    WidthOf(model, layer.inputs), " ", WidthOf(model, layer.outputs), "\n");
    for (const ParameterSpec& parameter : layer.parameters) {
      absl::StrAppend(&text, "  ", parameter.name, " ", parameter.shape.ToString(), "\n");
    }
  }
  return text;
}

}  // namespace stagecoach
