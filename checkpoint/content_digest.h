// ContentDigest: one SHA-256 of what a file of tensors holds, made of the digests of its tensors: who knows those need not
// read the bytes again. Exports carry it in their header, and a job that begins with a file is held to it.
// Threads: pure function.
// See:     docs/formats.md, "Digest of the content".
#ifndef STAGECOACH_CHECKPOINT_CONTENT_DIGEST_H_
#define STAGECOACH_CHECKPOINT_CONTENT_DIGEST_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/shard.h"

namespace stagecoach {

// Of a safetensors file's metadata.
inline constexpr char kContentDigestKey[] = "content_sha256";

// 64 hexadecimal digits. In any order; where the tensors lie in the file makes no difference.
std::string ContentDigest(std::vector<ShardTensor> tensors);

std::string BytesSha256(std::span<const std::byte> bytes);  // of one tensor, as ShardTensor has it

}  // namespace stagecoach

#endif  // STAGECOACH_CHECKPOINT_CONTENT_DIGEST_H_
