// OpenedTokenizer: a tokenizer's file that a job names. With a tokenizer.json tokenizer_config.json
// of its folder is read too, if it is there and the job may read it.
// Threads: any.
// Errors:  INVALID_ARGUMENT naming field, path and remedy: the file is no tokenizer. Those of
//          OpenedFile.
#ifndef STAGECOACH_STAGE_DATA_FORMATS_OPENED_TOKENIZER_H_
#define STAGECOACH_STAGE_DATA_FORMATS_OPENED_TOKENIZER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "stage/files/data_roots.h"
#include "stage/tokens/tokenizer.h"

namespace stagecoach {

struct OpenedTokenizer {
  std::unique_ptr<const Tokenizer> tokenizer;
  std::string where;  // "data.text.tokenizer = "/a/b"": errors about it begin with it
};

// field: "data.text.tokenizer".
absl::StatusOr<OpenedTokenizer> OpenTokenizerFile(const DataRoots& roots, const std::string& field,
                                                  const std::string& path);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_FORMATS_OPENED_TOKENIZER_H_
