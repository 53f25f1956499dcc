#include "checkpoint/local/local_shards.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "checkpoint/names.h"

namespace stagecoach {
namespace {

constexpr char kLocalShardsFolder[] = "checkpoints";  // of the cache
constexpr double kMostIdleSeconds = 7 * 86400;
constexpr double kMostIdleOnAShortDiskSeconds = 3600;
constexpr int64_t kRoomCheckBytes = int64_t{64} << 20;  // between two looks at the disk

std::optional<double> IdleSecondsHere(const std::string& folder) {
  std::error_code error;
  const auto changed = std::filesystem::last_write_time(folder, error);
  if (error) return std::nullopt;
  return std::chrono::duration<double>(std::filesystem::file_time_type::clock::now() - changed)
      .count();
}

std::string StepFolder(const std::string& root, const std::string& job, uint64_t step) {
  return JoinPath(JoinPath(root, job), FormatStepFolder(step));
}

}  // namespace

class LocalShards::FileCopy final : public LocalShards::Copy {
 public:
  FileCopy(LocalShards* owner, std::string folder, std::string path,
           std::unique_ptr<WritableFile> file)
      : owner_(*owner),
        folder_(std::move(folder)),
        path_(std::move(path)),
        file_(std::move(file)) {}
  ~FileCopy() override {
    file_.reset();
    if (!kept_) owner_.options_.files->RemoveAll(path_).IgnoreError();
  }

  void Append(std::span<const std::byte> bytes) override {
    if (!status_.ok()) return;
    status_ = Write(bytes);
    if (!status_.ok()) owner_.Report(status_);
  }

  void Keep() override {
    if (!status_.ok()) return;
    status_ = Publish();
    kept_ = status_.ok();
    owner_.Report(status_);
  }

 private:
  absl::Status Write(std::span<const std::byte> bytes) {
    unchecked_ += static_cast<int64_t>(bytes.size());
    if (unchecked_ >= kRoomCheckBytes) {
      RETURN_IF_ERROR(owner_.CheckRoom(folder_));
      unchecked_ = 0;
    }
    digest_.Update(bytes);
    return file_->Append(bytes);
  }

  absl::Status Publish() {
    RETURN_IF_ERROR(file_->Close());
    return owner_.options_.files->Rename(path_, JoinPath(folder_, digest_.Hex()));
  }

  LocalShards& owner_;
  const std::string folder_, path_;
  std::unique_ptr<WritableFile> file_;
  Sha256 digest_;
  int64_t unchecked_ = 0;  // bytes since the last look at the disk
  absl::Status status_;    // the first failure
  bool kept_ = false;
};

LocalShards::LocalShards(Options options) : options_(std::move(options)) {
  CHECK(options_.files != nullptr && options_.folder && options_.keep >= 1)
      << "copies of the newest " << options_.keep << " checkpoints";
}

absl::StatusOr<std::string> LocalShards::Root() const {
  ASSIGN_OR_RETURN(const std::string cache, options_.folder());
  return JoinPath(cache, kLocalShardsFolder);
}

std::unique_ptr<LocalShards::Copy> LocalShards::Begin(const std::string& job, uint64_t step) {
  absl::StatusOr<std::unique_ptr<Copy>> copy = BeginCopy(job, step);
  if (copy.ok()) return *std::move(copy);
  Report(copy.status());
  return nullptr;
}

absl::StatusOr<std::unique_ptr<LocalShards::Copy>> LocalShards::BeginCopy(const std::string& job,
                                                                          uint64_t step) {
  RETURN_IF_ERROR(CheckJobName(job));
  ASSIGN_OR_RETURN(const std::string root, Root());
  const std::string folder = StepFolder(root, job, step);
  RETURN_IF_ERROR(options_.files->MakeFolders(folder));
  Trim(FolderOf(folder), step);
  Sweep(root, job, kMostIdleSeconds);
  if (!CheckRoom(folder).ok()) Sweep(root, job, kMostIdleOnAShortDiskSeconds);
  RETURN_IF_ERROR(CheckRoom(folder));
  std::string path = JoinPath(folder, absl::StrCat(".tmp-", options_.files->Nonce()));
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, options_.files->Create(path));
  return std::make_unique<FileCopy>(this, folder, std::move(path), std::move(file));
}

