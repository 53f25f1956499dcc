// How an upload to a bucket is cut into parts, and which parts of a cut one are good. A bucket compares
// no SHA-256, and another client may have sent a file's parts before the file was changed.
// Threads: any.  Units: bytes.
#ifndef STAGECOACH_SERVICES_CLI_DATA_PROVEN_BYTES_H_
#define STAGECOACH_SERVICES_CLI_DATA_PROVEN_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "absl/status/statusor.h"
#include "base/files/hash.h"
#include "stagecoach/v1/store.pb.h"

namespace stagecoach {

// Reads what comes next of a data set's part: of files, or of the manifest.
using ReadPart = std::function<absl::Status(std::span<std::byte> target)>;

// Of an object of this size, to a bucket or not. A store takes 10,000 parts of 5 MiB or more.
int64_t SentPieceBytes(int64_t bytes);

// The end of the last uploaded part that is good, as all before it are: its ETag is the MD5 of the same
// bytes here. `hash` has these bytes afterwards. 0 where ETags are no MD5. read: from the beginning.
absl::StatusOr<int64_t> ProvenBytes(std::span<const v1::UploadedPart> uploaded, int64_t bytes,
                                    const ReadPart& read, Sha256* hash);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_DATA_PROVEN_BYTES_H_
