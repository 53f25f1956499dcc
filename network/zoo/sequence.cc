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

class Sequence final : public NetworkKindOf<SequenceSpec> {
  absl::StatusOr<Network> Write(const SequenceSpec& spec, const std::string& path) const override {
    const Given text = {
        {"width", spec.width}, {"context", spec.context}, {"vocabulary", spec.vocabulary}};
    if (!spec.image.empty()) {
      RETURN_IF_ERROR(CheckNone(text, path, "images"));
      if (spec.tied_embeddings) {
        return FieldError(path + ".tied_embeddings", "true",
                          "a list on images has no embedding: leave it out");
      }
      if (spec.documents) {
        return FieldError(path + ".documents", "true", "a list on images has none: leave it out");
      }
      const ImageShape shape{spec.image, spec.classes};
      RETURN_IF_ERROR(CheckImageShape(shape, path));
      return ChainOnImages(shape, spec.layers, path);
    }
    if (CheckNone(text, path, "").ok() && spec.classes > 0) {
      return FieldError(path + ".image", "not given", "give [height, width, channels]");
    }
    RETURN_IF_ERROR(CheckNone({{"classes", spec.classes}}, path, "text"));
    if (CheckNone(text, path, "").ok()) {
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
};

}  // namespace

const NetworkKind* SequenceNetwork() {
  static const Sequence kind;
  return &kind;
}

}  // namespace stagecoach
