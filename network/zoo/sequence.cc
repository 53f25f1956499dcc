#include "network/zoo/sequence.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "network/network_kind.h"
#include "network/zoo/layer_chain.h"

namespace stagecoach {
namespace {

using Given = std::vector<std::pair<const char*, int64_t>>;  // fields and their values

absl::Status CheckNone(const Given& fields, const std::string& path, const std::string& on) {
  for (const auto& [field, value] : fields) {
    if (value == 0) continue;
    return FieldError(absl::StrCat(path, ".", field), absl::StrCat(value),
                      absl::StrCat("a list on ", on, " has none: leave it out"));
  }
  return absl::OkStatus();
}

Given TextFields(const SequenceSpec& spec) {
  return {{"width", spec.width}, {"context", spec.context}, {"vocabulary", spec.vocabulary}};
}
Given PairContexts(const SequenceSpec& spec) {
  return {{"source_context", spec.source_context}, {"target_context", spec.target_context}};
}

absl::Status CheckNoDocuments(const SequenceSpec& spec, const std::string& path,
                              const std::string& on) {
  if (!spec.documents) return absl::OkStatus();
  return FieldError(path + ".documents", "true",
                    absl::StrCat("a list on ", on, " has none: leave it out"));
}

absl::StatusOr<Network> OnImages(const SequenceSpec& spec, const std::string& path) {
  const std::string on = "images";
  RETURN_IF_ERROR(CheckNone(TextFields(spec), path, on));
  RETURN_IF_ERROR(CheckNone(PairContexts(spec), path, on));
  if (spec.tied_embeddings) {
    return FieldError(path + ".tied_embeddings", "true",
                      "a list on images has no embedding: leave it out");
  }
  RETURN_IF_ERROR(CheckNoDocuments(spec, path, on));
  if (!spec.encoder.empty()) {
    return FieldError(path + ".encoder", absl::StrCat(spec.encoder.size(), " layers"),
                      "a list on images has none: leave it out");
  }
  const ImageShape shape{spec.image, spec.classes};
  RETURN_IF_ERROR(CheckImageShape(shape, path));
  return ChainOnImages(shape, spec.layers, path);
}

absl::StatusOr<Network> OnPairs(const SequenceSpec& spec, const std::string& path) {
  const std::string on = "pairs, with an encoder,";
  RETURN_IF_ERROR(CheckNone({{"classes", spec.classes}}, path, on));
  if (spec.context > 0) {
    return FieldError(path + ".context", absl::StrCat(spec.context),
                      "a list with an encoder has two: give source_context and target_context");
  }
  RETURN_IF_ERROR(CheckNoDocuments(spec, path, on));
  RETURN_IF_ERROR(CheckInteger(path + ".width", spec.width, 1, kMaxWidth));
  RETURN_IF_ERROR(CheckInteger(path + ".vocabulary", spec.vocabulary, 2, kMaxVocabulary));
  for (const auto& [field, value] : PairContexts(spec)) {
    RETURN_IF_ERROR(CheckInteger(absl::StrCat(path, ".", field), value, 1, kMaxContext));
  }
  const PairShape shape{.width = spec.width,
                        .vocabulary = spec.vocabulary,
                        .source_context = spec.source_context,
                        .target_context = spec.target_context,
                        .tied = spec.tied_embeddings};
  return ChainOnPairs(shape, spec.encoder, spec.layers, path);
}

absl::StatusOr<Network> OnText(const SequenceSpec& spec, const std::string& path) {
  const bool none = CheckNone(TextFields(spec), path, "").ok();
  if (none && spec.classes > 0) {
    return FieldError(path + ".image", "not given", "give [height, width, channels]");
  }
  RETURN_IF_ERROR(CheckNone({{"classes", spec.classes}}, path, "text"));
  RETURN_IF_ERROR(CheckNone(PairContexts(spec), path, "text without an encoder"));
  if (none) {
    return FieldError(path, "neither text nor images",
                      "give width, context and vocabulary, or image and classes");
  }
  RETURN_IF_ERROR(CheckInteger(path + ".width", spec.width, 1, kMaxWidth));
  RETURN_IF_ERROR(CheckInteger(path + ".context", spec.context, 1, kMaxContext));
  RETURN_IF_ERROR(CheckInteger(path + ".vocabulary", spec.vocabulary, 2, kMaxVocabulary));
  return ChainOnTokens(
      {spec.width, spec.context, spec.vocabulary, spec.tied_embeddings, spec.documents},
      spec.layers, path);
}

class Sequence final : public NetworkKindOf<SequenceSpec> {
  absl::StatusOr<Network> Write(const SequenceSpec& spec, const std::string& path) const override {
    if (!spec.image.empty()) return OnImages(spec, path);
    if (!spec.encoder.empty()) return OnPairs(spec, path);
    return OnText(spec, path);
  }
};

}  // namespace

const NetworkKind* SequenceNetwork() {
  static const Sequence kind;
  return &kind;
}

}  // namespace stagecoach
