// ReadLineFile: the lines of a text file, as sacreBLEU reads them: UTF-8, plain or gzip, divided at
// "\n" alone. White space at a line's end goes.
// Threads: any.
// Errors:  INVALID_ARGUMENT naming the file, and line and remedy where there are any: missing, a
//          folder, empty, not UTF-8 or with a NUL, too large. DATA_LOSS: damaged gzip data.
#ifndef STAGECOACH_SERVICES_CLI_SCORES_LINE_FILE_H_
#define STAGECOACH_SERVICES_CLI_SCORES_LINE_FILE_H_

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace stagecoach {

// Of a file, unpacked.
inline constexpr int64_t kMostLineFileBytes = int64_t{1} << 30;

absl::StatusOr<std::vector<std::string>> ReadLineFile(const std::string& path);
// The same of a stream; `name` stands in errors. most: bytes.
absl::StatusOr<std::vector<std::string>> ReadLines(std::istream& stream, const std::string& name,
                                                   int64_t most = kMostLineFileBytes);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_SCORES_LINE_FILE_H_
