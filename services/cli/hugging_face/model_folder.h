// ModelFolder: a folder as Hugging Face's libraries write one: config.json, weights in safetensors,
// a tokenizer.
// Threads: any.
// Errors:  NOT_FOUND and INVALID_ARGUMENT naming the file, what is wrong with it, and the remedy; of
//          config.json as model_config.h.
#ifndef STAGECOACH_SERVICES_CLI_HUGGING_FACE_MODEL_FOLDER_H_
#define STAGECOACH_SERVICES_CLI_HUGGING_FACE_MODEL_FOLDER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "checkpoint/files/file_system.h"
#include "services/cli/hugging_face/model_config.h"

namespace stagecoach {

inline constexpr char kModelConfigFile[] = "config.json", kTokenizerJsonFile[] = "tokenizer.json",
                      kTokenizerPiecesFile[] = "tokenizer.model";  // of SentencePiece

struct ModelFolder {
  std::string path;       // absolute
  std::string tokenizer;  // absolute
  std::string note;       // why it is not the tokenizer.json; empty: it is, or there is none
  ModelConfig config;

  int64_t context() const;  // the longest that the network takes
};

// Whether a folder has a config.json.
bool IsModelFolder(ReadableFiles& files, const std::string& path);

// tokenizer: another one than the folder's; empty: the folder's.
absl::StatusOr<ModelFolder> OpenModelFolder(ReadableFiles& files, const std::string& path,
                                            const std::string& tokenizer);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_HUGGING_FACE_MODEL_FOLDER_H_
