#include "checkpoint/shard.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/threads/progress.h"
#include "checkpoint/names.h"

namespace stagecoach {
namespace {

constexpr size_t kShardPieceBytes = size_t{1} << 20;

}  // namespace

std::string ShardFileName(const ShardLayers& layers) {
  CHECK(!layers.empty()) << "a shard of no layers";
  std::string name = "layer";
  for (const LayerRange& cell : layers) {
    CHECK(cell.first >= 0 && cell.last > cell.first)
        << "layers [" << cell.first << ", " << cell.last << ") of a shard";
    absl::StrAppendFormat(&name, "-%04d-%04d", cell.first, cell.last);
  }
  return name + ".safetensors";
}

absl::StatusOr<ShardInfo> WriteShard(FileSystem& file_system, const std::string& folder,
                                     const ShardLayers& layers,
                                     std::vector<TensorSource> tensors) {
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorSource& a, const TensorSource& b) { return a.name < b.name; });
  ShardInfo info;
  info.file = ShardFileName(layers);
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

absl::Status WriteShardBytes(FileSystem& file_system, const std::string& folder,
                             const ShardInfo& info, std::span<const std::byte> bytes) {
  const std::string path = JoinPath(folder, info.file);
  RETURN_IF_ERROR(file_system.RemoveAll(path));
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, file_system.Create(path));
  Sha256 digest;
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), kShardPieceBytes));
    digest.Update(piece);
    RETURN_IF_ERROR(file->Append(piece));
    bytes = bytes.subspan(piece.size());
    TickProgress();
  }
  if (const std::string found = digest.Hex(); found != info.sha256) {
    file_system.RemoveAll(path).IgnoreError();
    return absl::DataLossError(absl::StrCat("shard ", info.file, " in memory: sha256 ", found,
                                            ", it was taken with ", info.sha256));
  }
  RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

}  // namespace stagecoach
