#include "plan/data/token_inputs.h"

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "network/passes/later_rows.h"

namespace stagecoach {

std::vector<DataInput> TokenInputs(bool documents) {
  std::vector<DataInput> inputs;
  for (const char* const name : {"tokens", "targets", kDocumentStarts}) {
    if (name == kDocumentStarts && !documents) continue;
    inputs.push_back({.name = name, .ids = true, .extents = {"context"}});
  }
  return inputs;
}

absl::Status CheckTokenInputs(const std::string& prefix, const Network& network) {
  const WireId tokens = network.InputNamed("tokens"), targets = network.InputNamed("targets");
  if (!tokens.valid()) {
    return FieldError(prefix, "gives tokens and targets",
                      "the network does not read tokens: give data that it reads");
  }
  if (targets.valid() && network.wire(tokens).type != network.wire(targets).type) {
    return FieldError(
        prefix, "gives as many targets as tokens",
        absl::StrCat("the network reads tokens ", FormatType(network.wire(tokens).type),
                     " and targets ", FormatType(network.wire(targets).type)));
  }
  const std::string reader = ReaderOfLaterRows(network);
  if (reader.empty()) return absl::OkStatus();
  return FieldError(prefix, "gives the token behind each token as its target",
                    absl::StrCat("the network reads that token too (", reader,
                                 "), so it would learn to copy it: take a layer that looks back "
                                 "only, as attention with its causal mask"));
}

absl::Status CheckPacked(const std::string& prefix, bool packed, const Network& network) {
  const WireId starts = network.InputNamed(kDocumentStarts);
  if (packed && !starts.valid()) {
    return FieldError(prefix + ".packed", "true",
                      "the network's attention goes across documents: set documents: true in a "
                      "network that has it (gpt, llama, sequence), or leave out packed");
  }
  if (!packed && starts.valid()) {
    return FieldError(prefix + ".packed", "false",
                      "the network keeps documents apart: set packed: true, or leave out the "
                      "network's documents");
  }
  if (!packed || network.wire(starts).type == network.wire(network.InputNamed("tokens")).type) {
    return absl::OkStatus();
  }
  return FieldError(prefix + ".packed", "gives as many document_starts as tokens",
                    absl::StrCat("the network reads ", FormatType(network.wire(starts).type)));
}

int64_t ContextOf(const Network& network) {
  return network.wire(network.InputNamed("tokens")).type.shape.elements();
}

int64_t VocabularyOf(const Network& network) {
  return network.input(network.InputNamed("tokens")).classes;
}

std::vector<int32_t> DocumentStarts(std::span<const int32_t> tokens, int32_t end) {
  std::vector<int32_t> starts;
  starts.reserve(tokens.size());
  int32_t start = 0;
  for (const int32_t token : tokens) {
    starts.push_back(start);
    if (token == end) start = static_cast<int32_t>(starts.size());
  }
  return starts;
}

}  // namespace stagecoach
