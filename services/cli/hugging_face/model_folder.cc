#include "services/cli/hugging_face/model_folder.h"

#include <filesystem>
#include <span>
#include <system_error>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/json/json_field.h"
#include "base/utf8.h"
#include "checkpoint/names.h"
#include "checkpoint/other_weights.h"
#include "checkpoint/weight_index.h"
#include "stage/tokens/tokenizer.h"

namespace stagecoach {
namespace {

constexpr int64_t kMostConfigBytes = int64_t{16} << 20;

absl::StatusOr<nlohmann::json> ReadJson(ReadableFiles& files, const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, files.Open(path));
  if (file->size() > kMostConfigBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(file->size(), " bytes; must have ", kMostConfigBytes, " at most"));
  }
  std::string text(static_cast<size_t>(file->size()), '\0');
  RETURN_IF_ERROR(file->Read(0, std::as_writable_bytes(std::span(text))));
  if (text.starts_with("version https://git-lfs.github.com/")) {
    return absl::InvalidArgumentError(
        "is a Git LFS pointer and not the file itself: run `git lfs pull` in its folder");
  }
  return ParseJsonDocument(text);
}

absl::StatusOr<ModelConfig> ConfigIn(ReadableFiles& files, const std::string& folder) {
  const std::string path = JoinPath(folder, kModelConfigFile);
  if (absl::IsNotFound(files.Look(path))) {
    return absl::NotFoundError(
        absl::StrCat(ShownName(folder), ": no ", kModelConfigFile,
                     ", which says what network the weights are of: give the folder that "
                     "save_pretrained wrote"));
  }
  const auto read = [&]() -> absl::StatusOr<ModelConfig> {
    ASSIGN_OR_RETURN(const nlohmann::json config, ReadJson(files, path));
    return ReadModelConfig(JsonField(&config));
  };
  return Annotate(read(), ShownName(path));
}

// An unknown answer is an error: a disk that does not answer now may do so the next time.
absl::StatusOr<bool> Holds(ReadableFiles& files, const std::string& folder, const char* name) {
  const absl::Status found = files.Look(JoinPath(folder, name));
  if (found.ok() || absl::IsNotFound(found)) return found.ok();
  return found;
}

absl::Status CheckWeights(ReadableFiles& files, const std::string& folder) {
  for (const char* const name : {kExportWeightsFile, kWeightIndexFile}) {
    ASSIGN_OR_RETURN(const bool there, Holds(files, folder, name));
    if (there) return absl::OkStatus();
  }
  const std::string other = OtherWeightsIn(files, folder);
  return absl::NotFoundError(absl::StrCat(
      ShownName(folder), ": ",
      other.empty() ? absl::StrCat("holds neither ", kExportWeightsFile, " nor ", kWeightIndexFile)
                    : other));
}

// Of a network's field that all language models have.
int64_t CountOf(const NetworkSpec& network, const char* field) {
  const auto* const count = std::get_if<int64_t>(network.attributes.Find(field));
  CHECK(count != nullptr) << network.kind << " has no " << field;
  return *count;
}

// A model may have rows for more ids than its tokenizer.json has.
absl::Status CheckTokenizer(const std::string& path, const Tokenizer& tokenizer,
                            const ModelConfig& config) {
  const int64_t vocabulary = CountOf(config.network, "vocabulary");
  if (!tokenizer.Fits(vocabulary)) {
    return absl::InvalidArgumentError(absl::StrCat(
        ShownName(path), ": has ", tokenizer.ids(), " ids, and the model's vocab_size is ",
        vocabulary, ": it is the tokenizer of another model; name this one's with --tokenizer"));
  }
  if (tokenizer.end() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        ShownName(path), ": has no end id (eos); name eos_token in tokenizer_config.json"));
  }
  if (!config.masked || tokenizer.mask() >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      ShownName(path),
      ": has no mask token, and the model learns masked tokens; name one with --tokenizer that has "
      "it, a tokenizer.json with [MASK] or with mask_token in tokenizer_config.json"));
}

absl::StatusOr<std::unique_ptr<const Tokenizer>> LoadFitting(ReadableFiles& files,
                                                             const std::string& path,
                                                             const ModelConfig& config) {
  ASSIGN_OR_RETURN(std::unique_ptr<const Tokenizer> tokenizer, Tokenizer::Load(files, path));
  RETURN_IF_ERROR(CheckTokenizer(path, *tokenizer, config));
  return tokenizer;
}

// A folder of Llama 2 has both files, and its tokenizer.json is of a kind that is not read.
absl::Status FindTokenizer(ReadableFiles& files, ModelFolder* folder) {
  absl::Status refused;
  for (const char* const name : {kTokenizerJsonFile, kTokenizerPiecesFile}) {
    ASSIGN_OR_RETURN(const bool there, Holds(files, folder->path, name));
    if (!there) continue;
    const std::string path = JoinPath(folder->path, name);
    const absl::Status status = LoadFitting(files, path, folder->config).status();
    if (status.ok()) {
      folder->tokenizer = path;
      if (!refused.ok()) {
        folder->note = absl::StrCat(name, " is the tokenizer: ", refused.message());
      }
      return absl::OkStatus();
    }
    if (refused.ok()) refused = status;
  }
  if (!refused.ok()) return refused;
  bool old = false;  // files of earlier versions of the library
  for (const char* const name : {"merges.txt", "vocab.txt"}) {
    ASSIGN_OR_RETURN(const bool there, Holds(files, folder->path, name));
    old = old || there;
  }
  return absl::NotFoundError(absl::StrCat(
      ShownName(folder->path), ": no ", kTokenizerJsonFile, " and no ", kTokenizerPiecesFile, "; ",
      old ? "AutoTokenizer.from_pretrained(folder).save_pretrained(folder) of transformers makes "
            "one of its older files"
          : "name the tokenizer's file with --tokenizer"));
}

absl::StatusOr<std::string> AbsoluteFolderPath(const std::string& path) {
  std::error_code error;
  std::string text = std::filesystem::absolute(path, error).lexically_normal().string();
  if (path.empty() || error) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", ShownName(path), "\": names no folder or file"));
  }
  if (!IsUtf8Text(text)) {
    return absl::InvalidArgumentError(absl::StrCat(
        ShownName(text), ": the name is not UTF-8, and a job file has no other; rename it"));
  }
  if (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

}  // namespace

bool IsModelFolder(ReadableFiles& files, const std::string& path) {
  return files.Look(JoinPath(path, kModelConfigFile)).ok();
}

absl::StatusOr<ModelFolder> OpenModelFolder(ReadableFiles& files, const std::string& path,
                                            const std::string& tokenizer) {
  ModelFolder folder;
  ASSIGN_OR_RETURN(folder.path, AbsoluteFolderPath(path));
  ASSIGN_OR_RETURN(folder.config, ConfigIn(files, folder.path));
  RETURN_IF_ERROR(CheckWeights(files, folder.path));
  if (tokenizer.empty()) {
    RETURN_IF_ERROR(FindTokenizer(files, &folder));
    return folder;
  }
  ASSIGN_OR_RETURN(folder.tokenizer, AbsoluteFolderPath(tokenizer));
  RETURN_IF_ERROR(LoadFitting(files, folder.tokenizer, folder.config).status());
  return folder;
}

int64_t ModelFolder::context() const { return CountOf(config.network, "context"); }

}  // namespace stagecoach
