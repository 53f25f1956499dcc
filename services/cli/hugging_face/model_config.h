// ModelConfig: the network that the config.json of a Hugging Face folder describes. Known
// fields with a value that no network here has are refused; fields that are not known are left out.
// Threads: pure functions.
// Errors:  INVALID_ARGUMENT naming the field, the value and the remedy; an architecture that is not
//          known, with the list of those that are.
// Source:  configuration_*.py of the Python package transformers, versions 4.40 to 5.
#ifndef STAGECOACH_SERVICES_CLI_HUGGING_FACE_MODEL_CONFIG_H_
#define STAGECOACH_SERVICES_CLI_HUGGING_FACE_MODEL_CONFIG_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/json/json_field.h"
#include "network/network_spec.h"

namespace stagecoach {

struct ModelConfig {
  std::string architecture;  // "LlamaForCausalLM"
  NetworkSpec network;       // of the longest context that the model takes
  bool any_context = true;   // whether a shorter context is the same network
  bool masked = false;       // learns masked tokens, and writes no text
  // Patterns of the head's tensors, if the folder's model is saved without them and they are not the
  // embedding's.
  std::vector<std::string> except = {};
};
absl::StatusOr<ModelConfig> ReadModelConfig(const JsonField& config);

// The inverse, for a network that a folder can hold. Refused are other networks.
absl::StatusOr<nlohmann::ordered_json> WriteModelConfig(const NetworkSpec& network);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_HUGGING_FACE_MODEL_CONFIG_H_
