// ContentDigest: one SHA-256 of the content of a file of tensors, made of the tensors' digests.
// Given those, the bytes need not be read again. Exports carry it in their header. A job that
// begins with a file is bound to it.
// Threads: pure functions, but for HashContent, which uses its reader.
// See:     docs/formats.md, "Digest of the content".
#ifndef STAGECOACH_CHECKPOINT_CONTENT_DIGEST_H_
#define STAGECOACH_CHECKPOINT_CONTENT_DIGEST_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoint/safetensors/safetensors.h"
#include "checkpoint/shard.h"

namespace stagecoach {

// Key in the metadata of a safetensors file.
inline constexpr char kContentDigestKey[] = "content_sha256";

// 64 hexadecimal digits. Neither the order here nor the tensors' places in the file matter.
std::string ContentDigest(std::vector<ShardTensor> tensors);

std::string BytesSha256(std::span<const std::byte> bytes);  // of one tensor, as in ShardTensor

struct HashedContent {
  std::vector<std::string> tensors;  // digests, in the reader's order
  std::string content;
};
// Reads the whole file, which takes a while: ticks progress. INVALID_ARGUMENT if the header names
// another digest. A file of another program names none.
absl::StatusOr<HashedContent> HashContent(SafetensorsReader& reader);

}  // namespace stagecoach

#endif  // STAGECOACH_CHECKPOINT_CONTENT_DIGEST_H_
