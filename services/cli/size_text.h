// SizeText: sizes as people write them: "512MiB", "1.5 GiB", "190 kB", "4096". The units kB, MB, GB
// and TB are powers of 1000. KiB, MiB, GiB and TiB are powers of 1024. Case does not matter, and B
// may be left out.
// Threads: pure function.  Units: bytes.
// Errors:  INVALID_ARGUMENT with the text: no such size, less than one byte, or more than 2^62.
#ifndef STAGECOACH_SERVICES_CLI_SIZE_TEXT_H_
#define STAGECOACH_SERVICES_CLI_SIZE_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace stagecoach {

absl::StatusOr<int64_t> ParseSize(const std::string& text);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_SIZE_TEXT_H_