void LocalShards::Trim(const std::string& job_folder, uint64_t step) {
  const auto names = options_.files->List(job_folder);
  if (!names.ok()) return;
  int64_t before = 0;
  for (auto name = names->rbegin(); name != names->rend(); ++name) {  // newest first
    const std::optional<uint64_t> other = ParseStepFolder(*name);
    if (!other.has_value() || *other == step) continue;
    if (*other < step && ++before <= options_.keep) continue;
    options_.files->RemoveAll(JoinPath(job_folder, *name)).IgnoreError();
  }
}

void LocalShards::Sweep(const std::string& root, const std::string& except_job,
                        double most_idle_seconds) {
  const auto jobs = options_.files->List(root);
  if (!jobs.ok()) return;
  for (const std::string& job : *jobs) {
    if (job == except_job || !CheckJobName(job).ok()) continue;
    const std::string folder = JoinPath(root, job);
    if (IdleSeconds(folder) <= most_idle_seconds) continue;
    spdlog::info("local copies of shards of job {} go: nobody wrote there for long", job);
    options_.files->RemoveAll(folder).IgnoreError();
  }
}

// A new file changes its step's folder, a new step the job's. 0 if unknown.
double LocalShards::IdleSeconds(const std::string& job_folder) const {
  const auto idle = [this](const std::string& folder) {
    return (options_.idle_seconds ? options_.idle_seconds(folder) : IdleSecondsHere(folder))
        .value_or(0);
  };
  double seconds = idle(job_folder);
  const auto steps = options_.files->List(job_folder);
  if (!steps.ok()) return 0;
  for (const std::string& step : *steps) {
    seconds = std::min(seconds, idle(JoinPath(job_folder, step)));
  }
  return seconds;
}

absl::Status LocalShards::CheckRoom(const std::string& folder) const {
  ASSIGN_OR_RETURN(const int64_t free_bytes, options_.files->FreeBytes(folder));
  if (free_bytes > options_.reserve_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(folder, ": ", free_bytes,
                                                   " bytes of the disk are free, and ",
                                                   options_.reserve_bytes, " stay free"));
}

void LocalShards::Report(const absl::Status& status) {
  if (failing_.exchange(!status.ok()) || status.ok()) return;
  spdlog::warn(
      "no local copy of a shard: {}; checkpoints are written all the same, and loads read them "
      "from the store; give --cache-dir a disk with room for --keep-local checkpoints, or leave "
      "--keep-local out",
      std::string(status.message()));
}

absl::StatusOr<SafetensorsReader> LocalShards::Open(const std::string& job, uint64_t step,
                                                    const ShardInfo& shard) {
  // A manifest is only as good as its writer: its digest becomes a file's name here.
  if (!CheckJobName(job).ok() || step > kMaxCheckpointStep || !IsSha256Hex(shard.sha256)) {
    return absl::NotFoundError(absl::StrCat("no local copy of shard ", shard.file));
  }
  ASSIGN_OR_RETURN(const std::string root, Root());
  ASSIGN_OR_RETURN(SafetensorsReader reader,
                   SafetensorsReader::Open(*options_.files,
                                           JoinPath(StepFolder(root, job, step), shard.sha256)));
  if (reader.file_bytes() == shard.bytes) return reader;
  return absl::DataLossError(
      absl::StrCat("it has ", reader.file_bytes(), " bytes, the manifest says ", shard.bytes));
}

void LocalShards::Drop(const std::string& job, uint64_t step, const ShardInfo& shard,
                       const absl::Status& why) {
  const absl::StatusOr<std::string> root = Root();
  if (!root.ok()) return;
  const std::string path = JoinPath(StepFolder(*root, job, step), shard.sha256);
  spdlog::warn("local copy {} of shard {} is not used, and goes: {}", path, shard.file,
               std::string(why.message()));
  options_.files->RemoveAll(path).IgnoreError();
}

}  // namespace stagecoach
