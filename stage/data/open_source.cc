#include "absl/strings/str_cat.h"
#include "base/field_check.h"
#include "stage/data/batch_source.h"

namespace stagecoach {

absl::StatusOr<std::unique_ptr<BatchSource>> OpenSource(const JobSpec& spec,
                                                        const Network& network) {
  for (const NetworkInput& input : network.inputs) {
    if (input.name == "tokens" || input.name == "targets") continue;
    return FieldError("data.text", absl::StrCat("a network with the input \"", input.name, "\""),
                      "a text gives tokens and targets");
  }
  const WireId tokens = network.InputNamed("tokens");
  if (!tokens.valid()) {
    return FieldError("data.text", "a network without tokens", "give data that fits the network");
  }
  const ValueType& type = network.wire(tokens).type;
  return OpenTextSource(spec, type.shape.elements(), network.input(tokens).classes);
}

}  // namespace stagecoach
