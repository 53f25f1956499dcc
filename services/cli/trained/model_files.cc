#include "services/cli/trained/model_files.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "checkpoint/names.h"
#include "network/names/weight_names.h"
#include "services/cli/hugging_face/model_config.h"
#include "services/cli/hugging_face/model_folder.h"
#include "services/cli/trained/decoding_network.h"
#include "stage/tokens/tokenizer.h"

namespace stagecoach {
namespace {

using Json = nlohmann::ordered_json;

absl::StatusOr<std::string> ReadAll(ReadableFiles& files, const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, files.Open(path));
  RETURN_IF_ERROR(CheckModelSize(file->size()));
  std::string text(static_cast<size_t>(file->size()), '\0');
  RETURN_IF_ERROR(file->Read(0, std::as_writable_bytes(std::span(text))));
  return text;
}

// config.json of the folder that the job began with, if the job's network is its network. The job may
// have a shorter context.
std::optional<Json> ConfigItBeganWith(ReadableFiles& files, const JobSpec& job) {
  if (job.initialize.names != kHuggingFaceNames) return std::nullopt;
  const absl::StatusOr<std::string> text =
      ReadAll(files, JoinPath(job.initialize.from, kModelConfigFile));
  if (!text.ok()) return std::nullopt;
  const absl::StatusOr<nlohmann::json> config = ParseJsonDocument(*text);
  if (!config.ok()) return std::nullopt;
  absl::StatusOr<ModelConfig> model = ReadModelConfig(JsonField(&*config));
  if (!model.ok()) return std::nullopt;
  NetworkSpec network = std::move(model->network);
  network.objective = job.network.objective;
  if (model->any_context) {
    const AttributeValue* const context = job.network.attributes.Find("context");
    if (context != nullptr) network.attributes.Set("context", *context);
  }
  if (network != job.network) return std::nullopt;
  return Json::parse(*text);
}

// kept: of the folder that the job began with, if any.
absl::StatusOr<Json> ConfigOf(const JobSpec& job, std::optional<Json> kept) {
  if (!kept.has_value()) {
    ASSIGN_OR_RETURN(kept, WriteModelConfig(job.network));
  }
  for (const char* const name : {"dtype", "torch_dtype"}) {
    if (kept->contains(name)) (*kept)[name] = "float32";
  }
  return *std::move(kept);
}

struct TokenizerFiles {
  std::vector<FolderFile> files;
  int32_t begin = -1, end = -1;
};

absl::StatusOr<TokenizerFiles> ReadTokenizer(ReadableFiles& files, const std::string& path) {
  TokenizerFiles found;
  ASSIGN_OR_RETURN(const std::unique_ptr<const Tokenizer> tokenizer, Tokenizer::Load(files, path));
  found.begin = tokenizer->begin();
  found.end = tokenizer->end();
  ASSIGN_OR_RETURN(std::string bytes, ReadAll(files, path));
  const bool json = IsTokenizerJson(bytes);
  found.files.push_back({json ? kTokenizerJsonFile : kTokenizerPiecesFile, std::move(bytes)});
  if (!json) return found;
  absl::StatusOr<std::string> config = ReadAll(files, TokenizerConfigPath(path));
  if (config.ok()) found.files.push_back({"tokenizer_config.json", *std::move(config)});
  return found;
}

// A list of ids that end a text stays if the tokenizer's is one of them.
void SetId(const char* field, int32_t id, Json* config) {
  if (id < 0) return;
  const auto found = config->find(field);
  const bool listed = found != config->end() && found->is_array() &&
                      std::find(found->begin(), found->end(), Json(id)) != found->end();
  if (!listed) (*config)[field] = id;
}

}  // namespace

absl::StatusOr<ModelFiles> ModelFilesOf(ReadableFiles& files, const JobSpec& job) {
  ModelFiles model;
  std::optional<Json> kept = ConfigItBeganWith(files, job);
  const bool keeps = kept.has_value();
  ASSIGN_OR_RETURN(Json config, ConfigOf(job, std::move(kept)));
  const std::string path = TokenizerPathOf(job.data);
  if (!path.empty()) {
    absl::StatusOr<TokenizerFiles> tokenizer = ReadTokenizer(files, path);
    if (tokenizer.ok()) {
      model.files = std::move(tokenizer->files);
      // The ids of a folder's own tokenizer are in its config.json.
      if (!keeps || FolderOf(path) != job.initialize.from) {
        SetId("bos_token_id", tokenizer->begin, &config);
        SetId("eos_token_id", tokenizer->end, &config);
      }
    } else {
      model.note = absl::StrCat("the folder has no tokenizer: ", tokenizer.status().message(),
                                "; copy the job's tokenizer into it");
    }
  }
  model.files.push_back({kModelConfigFile, config.dump(2) + "\n"});
  if (!keeps) return model;
  constexpr char kGeneration[] = "generation_config.json";
  absl::StatusOr<std::string> generation =
      ReadAll(files, JoinPath(job.initialize.from, kGeneration));
  if (generation.ok()) model.files.push_back({kGeneration, *std::move(generation)});
  return model;
}

}  // namespace stagecoach
