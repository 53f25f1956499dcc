#include "plan/data/token_inputs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "network/passes/later_rows.h"

namespace stagecoach {

namespace {

absl::Status CheckTokensAndTargets(const std::string& prefix, const Network& network) {
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
  return absl::OkStatus();
}

}  // namespace

std::vector<DataInput> TokenInputs(const TokenForm& form) {
  std::vector<std::string> names = {"tokens", "targets"};
  if (form.documents) names.emplace_back(kDocumentStarts);
  if (form.masks) names.emplace_back(kSegments);
  std::vector<DataInput> inputs;
  for (std::string& name : names) {
    inputs.push_back({.name = std::move(name), .ids = true, .extents = {"context"}});
  }
  return inputs;
}

absl::Status CheckTokenInputs(const std::string& prefix, const Network& network) {
  RETURN_IF_ERROR(CheckTokensAndTargets(prefix, network));
  const std::string reader = ReaderOfLaterRows(network);
  if (reader.empty()) return absl::OkStatus();
  return FieldError(prefix, "gives the token behind each token as its target",
                    absl::StrCat("the network reads that token too (", reader,
                                 "), so it would learn to copy it: take a layer that looks back "
                                 "only, as attention with its causal mask"));
}

absl::Status CheckMaskedInputs(const std::string& prefix, double masked,
                               const std::string& tokenizer, const Network& network) {
  const std::string field = prefix + ".masked";
  const WireId segments = network.InputNamed(kSegments);
  if (masked == 0 && !segments.valid()) return CheckTokenInputs(prefix, network);
  if (masked == 0) {
    return FieldError(field, "0", "the network learns masked tokens: set masked: 0.15");
  }
  RETURN_IF_ERROR(CheckTokensAndTargets(prefix, network));
  const std::string share = absl::StrCat(masked);
  if (segments.valid() &&
      network.wire(segments).type != network.wire(network.InputNamed("tokens")).type) {
    return FieldError(field, "gives as many segments as tokens",
                      absl::StrCat("the network reads ", FormatType(network.wire(segments).type)));
  }
  if (tokenizer.empty()) {
    return FieldError(prefix + ".tokenizer", "not given",
                      "masked tokens become the tokenizer's mask token: give a tokenizer");
  }
  if (ReaderOfLaterRows(network).empty()) {
    return FieldError(
        field, share,
        "the network sees no token behind a masked one: take one that does, as bert, or "
        "leave out masked");
  }
  if (network.objective.ignored.has_value()) return absl::OkStatus();
  return FieldError(field, share,
                    "tokens that are not masked have no target: set "
                    "model.objective.cross_entropy.ignore_index to the tokenizer's padding");
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
