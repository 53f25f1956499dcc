#include "services/coordinator/watch/folder_room.h"

#include <sys/statvfs.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace stagecoach {

std::optional<Room> RoomOf(const std::string& path) {
  struct statvfs seen {};
  if (statvfs(path.c_str(), &seen) != 0) return std::nullopt;
  const auto block = static_cast<double>(seen.f_frsize);
  return Room{static_cast<double>(seen.f_bavail) * block,
              static_cast<double>(seen.f_blocks) * block};
}

struct FolderRoom::Shared {
  struct Entry {
    Folder folder;
    std::optional<Room> room;
    double asked_seconds = 0;  // monotonic
  };

  mutable std::mutex mutex;  // guards what follows, but the folders, which do not change
  std::condition_variable changed;
  std::vector<Entry> entries;
  bool stopping = false;
  const Clock* clock = nullptr;

  void Ask() {
    for (Entry& entry : entries) {
      const std::optional<Room> room = RoomOf(entry.folder.path);  // may hang
      std::lock_guard<std::mutex> lock(mutex);
      entry.room = room;
      entry.asked_seconds = clock->MonotonicSeconds();
    }
  }

  void Run() {
    const auto period = std::chrono::duration<double>(kPeriodSeconds);
    while (true) {
      {
        std::unique_lock<std::mutex> lock(mutex);
        if (changed.wait_for(lock, period, [this] { return stopping; })) return;
      }
      Ask();
    }
  }
};

FolderRoom::FolderRoom(std::vector<Folder> folders, const Clock* clock)
    : shared_(std::make_shared<Shared>()) {
  for (Folder& folder : folders) shared_->entries.push_back({std::move(folder), {}, 0});
  shared_->clock = clock;
  shared_->Ask();
  thread_ = Thread("folder-room", [shared = shared_] { shared->Run(); });
}

FolderRoom::~FolderRoom() {
  {
    std::lock_guard<std::mutex> lock(shared_->mutex);
    shared_->stopping = true;
  }
  shared_->changed.notify_one();
  thread_.Join();
}

void FolderRoom::Write(MetricWriter& writer) const {
  std::lock_guard<std::mutex> lock(shared_->mutex);
  const double now = shared_->clock->MonotonicSeconds();
  for (const Shared::Entry& entry : shared_->entries) {
    if (!entry.room.has_value() || now - entry.asked_seconds > kStaleSeconds) continue;
    writer.Add(metric::kFolderFree, {entry.folder.use}, entry.room->free_bytes);
    writer.Add(metric::kFolderSize, {entry.folder.use}, entry.room->size_bytes);
  }
}

}  // namespace stagecoach
