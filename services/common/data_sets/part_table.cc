#include "services/common/data_sets/part_table.h"

#include <utility>

#include "base/errors/status.h"

namespace stagecoach {

absl::StatusOr<std::shared_ptr<CachedPart>> PartTable::Open(const PartKey& key) {
  std::lock_guard<std::mutex> lock(mutex_);
  const std::string name = key.FileName();
  auto found = parts_.find(name);
  if (found == parts_.end()) {
    CloseOldestIdleLocked();
    ASSIGN_OR_RETURN(std::unique_ptr<PartFile> file, PartFile::Open(folder_, key));
    auto part = std::make_shared<CachedPart>(std::move(file), &room_, &arrivals_);
    found = parts_.emplace(name, Slot{std::move(part)}).first;
  }
  found->second.used = ++openings_;
  return found->second.part;
}

// A part that only the table has is idle: it is handed out under the lock alone.
void PartTable::CloseOldestIdleLocked() {
  if (parts_.size() < kMostIdle) return;
  auto oldest = parts_.end();
  for (auto it = parts_.begin(); it != parts_.end(); ++it) {
    if (it->second.part.use_count() > 1) continue;
    if (oldest == parts_.end() || it->second.used < oldest->second.used) oldest = it;
  }
  if (oldest != parts_.end()) parts_.erase(oldest);
}

void PartTable::CloseIdle() {
  std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(parts_, [](const auto& slot) { return slot.second.part.use_count() == 1; });
}

void PartTable::CloseIdle(const std::string& name) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = parts_.find(name);
  if (found != parts_.end() && found->second.part.use_count() == 1) parts_.erase(found);
}

void PartTable::Forget(const std::shared_ptr<CachedPart>& part) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(parts_, [&part](const auto& slot) { return slot.second.part == part; });
}

}  // namespace stagecoach
