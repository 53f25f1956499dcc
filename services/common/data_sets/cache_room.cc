#include "services/common/data_sets/cache_room.h"

#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/data_sets/part_file.h"

namespace stagecoach {
namespace {

constexpr int64_t kStatBlockBytes = 512;
// Room that an eviction makes beyond the limit, so that the next block needs none.
constexpr int64_t kSlackShare = 16;
constexpr double kAnyUse = std::numeric_limits<double>::infinity();

int64_t FreeOnDisk(const std::string& folder) {
  struct statvfs disk;
  if (statvfs(folder.c_str(), &disk) != 0) return 0;
  return static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize);
}

}  // namespace

CacheRoom::CacheRoom(Options options) : options_(std::move(options)), limit_(options_.limit) {
  for (const Part& part : Scan()) used_ += part.bytes;
  if (limit_ == 0) limit_ = (FreeOnDisk(options_.folder) + used_) / 2;
  look_again_ = limit_;
}

std::vector<CacheRoom::Part> CacheRoom::Scan() const {
  std::vector<Part> parts;
  std::error_code error;
  for (std::filesystem::directory_iterator it(options_.folder, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.ends_with(kPartIndexEnding)) continue;
    const std::string data = name.substr(0, name.size() + 1 - sizeof(kPartIndexEnding));
    struct stat index, stored;
    if (stat(it->path().c_str(), &index) != 0) continue;
    int64_t blocks = index.st_blocks;
    if (stat(absl::StrCat(options_.folder, "/", data).c_str(), &stored) == 0) {
      blocks += stored.st_blocks;
    }
    parts.push_back({data, blocks * kStatBlockBytes,
                     static_cast<double>(index.st_mtim.tv_sec) +
                         static_cast<double>(index.st_mtim.tv_nsec) * 1e-9});
  }
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.used_at < b.used_at; });
  return parts;
}

int64_t CacheRoom::Evict(int64_t target, double unused_since) {
  const std::vector<Part> parts = Scan();
  used_ = 0;
  for (const Part& part : parts) used_ += part.bytes;
  const int64_t before = used_;
  for (const Part& part : parts) {
    if (used_ <= target || part.used_at >= unused_since) break;
    options_.close_idle(part.file_name);
    if (!EvictPart(options_.folder, part.file_name)) continue;
    spdlog::info("the data cache drops part {}, {} bytes", part.file_name, part.bytes);
    used_ -= part.bytes;
  }
  look_again_ = std::max(limit_, used_ + limit_ / kSlackShare);
  return before - used_;
}

void CacheRoom::Added(int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  used_ += bytes;
  if (used_ <= look_again_) return;
  Evict(limit_ - limit_ / kSlackShare, kAnyUse);
  if (used_ <= limit_ || std::exchange(said_, true)) return;
  spdlog::warn(
      "the data cache has {} bytes, and all of them are in use: more than --cache-bytes, {}; give "
      "it "
      "more, or the stages of this machine fewer jobs",
      used_, limit_);
}

bool CacheRoom::Fits(int64_t bytes, double unused_since_unix_seconds) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (used_ + bytes <= limit_) return true;
  Evict(limit_ - limit_ / kSlackShare - bytes, unused_since_unix_seconds);
  return used_ + bytes <= limit_;
}

bool CacheRoom::Free(int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  return Evict(std::max<int64_t>(used_ - bytes, 0), kAnyUse) > 0;
}

int64_t CacheRoom::used() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return used_;
}

}  // namespace stagecoach
