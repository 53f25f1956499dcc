// Text check: refuses a data file that plainly is not text, by its first bytes. Refused are any
// other kind of base/files/file_kind.h, UTF-16, UTF-32, and data full of control bytes. Every byte
// is a token. So such a file would train without a word and teach nothing. UTF-8 and the eight-bit
// encodings pass. If the client can see the file, it asks before it submits. The stages ask again.
// Errors: INVALID_ARGUMENT naming the file, what it looks like and the remedy.
#ifndef STAGECOACH_PLAN_DATA_TEXT_CHECK_H_
#define STAGECOACH_PLAN_DATA_TEXT_CHECK_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "plan/data/text.h"
#include "plan/job/data_kinds.h"

namespace stagecoach {

// Every reader judges by this many first bytes, also of a longer file.
inline constexpr size_t kTextCheckBytes = kDataHeadBytes;

// head: the first bytes of data.path, kTextCheckBytes of them or all there are. OK for anything if
// the job asks for bytes.
absl::Status CheckIsText(const TextData& data, std::string_view head);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_DATA_TEXT_CHECK_H_
