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

}  // namespace

std::string ContentDigest(std::vector<ShardTensor> tensors) {
  std::sort(tensors.begin(), tensors.end(),
            [](const ShardTensor& a, const ShardTensor& b) { return a.entry.name < b.entry.name; });
  Sha256 digest;
  for (const ShardTensor& tensor : tensors) {
    for (std::string text : {tensor.entry.name, std::string(DTypeName(tensor.entry.dtype)),
                             tensor.entry.shape.ToString(), tensor.sha256}) {
      text.push_back('\0');
      digest.Update(text);
    }
  }
  return digest.Hex();
}

std::string BytesSha256(std::span<const std::byte> bytes) {
  Sha256 digest;
  digest.Update(bytes);
  return digest.Hex();
}

absl::StatusOr<HashedContent> HashContent(SafetensorsReader& reader) {
  HashedContent hashed;
  std::vector<ShardTensor> content;
  std::vector<std::byte> bytes;
  for (const TensorEntry& entry : reader.tensors()) {
    Sha256 digest;
    for (int64_t offset = 0; offset < entry.bytes(); offset += kHashedAtOnce) {
      bytes.resize(static_cast<size_t>(std::min(kHashedAtOnce, entry.bytes() - offset)));
      RETURN_IF_ERROR(reader.ReadPart(entry, offset, bytes));
      digest.Update(bytes);
      TickProgress();
    }
    hashed.tensors.push_back(digest.Hex());
    content.push_back({entry, hashed.tensors.back()});
  }
  hashed.content = ContentDigest(std::move(content));
  const auto said = reader.metadata().find(kContentDigestKey);
  if (said == reader.metadata().end() || said->second == hashed.content) return hashed;
  return absl::InvalidArgumentError(absl::StrCat("its tensors have sha256 ", hashed.content,
                                                 ", it was written with ", ShownName(said->second),
                                                 ": the file is damaged; export or copy it again"));
}

}  // namespace stagecoach
