#include "stage/backends/device/device_clock.h"

#include <utility>

namespace stagecoach {
namespace {

constexpr char kMarkingTime[] = "marking the time";

}  // namespace

DeviceClock::~DeviceClock() {
  for (DeviceEvent event : marks_) api_->DestroyEvent(event);
  for (DeviceEvent event : spare_) api_->DestroyEvent(event);
}

void DeviceClock::Mark() {
  DeviceEvent event = nullptr;
  if (!spare_.empty()) {
    event = spare_.back();
    spare_.pop_back();
  } else {
    const int code = api_->CreateTimingEvent(&event);
    fault_->Note(code, kMarkingTime);
    missing_ = missing_ || code != device_code::kSuccess;
    if (code != device_code::kSuccess) return;
  }
  const int code = api_->RecordEvent(event, stream_);
  fault_->Note(code, kMarkingTime);
  missing_ = missing_ || code != device_code::kSuccess;
  marks_.push_back(event);
}

std::vector<int64_t> DeviceClock::Take() {
  std::vector<int64_t> times;
  bool known = !std::exchange(missing_, false) && !marks_.empty();
  if (known) {
    const int code = api_->SynchronizeEvent(marks_.back());
    fault_->Note(code, kMarkingTime);
    known = code == device_code::kSuccess;
  }
  // From each to the next: what the runtime tells of two that are far apart is coarse.
  int64_t time = 0;
  for (size_t i = 0; known && i < marks_.size(); ++i) {
    int64_t nanos = 0;
    const int code = i == 0 ? 0 : api_->ElapsedNanos(marks_[i - 1], marks_[i], &nanos);
    fault_->Note(code, kMarkingTime);
    known = code == device_code::kSuccess;
    times.push_back(time += nanos);
  }
  spare_.insert(spare_.end(), marks_.begin(), marks_.end());
  marks_.clear();
  if (!known) times.clear();
  return times;
}

}  // namespace stagecoach
