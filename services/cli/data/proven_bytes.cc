#include "services/cli/data/proven_bytes.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "base/errors/status.h"
#include "services/common/s3/s3_client.h"

namespace stagecoach {
namespace {

constexpr int64_t kPieceBytes = int64_t{8} << 20;
constexpr int64_t kMostUploadPieces = 10000, kLeastPieceBytes = int64_t{5} << 20;  // S3's own limits

}  // namespace

int64_t SentPieceBytes(int64_t bytes) {
  return std::max(kPieceBytes, (bytes + kMostUploadPieces - 1) / kMostUploadPieces);
}

absl::StatusOr<int64_t> ProvenBytes(std::span<const v1::UploadedPart> uploaded, int64_t bytes,
                                    const ReadPart& read, Sha256* hash) {
  int64_t proven = 0;
  std::vector<std::byte> piece;
  const int64_t most = 16 * SentPieceBytes(bytes);  // of another client's; this much memory
  for (const v1::UploadedPart& part : uploaded) {
    const bool ends = proven + part.bytes() == bytes;
    if (part.bytes() > std::min(most, bytes - proven)) break;
    if (!ends && part.bytes() < kLeastPieceBytes) break;
    piece.resize(static_cast<size_t>(part.bytes()));
    RETURN_IF_ERROR(read(piece));
    const std::string etag = absl::AsciiStrToLower(absl::StrReplaceAll(part.etag(), {{"\"", ""}}));
    if (etag.empty() || etag != Md5Hex(piece)) break;
    hash->Update(piece);
    proven += part.bytes();
  }
  return proven;
}

}  // namespace stagecoach
