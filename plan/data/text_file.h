// Text file: the bytes that may be trained on. The client checks a file that it can see before it
// submits; the stages check it again.
//   Refused, by the first bytes: any other kind of base/files/file_kind.h, UTF-16, UTF-32, and data
//   full of control bytes. Without a tokenizer every byte is a token. So such a file would train
//   without a word and teach nothing. UTF-8 and the eight-bit encodings pass.
// Threads: pure functions.
// Units:   tokens are bytes, or a tokenizer's ids.
// Errors:  INVALID_ARGUMENT naming the file, what is wrong with it, and the remedy.
#ifndef STAGECOACH_PLAN_DATA_TEXT_FILE_H_
#define STAGECOACH_PLAN_DATA_TEXT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/files/file_kind.h"
#include "plan/data/text.h"
#include "plan/data/token_split.h"
#include "plan/job/data_kinds.h"
#include "plan/job/job_spec.h"

namespace stagecoach {

// Bytes that are looked at, also of a longer file, so that everybody judges alike.
inline constexpr size_t kTextCheckBytes = kDataHeadBytes;

// The kind of a file that plainly is no text, by its first bytes.
std::optional<FileKind> PlainlyNotText(std::string_view head);
// A remedy for one that names none.
inline constexpr absl::string_view kGiveText = "give a text file";

// head: the first bytes of the field's file, kTextCheckBytes of them or all there are. field: "path"
// or "test". OK for anything if the job asks for bytes.
absl::Status CheckIsText(const TextData& data, std::string_view head,
                         const std::string& field = "path");

// head: the first bytes of a tokenizer's file: a SentencePiece model, or a tokenizer.json. where:
// "data.text.tokenizer = "/a"".
absl::Status CheckTokenizerHead(const std::string& where, std::string_view head);

// As CheckTrainTokens of data.text.path (plan/data/token_split.h).
absl::Status CheckTextLength(const JobSpec& spec, int64_t context, int64_t tokens);
// As CheckTestTokens of data.text.test.
absl::Status CheckTestLength(const JobSpec& spec, int64_t context, int64_t tokens);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_DATA_TEXT_FILE_H_
