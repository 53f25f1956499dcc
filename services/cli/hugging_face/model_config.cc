#include "services/cli/hugging_face/model_config.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "network/zoo/bert.h"
#include "network/zoo/gpt.h"
#include "network/zoo/llama.h"
#include "services/cli/hugging_face/model_families.h"

namespace stagecoach {
namespace {

constexpr const ModelFamily& (*kFamilies[])() = {BertFamily,    Gpt2Family,  LlamaFamily,
                                                 MistralFamily, Qwen2Family, Qwen3Family};

std::string KnownArchitectures() {
  return absl::StrJoin(kFamilies, ", ", [](std::string* text, const ModelFamily& (*family)()) {
    absl::StrAppend(text, family().architecture);
  });
}

// A model with another head, as a classifier, has other weights.
absl::Status CheckArchitecture(const JsonField& config, const ModelFamily& family) {
  ASSIGN_OR_RETURN(const std::vector<JsonField> architectures, config.Of("architectures").Items());
  for (const JsonField& field : architectures) {
    ASSIGN_OR_RETURN(const std::string name, field.Text());
    const auto other = std::find(family.others.begin(), family.others.end(), name);
    if (name == family.architecture || other != family.others.end()) return absl::OkStatus();
  }
  if (architectures.empty()) return absl::OkStatus();
  return architectures[0].Refused(absl::StrCat("must be ", family.architecture, " or ",
                                               absl::StrJoin(family.others, " or "),
                                               ": save the model as ", family.architecture));
}

}  // namespace

absl::StatusOr<bool> FlagOf(const JsonField& field, bool otherwise) {
  if (field.value() != nullptr && field.value()->is_null()) return false;
  return field.Flag(otherwise);
}

absl::Status MustBe(const JsonField& field, bool value) {
  ASSIGN_OR_RETURN(const bool found, FlagOf(field, value));
  if (found == value) return absl::OkStatus();
  return field.Refused(
      absl::StrCat("must be ", value ? "true" : "false", ": no network here has the other form"));
}

absl::Status MustBe(const JsonField& field, const char* value) {
  ASSIGN_OR_RETURN(const std::string found, field.Text(value));
  if (found == value) return absl::OkStatus();
  return field.Refused(absl::StrCat("must be \"", value, "\": no network here has another"));
}

absl::StatusOr<ModelConfig> ReadModelConfig(const JsonField& config) {
  const JsonField type = config.Of("model_type");
  if (!config.is_object() || !type.is_text()) {
    return type.Refused(absl::StrCat("must name the architecture, as \"llama\"; those known here: ",
                                     KnownArchitectures()));
  }
  ASSIGN_OR_RETURN(const std::string name, type.Text());
  const auto* const found =
      std::find_if(std::begin(kFamilies), std::end(kFamilies),
                   [&name](const ModelFamily& (*family)()) { return family().model_type == name; });
  if (found == std::end(kFamilies)) {
    return type.Refused(
        absl::StrCat("is no architecture that is known here; these are: ", KnownArchitectures()));
  }
  const ModelFamily& family = (*found)();
  RETURN_IF_ERROR(CheckArchitecture(config, family));
  if (const JsonField quantized = config.Of("quantization_config"); !quantized.missing()) {
    return quantized.Refused(
        "quantized weights are not read: give the folder with float32, float16 or bfloat16");
  }
  ASSIGN_OR_RETURN(ModelConfig read, family.read(config));
  read.architecture = family.architecture;
  return read;
}

absl::StatusOr<nlohmann::ordered_json> WriteModelConfig(const NetworkSpec& network) {
  if (network.kind == BertSpec::kNetwork) return WriteBertConfig(network);
  if (network.kind == GptSpec::kNetwork) return WriteGpt2Config(network);
  if (network.kind == LlamaSpec::kNetwork) return WriteLlamaConfig(network);
  return FieldError("model", network.kind,
                    "has no form at Hugging Face that is known here; bert, gpt and llama have one");
}

}  // namespace stagecoach
