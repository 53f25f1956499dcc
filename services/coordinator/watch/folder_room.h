// FolderRoom: free space in the folders that the coordinator and its stages write.
// Ownership: owns its thread.
// Threads:   Write from any thread. A file system that hangs holds up only the thread that asks,
//            never a scrape. Its last value is shown for a while and then left out.
// Units:     bytes, usable by a process without privileges.
#ifndef STAGECOACH_SERVICES_COORDINATOR_WATCH_FOLDER_ROOM_H_
#define STAGECOACH_SERVICES_COORDINATOR_WATCH_FOLDER_ROOM_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/threads/clock.h"
#include "base/threads/thread.h"
#include "services/common/observe/metrics.h"

namespace stagecoach {

struct Room {
  double free_bytes = 0, size_bytes = 0;
};
// Room of the file system of this path; nullopt if the system does not tell.
std::optional<Room> RoomOf(const std::string& path);

class FolderRoom {
 public:
  static constexpr double kPeriodSeconds = 15, kStaleSeconds = 60;

  struct Folder {
    std::string use;  // the label: "checkpoints"
    std::string path;
  };
  // Looks once before it returns, and then every kPeriodSeconds.
  explicit FolderRoom(std::vector<Folder> folders, const Clock* clock = SystemClock::Get());
  ~FolderRoom();  // waits for a running look
  void Write(MetricWriter& writer) const;

 private:
  struct Shared;
  const std::shared_ptr<Shared> shared_;
  Thread thread_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_WATCH_FOLDER_ROOM_H_
