#include "checkpoint/content_digest.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/threads/progress.h"
#include "base/utf8.h"

namespace stagecoach {
namespace {

constexpr int64_t kHashedAtOnce = int64_t{1} << 20;

// Reads a tensor by pieces, with ticks of progress, each into target(offset, bytes), and returns its
// digest.
template <typename Target>
absl::StatusOr<std::string> HashPieces(SafetensorsReader& reader, const TensorEntry& tensor,
                                       const Target& target) {
  Sha256 digest;
  for (int64_t offset = 0; offset < tensor.bytes(); offset += kHashedAtOnce) {
    const std::span<std::byte> piece =
        target(offset, static_cast<size_t>(std::min(kHashedAtOnce, tensor.bytes() - offset)));
    RETURN_IF_ERROR(reader.ReadPart(tensor, offset, piece));
    digest.Update(piece);
    TickProgress();
  }
  return digest.Hex();
}

}  // namespace

TensorDigest DigestOf(const TensorEntry& tensor, const std::string& sha256) {
  return {tensor.name, std::string(DTypeName(tensor.dtype)), tensor.shape.ToString(), sha256};
}

std::string ContentDigest(std::vector<TensorDigest> tensors) {
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorDigest& a, const TensorDigest& b) { return a.name < b.name; });
  Sha256 digest;
  for (TensorDigest& tensor : tensors) {
    for (std::string* text : {&tensor.name, &tensor.dtype, &tensor.shape, &tensor.sha256}) {
      text->push_back('\0');
      digest.Update(*text);
    }
  }
  return digest.Hex();
}

absl::Status DamagedContent(const std::string& found, const std::string& named) {
  return absl::InvalidArgumentError(absl::StrCat("its tensors have sha256 ", found,
                                                 ", it was written with ", ShownName(named),
                                                 ": the file is damaged; export or copy it again"));
}

std::string BytesSha256(std::span<const std::byte> bytes) {
  Sha256 digest;
  digest.Update(bytes);
  return digest.Hex();
}

absl::StatusOr<std::string> ReadHashed(SafetensorsReader& reader, const TensorEntry& tensor,
                                       std::span<std::byte> target) {
  return HashPieces(reader, tensor, [target](int64_t offset, size_t bytes) {
    return target.subspan(static_cast<size_t>(offset), bytes);
  });
}

absl::Status CheckContent(SafetensorsReader& reader) {
  std::vector<TensorDigest> content;
  std::vector<std::byte> piece(kHashedAtOnce);
  for (const TensorEntry& entry : reader.tensors()) {
    ASSIGN_OR_RETURN(const std::string sha256,
                     HashPieces(reader, entry, [&piece](int64_t, size_t bytes) {
                       return std::span(piece).first(bytes);
                     }));
    content.push_back(DigestOf(entry, sha256));
  }
  const std::string found = ContentDigest(std::move(content));
  const auto said = reader.metadata().find(kContentDigestKey);
  if (said == reader.metadata().end() || said->second == found) return absl::OkStatus();
  return DamagedContent(found, said->second);
}

}  // namespace stagecoach
