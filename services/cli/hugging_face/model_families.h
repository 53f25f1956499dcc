// The families of models behind ModelConfig, one file each. What they have in common is here.
// Errors: as model_config.h.
#ifndef STAGECOACH_SERVICES_CLI_HUGGING_FACE_MODEL_FAMILIES_H_
#define STAGECOACH_SERVICES_CLI_HUGGING_FACE_MODEL_FAMILIES_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/json/json_field.h"
#include "services/cli/hugging_face/model_config.h"

namespace stagecoach {

struct ModelFamily {
  const char* model_type;    // the file's field
  const char* architecture;  // of the whole model with its head
  // Others whose weights are read, in field `architectures`: of the model without its head, or with
  // more of them.
  std::vector<const char*> others;
  absl::StatusOr<ModelConfig> (*read)(const JsonField& config);
};
const ModelFamily& BertFamily();
const ModelFamily& Gpt2Family();
const ModelFamily& LlamaFamily();
const ModelFamily& MistralFamily();
const ModelFamily& Qwen2Family();
const ModelFamily& Qwen3Family();

// As the library has it: null is no default, and counts as false.
absl::StatusOr<bool> FlagOf(const JsonField& field, bool otherwise);
// INVALID_ARGUMENT if the field is there with another value.
absl::Status MustBe(const JsonField& field, bool value);
absl::Status MustBe(const JsonField& field, const char* value);

// The networks that these families have, written as one of them.
absl::StatusOr<nlohmann::ordered_json> WriteBertConfig(const NetworkSpec& network);
absl::StatusOr<nlohmann::ordered_json> WriteGpt2Config(const NetworkSpec& network);
absl::StatusOr<nlohmann::ordered_json> WriteLlamaConfig(const NetworkSpec& network);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_HUGGING_FACE_MODEL_FAMILIES_H_
