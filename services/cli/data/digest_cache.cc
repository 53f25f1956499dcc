#include "services/cli/data/digest_cache.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "checkpoint/files/file_system.h"
#include "checkpoint/names.h"
#include "plan/data/data_set_path.h"

namespace stagecoach {

std::string DigestCache::Path() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return absl::StrCat(cache, "/stagecoach/digests");
  const char* const home = std::getenv("HOME");
  if (home == nullptr || *home != '/') return "";
  return absl::StrCat(home, "/.cache/stagecoach/digests");
}

DigestCache::DigestCache(std::string path) : path_(std::move(path)) {
  if (!path_.empty()) Read();
}

// Lines of digest, size, times, inode and path, the one used last at the end.
void DigestCache::Read() {
  std::ifstream file(path_);
  for (std::string line; std::getline(file, line) && entries_.size() < kMostFiles;) {
    std::istringstream words(line);
    Entry entry;
    std::string path;
    words >> entry.sha256 >> entry.stamp.bytes >> entry.stamp.modified_nanos >>
        entry.stamp.changed_nanos >> entry.stamp.inode;
    if (!words || words.get() != ' ' || !std::getline(words, path)) continue;
    if (!IsDigest(entry.sha256)) continue;
    entry.used = ++uses_;
    entries_[path] = std::move(entry);
  }
}

std::optional<std::string> DigestCache::Find(const LocalFile& file) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = entries_.find(file.here);
  if (found == entries_.end() || found->second.stamp != file.stamp) return std::nullopt;
  return found->second.sha256;
}

void DigestCache::Keep(const LocalFile& file, const std::string& sha256, int64_t read_unix_nanos) {
  const int64_t last = std::max(file.stamp.modified_nanos, file.stamp.changed_nanos);
  if (path_.empty() || read_unix_nanos - last < kYoungNanos) return;
  if (!file.here.starts_with('/') || file.here.find('\n') != std::string::npos) return;
  std::lock_guard<std::mutex> lock(mutex_);
  entries_[file.here] = {file.stamp, sha256, ++uses_};
  changed_ = true;
}

void DigestCache::Forget(const LocalFile& file) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (entries_.erase(file.here) > 0) changed_ = true;
}

void DigestCache::Save() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!changed_) return;
  std::vector<std::pair<uint64_t, std::string>> lines;
  for (const auto& [path, entry] : entries_) {
    lines.emplace_back(
        entry.used,
        absl::StrCat(entry.sha256, " ", entry.stamp.bytes, " ", entry.stamp.modified_nanos, " ",
                     entry.stamp.changed_nanos, " ", entry.stamp.inode, " ", path, "\n"));
  }
  std::sort(lines.begin(), lines.end());
  if (lines.size() > kMostFiles) lines.erase(lines.begin(), lines.end() - kMostFiles);
  std::string text;
  for (const auto& [used, line] : lines) text += line;
  FileSystem& files = *PosixFileSystem();
  if (!files.MakeFolders(FolderOf(path_)).ok()) return;
  const std::string unfinished = absl::StrCat(path_, ".", files.Nonce());
  const auto file = files.Create(unfinished);
  if (!file.ok()) return;
  const bool written =
      (*file)->Append(std::as_bytes(std::span(text))).ok() && (*file)->Close().ok();
  if (written && files.Rename(unfinished, path_).ok()) return;
  std::error_code error;
  std::filesystem::remove(unfinished, error);
}

}  // namespace stagecoach
