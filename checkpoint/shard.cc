#include "checkpoint/shard.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status.h"
#include "checkpoint/names.h"

namespace stagecoach {

std::string ShardFileName(int first_layer, int last_layer) {
  CHECK(first_layer >= 0 && last_layer > first_layer)
      << "layers [" << first_layer << ", " << last_layer << ") of a shard";
  return absl::StrFormat("layer-%04d-%04d.safetensors", first_layer, last_layer);
}

absl::StatusOr<ShardInfo> WriteShard(FileSystem& file_system, const std::string& folder,
                                     int first_layer, int last_layer,
                                     std::vector<TensorSource> tensors) {
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorSource& a, const TensorSource& b) { return a.name < b.name; });
  ShardInfo info;
  info.file = ShardFileName(first_layer, last_layer);
  const std::string path = JoinPath(folder, info.file);
  RETURN_IF_ERROR(file_system.RemoveAll(path));
  absl::StatusOr<WrittenFile> written = WriteSafetensors(file_system, path, tensors, Metadata{});
  if (!written.ok()) return Annotate(written.status(), "write shard");
  info.bytes = written->bytes;
  info.sha256 = written->sha256;
  for (size_t i = 0; i < written->tensors.size(); ++i) {
    info.tensors.push_back({written->tensors[i], written->tensor_sha256[i]});
  }
  return info;
}

}  // namespace stagecoach
