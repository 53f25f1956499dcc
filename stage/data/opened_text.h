// OpenedText: a file of data.text as tokens: its bytes, or the ids that a tokenizer makes of it.
//
// With a tokenizer each line is encoded by itself, and the end id (eos) stands for its end. Lines of
// more than 64 KiB are encoded by parts, cut at spaces. The ids are made once and kept in the cache
// folder (stage/data/cache/token_cache.h).
// Ownership: owns its files.  Threads: executor thread.
// Progress:  ticks while it reads and encodes; logs how far it is.
// Errors:    INVALID_ARGUMENT naming field, path and remedy: no text, not UTF-8 (with the line), a
//            byte that is no token. Errors of files name them; those of the cache --cache-dir.
#ifndef STAGECOACH_STAGE_DATA_OPENED_TEXT_H_
#define STAGECOACH_STAGE_DATA_OPENED_TEXT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/job/job_spec.h"
#include "stage/data/formats/text_tokens.h"
#include "stage/files/data_roots.h"
#include "stage/tokens/tokenizer.h"

namespace stagecoach {

struct OpenedText {
  std::shared_ptr<const TextTokens> tokens;
  std::string where;   // "data.text.path = "/a/b""
  int64_t bytes = 0;   // of the file
  std::string sha256;  // of these
  // How much of the file was looked at, and the different bytes in it.
  int64_t seen_bytes = 0, different_bytes = 0;
};

struct TextToOpen {
  const JobSpec* spec = nullptr;
  std::string field;  // "path" or "test"
  std::string path;
  const DataRoots* roots = nullptr;
  int64_t vocabulary = 0;  // ids of the network
  int64_t most_bytes = 0;  // looks at so many, for a survey; 0: at all
};

absl::StatusOr<OpenedText> OpenBytesOfText(const TextToOpen& text);
// Ids of which not all are kept in a file.
std::shared_ptr<const TextTokens> IdsInMemory(std::vector<int32_t> ids);
// To encode more takes longer than a user waits for a survey.
inline constexpr int64_t kMostEncodedInSurvey = int64_t{4} << 20;

// In a survey `tokens` are only those of the file's beginning, and nothing is kept.
absl::StatusOr<OpenedText> OpenIdsOfText(const TextToOpen& text, const Tokenizer& tokenizer);

// The job's tokenizer; null: it has none. field: "data.text.tokenizer". Refuses one that does not
// fit: the network must have as many ids, and lines need an end id.
absl::StatusOr<std::unique_ptr<const Tokenizer>> OpenTokenizer(const JobSpec& spec,
                                                               const std::string& field,
                                                               const std::string& path,
                                                               int64_t vocabulary,
                                                               const DataRoots& roots);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_OPENED_TEXT_H_
