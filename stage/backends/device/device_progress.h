// DeviceProgress: the progress of a card. A card goes on with queued work while its host waits for
// it or has gone ahead. The host cannot tell a slow card from a stuck one. So events stand between
// the operations. For each event that the card has passed there is a tick
// (base/threads/progress.h).
// Ownership: borrows stream and fault; owns its events, which are used again.
// Threads:   executor thread only, with the card current; ticks count for that thread.
// Errors:    noted in the fault. An event that cannot be made for want of memory is left out.
#ifndef STAGECOACH_STAGE_BACKENDS_DEVICE_DEVICE_PROGRESS_H_
#define STAGECOACH_STAGE_BACKENDS_DEVICE_DEVICE_PROGRESS_H_

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "stage/backends/device/device_error.h"

namespace stagecoach {

class DeviceProgress {
 public:
  // Eight operations take far less than any deadline without progress. An event for each one would
  // cost the host a third of a launch.
  static constexpr int kOperationsPerEvent = 8;

  DeviceProgress(std::shared_ptr<DeviceApi> api, DeviceStream stream,
                 std::shared_ptr<DeviceFault> fault)
      : api_(std::move(api)), stream_(stream), fault_(std::move(fault)) {}
  DeviceProgress(const DeviceProgress&) = delete;
  DeviceProgress& operator=(const DeviceProgress&) = delete;
  ~DeviceProgress();

  void Operation() { Operations(1); }  // call it before one operation is queued
  void Operations(int count);          // the same for several, or after one launch of several
  void Look();                         // ticks for events passed since the last Look; no wait
  void Wait(const char* what);  // until the stream has run all queued work, with ticks meanwhile

 private:
  void Mark();
  void Passed(int code, const char* what);  // removes the front event

  const std::shared_ptr<DeviceApi> api_;
  const DeviceStream stream_;
  const std::shared_ptr<DeviceFault> fault_;
  int operations_ = 0;  // since the last event
  std::deque<DeviceEvent> marks_;
  std::vector<DeviceEvent> spare_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_DEVICE_DEVICE_PROGRESS_H_
