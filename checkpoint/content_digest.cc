#include "checkpoint/content_digest.h"

#include <algorithm>

#include "base/hash.h"

namespace stagecoach {

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

}  // namespace stagecoach
