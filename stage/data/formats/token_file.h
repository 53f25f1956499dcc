// TokenFile: tokens of a file that another program made (plan/data/token_file_header.h). The file
// is read once when it is opened, and each sequence again when its turn comes.
// Ownership: owns its files; of an index it keeps where documents lack the end token.
// Progress:  ticks while it reads.
// Errors:    those of the header and of data_file.h. INVALID_ARGUMENT naming file, place, value and
//            remedy: an index that does not fit its tokens, an id that is not below the vocabulary.
#ifndef STAGECOACH_STAGE_DATA_FORMATS_TOKEN_FILE_H_
#define STAGECOACH_STAGE_DATA_FORMATS_TOKEN_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "stage/data/formats/text_tokens.h"
#include "stage/files/data_roots.h"

namespace stagecoach {

struct TokenFileToOpen {
  std::string field, path;       // "data.token_file.files[0]"
  int64_t vocabulary = 0;        // ids of the network
  std::string vocabulary_field;  // "model.gpt.vocabulary"
  int64_t end = -1;              // of documents; -1: none
  int64_t most_bytes = 0;        // looks at so many of the tokens, for a survey; 0: at all
};

struct OpenedTokens {
  std::shared_ptr<const TextTokens> tokens;
  std::string where;      // `data.token_file.files[0] = "/a"`
  int64_t bytes = 0;      // of the file, and of the one beside it
  std::string sha256;     // of these, and of what was put in
  int64_t documents = 0;  // that it tells apart; 0: none
  bool whole = true;      // false: most_bytes were looked at
};

absl::StatusOr<OpenedTokens> OpenTokenFile(const DataRoots& roots, const TokenFileToOpen& file);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_FORMATS_TOKEN_FILE_H_
