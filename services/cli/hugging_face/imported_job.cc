#include "services/cli/hugging_face/imported_job.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "base/errors/check.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "checkpoint/names.h"
#include "network/network_kinds.h"
#include "network/objective_kind.h"
#include "network/zoo/gpt.h"

namespace stagecoach {
namespace {

// $0 architecture, $1 folder, $2 name, $3 network, $4 context, $5 text, $6 tokenizer, $7 lines about
// adapters, $8 more lines of the text, $9 of initialize.
constexpr char kJob[] = R"(# Trains $0 on, from the weights in $1
#   stagecoach plan FILE                      partition, memory and time; nothing runs
#   stagecoach local --stages 2 FILE          trains on this machine
name: $2
seed: 1
precision: float32              # bfloat16 takes less time and memory; masters stay float32
model:
  $3
initialize:
  from: $1
  names: huggingface$9
data:
  text:
    path: $5
    tokenizer: $6$8
training:
  steps: 1000                   # change: a step reads 16 sequences of $4 tokens
  batch_size: 16
  micro_batches: 8              # four for each stage keep the bubble small
  optimizer: {adamw: {beta1: 0.9, beta2: 0.95, weight_decay: 0.01}}
  learning_rate: {cosine: {peak: 2.0e-5, warmup_steps: 50, final: 2.0e-6}}
  gradient_clip_norm: 1.0
$7pipeline:
  stages: auto                  # all that are free
  schedule: one_forward_one_backward
  rematerialization: always     # never takes less time and more memory
  partition: auto
evaluation: {every_steps: 100, batches: 20}
)";

// A text as YAML takes it: with quotes unless it is plainly a path.
std::string Quoted(const std::string& text) {
  const bool plain = text.starts_with('/') && std::all_of(text.begin(), text.end(), [](char c) {
                       return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '/' ||
                              c == '.' || c == '_' || c == '-';
                     });
  if (plain) return text;
  // YAML reads JSON's escapes, but for pairs of them.
  return nlohmann::json(text).dump(-1, ' ', /*ensure_ascii=*/false,
                                   nlohmann::json::error_handler_t::replace);
}

struct YamlValue {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return absl::StrCat(value); }
  std::string operator()(const std::string& value) const { return Quoted(value); }
  template <typename T>  // a number with a point, a list
  std::string operator()(const T& value) const {
    return nlohmann::json(value).dump();
  }
};

// "gpt: {layers: 2, width: 64}", without fields that have their default.
std::string KindText(const std::string& kind, const Attributes& attributes,
                     const Attributes& defaults) {
  std::string fields;
  for (const Attributes::Entry& entry : attributes.entries()) {
    const AttributeValue* const usual = defaults.Find(entry.name);
    if (usual != nullptr && *usual == entry.value) continue;
    absl::StrAppend(&fields, fields.empty() ? "" : ", ", entry.name, ": ",
                    std::visit(YamlValue(), entry.value));
  }
  return absl::StrCat(kind, ": {", fields, "}");
}

std::string NetworkText(const NetworkSpec& network) {
  const absl::StatusOr<const NetworkKind*> kind = FindNetworkKind(network.kind);
  CHECK_OK(kind.status());
  return KindText(network.kind, network.attributes, (*kind)->Defaults());
}

// Lines behind the network's and the tokenizer's.
std::string ObjectiveLine(const KindSpec& objective) {
  if (objective.kind.empty()) return "";
  const absl::StatusOr<const ObjectiveKind*> kind = FindObjectiveKind(objective.kind);
  CHECK_OK(kind.status());
  const std::string text = KindText(objective.kind, objective.attributes, (*kind)->Defaults());
  return absl::StrCat("\n  objective: {", text,
                      "}  # the padding: the target of tokens that are not masked");
}

// Adapters need weights that are whole.
std::string AdapterLines(const ModelConfig& config) {
  if (!config.except.empty()) return "";
  return absl::StrCat(
      "  # Adapters in the place of all weights, which take less memory and a larger rate, as "
      "2.0e-4:\n  # lora: {rank: 8, alpha: 16, targets: [",
      config.network.kind == GptSpec::kNetwork ? "qkv" : "query, value", "]}\n");
}

std::string ExceptLine(const ModelConfig& config) {
  if (config.except.empty()) return "";
  return absl::StrCat("\n  except: ", nlohmann::json(config.except).dump(),
                      "  # the folder has no head, which begins with the seed's values");
}

std::string MaskedLine(const ModelConfig& config) {
  if (!config.masked) return "";
  return "\n    masked: 0.15                # change: the share of tokens that are to be found";
}

// A job's name of the folder's: "Llama-3.2_1B" is llama-3-2-1b.
std::string JobName(const std::string& path) {
  std::string name;
  for (const char c : std::filesystem::path(path).filename().string()) {
    const auto letter = static_cast<unsigned char>(absl::ascii_tolower(c));
    const bool word = absl::ascii_isalnum(letter);
    if (word || (!name.empty() && name.back() != '-'))
      name += word ? static_cast<char>(letter) : '-';
  }
  constexpr size_t kMostCharacters = 40;
  if (name.size() > kMostCharacters) name.resize(kMostCharacters);
  while (name.ends_with('-')) name.pop_back();
  return CheckJobName(name).ok() ? name : "imported";
}

absl::StatusOr<int64_t> ContextOf(const ModelFolder& folder, int64_t asked) {
  const int64_t most = folder.context();
  if (!folder.config.any_context && asked != 0 && asked != most) {
    return FieldError("--context", absl::StrCat(asked),
                      absl::StrCat("must be ", most, ": the model has weights for each position"));
  }
  if (asked > most) {
    return FieldError("--context", absl::StrCat(asked),
                      absl::StrCat("the model takes ", most, " at most"));
  }
  if (asked != 0) return asked;
  return folder.config.any_context ? std::min(most, kUsualContext) : most;
}

}  // namespace

absl::StatusOr<std::string> ImportedJobText(const ModelFolder& folder,
                                            const ImportedJobOptions& options) {
  ASSIGN_OR_RETURN(const int64_t context, ContextOf(folder, options.context));
  NetworkSpec network = folder.config.network;
  network.attributes.Set("context", context);
  return absl::Substitute(
      kJob, folder.config.architecture, Quoted(folder.path), JobName(folder.path),
      NetworkText(network) + ObjectiveLine(network.objective), context, Quoted(options.text),
      Quoted(folder.tokenizer), AdapterLines(folder.config), MaskedLine(folder.config),
      ExceptLine(folder.config));
}

absl::StatusOr<ValidSpecFile> CheckImportedJob(const ModelFolder& folder, const std::string& text,
                                               const std::string& file) {
  const auto check = [&]() -> absl::StatusOr<ValidSpecFile> {
    ASSIGN_OR_RETURN(SpecFile spec_file, ParseSpec(text, file));
    return ValidateSpecFile(std::move(spec_file));
  };
  return Annotate(check(), absl::StrCat(ShownName(JoinPath(folder.path, kModelConfigFile)),
                                        ": makes a job that is refused"));
}

}  // namespace stagecoach
