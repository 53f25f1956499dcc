#include "checkpoint/local/keeping_files.h"

#include <optional>
#include <span>
#include <utility>

#include "base/errors/status.h"
#include "checkpoint/names.h"

namespace stagecoach {
namespace {

constexpr char kShardEnding[] = ".safetensors";  // as ShardFileName ends

class KeptFile final : public WritableFile {
 public:
  KeptFile(std::unique_ptr<WritableFile> file, std::unique_ptr<LocalShards::Copy> copy)
      : file_(std::move(file)), copy_(std::move(copy)) {}

  absl::Status Append(std::span<const std::byte> bytes) override {
    RETURN_IF_ERROR(file_->Append(bytes));
    copy_->Append(bytes);
    return absl::OkStatus();
  }
  absl::Status Sync() override { return file_->Sync(); }
  absl::Status Close() override {
    RETURN_IF_ERROR(file_->Close());
    copy_->Keep();
    return absl::OkStatus();
  }

 private:
  const std::unique_ptr<WritableFile> file_;
  const std::unique_ptr<LocalShards::Copy> copy_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<WritableFile>> KeepingFiles::Create(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, below_.Create(path));
  const std::string folder = FolderOf(path);
  const std::optional<TemporaryName> checkpoint = ParseTemporaryFolder(NameOf(folder));
  if (!checkpoint.has_value() || checkpoint->step > kMaxCheckpointStep ||
      !path.ends_with(kShardEnding)) {
    return file;
  }
  std::unique_ptr<LocalShards::Copy> copy =
      shards_.Begin(NameOf(FolderOf(folder)), checkpoint->step);
  if (copy == nullptr) return file;
  return std::make_unique<KeptFile>(std::move(file), std::move(copy));
}

}  // namespace stagecoach
