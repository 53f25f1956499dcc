// ContentDigest: one SHA-256 of the content of a file of tensors, made of the tensors' digests.
// Given those, the bytes need not be read again. Exports carry it in their header. A job that
// begins with a file is bound to it.
// Threads: pure functions, but for those that use a reader.
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

// Keys in the metadata of a safetensors file.
inline constexpr char kContentDigestKey[] = "content_sha256";
// Of adapters: the digest of the weights that they belong to.
inline constexpr char kBaseDigestKey[] = "base_sha256";

// A tensor as the digest takes it, its shape as "[3, 4]".
struct TensorDigest {
  std::string name, dtype, shape, sha256;
};
TensorDigest DigestOf(const TensorEntry& tensor, const std::string& sha256);

// 64 hexadecimal digits. Neither the order here nor the tensors' places in the file matter.
std::string ContentDigest(std::vector<TensorDigest> tensors);
// INVALID_ARGUMENT with both digests, for a file whose header names another one than it has.
absl::Status DamagedContent(const std::string& found, const std::string& named);

std::string BytesSha256(std::span<const std::byte> bytes);  // of one tensor, as in ShardTensor

// Reads a tensor by pieces, with ticks of progress, and returns its digest. target.size() ==
// tensor.bytes().
absl::StatusOr<std::string> ReadHashed(SafetensorsReader& reader, const TensorEntry& tensor,
                                       std::span<std::byte> target);
// Reads the whole file, which takes a while: ticks progress. INVALID_ARGUMENT if the header names
// another digest. A file of another program names none.
absl::Status CheckContent(SafetensorsReader& reader);

}  // namespace stagecoach

#endif  // STAGECOACH_CHECKPOINT_CONTENT_DIGEST_H_
