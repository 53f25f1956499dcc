#include "stage/backends/device/device_progress.h"

#include "base/threads/progress.h"

namespace stagecoach {
namespace {

constexpr char kMarkingProgress[] = "marking how far the card is";

}  // namespace

DeviceProgress::~DeviceProgress() {
  for (DeviceEvent event : marks_) api_->DestroyEvent(event);
  for (DeviceEvent event : spare_) api_->DestroyEvent(event);
}

void DeviceProgress::Operations(int count) {
  operations_ += count;
  if (operations_ < kOperationsPerEvent) return;
  operations_ = 0;
  Look();
  Mark();
}

void DeviceProgress::Mark() {
  DeviceEvent event = nullptr;
  if (!spare_.empty()) {
    event = spare_.back();
    spare_.pop_back();
  } else {
    const int code = api_->CreateEvent(&event);
    if (code == device_code::kOutOfMemory) return;
    fault_->Note(code, kMarkingProgress);
    if (code != device_code::kSuccess) return;
  }
  fault_->Note(api_->RecordEvent(event, stream_), kMarkingProgress);
  marks_.push_back(event);
}

void DeviceProgress::Passed(int code, const char* what) {
  fault_->Note(code, what);
  spare_.push_back(marks_.front());
  marks_.pop_front();
  TickProgress();
}

void DeviceProgress::Look() {
  while (!marks_.empty()) {
    const int code = api_->QueryEvent(marks_.front());
    if (code == device_code::kNotReady) return;
    Passed(code, kMarkingProgress);
  }
}

void DeviceProgress::Wait(const char* what) {
  while (!marks_.empty()) Passed(api_->SynchronizeEvent(marks_.front()), what);
  fault_->Note(api_->SynchronizeStream(stream_), what);
}

}  // namespace stagecoach
