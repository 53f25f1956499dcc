// DeviceClock: the times, by a card's own clock, at which the card reached marks on its stream.
// Ownership: borrows stream and fault; owns its events, which are used again.
// Threads:   executor thread only, with the card current.
// Units:     nanoseconds after the first mark; the card's resolution is about half a microsecond.
// Errors:    noted in the fault; then there are no times.
#ifndef STAGECOACH_STAGE_BACKENDS_DEVICE_DEVICE_CLOCK_H_
#define STAGECOACH_STAGE_BACKENDS_DEVICE_DEVICE_CLOCK_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "stage/backends/device/device_error.h"

namespace stagecoach {

class DeviceClock {
 public:
  DeviceClock(std::shared_ptr<DeviceApi> api, DeviceStream stream,
              std::shared_ptr<DeviceFault> fault)
      : api_(std::move(api)), stream_(stream), fault_(std::move(fault)) {}
  DeviceClock(const DeviceClock&) = delete;
  DeviceClock& operator=(const DeviceClock&) = delete;
  ~DeviceClock();

  void Mark();                  // queued on the stream
  std::vector<int64_t> Take();  // times of all marks since the last call; waits for them

 private:
  const std::shared_ptr<DeviceApi> api_;
  const DeviceStream stream_;
  const std::shared_ptr<DeviceFault> fault_;
  std::vector<DeviceEvent> marks_, spare_;
  bool missing_ = false;  // a mark could not be made
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_DEVICE_DEVICE_CLOCK_H_
