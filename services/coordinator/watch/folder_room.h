// FolderRoom: the room left where the coordinator and its stages write.
// Ownership: owns its thread.
// Threads:   Write from any thread. A file system that hangs holds up only the thread that asks,
//            never a scrape. Its last value is shown for a while and then left out.
// Units:     bytes, as a process without privileges may use them.
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
// Of the file system that the path is on; nothing where the system does not say.
std::optional<Room> RoomOf(const std::string& path);

class FolderRoom {
 public:
  static constexpr double kPeriodSeconds = 15, kStaleSeconds = 60;

  struct Folder {
    std::string use;  // the label: "checkpoints"
    std::string path;
  };
  // Asks before it returns, and then every kPeriodSeconds.
  explicit FolderRoom(std::vector<Folder> folders, const Clock* clock = SystemClock::Get());
  ~FolderRoom();  // waits for an answer that is under way
  void Write(MetricWriter& writer) const;

 private:
  struct Shared;
  const std::shared_ptr<Shared> shared_;
  Thread thread_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_WATCH_FOLDER_ROOM_H_
