#include "stage/backends/device/link_staging.h"

#include <utility>

#include "base/check.h"

namespace stagecoach {
namespace {

constexpr char kToLink[] = "copying a boundary tensor to the host";
constexpr char kFromLink[] = "copying a boundary tensor from the host";

}  // namespace

LinkStaging::LinkStaging(std::shared_ptr<DeviceApi> api, DeviceStream stream,
                         std::shared_ptr<DeviceFault> fault)
    : api_(std::move(api)), stream_(stream), fault_(std::move(fault)) {}

LinkStaging::~LinkStaging() {
  if (!under_way_.empty()) fault_->Note(api_->SynchronizeEvent(under_way_.back().done), kFromLink);
  for (const Copy& copy : under_way_) api_->DestroyEvent(copy.done);
  for (DeviceEvent event : spare_) api_->DestroyEvent(event);
}

bool LinkStaging::TakeEvent(DeviceEvent* event) {
  if (!spare_.empty()) {
    *event = spare_.back();
    spare_.pop_back();
    return true;
  }
  const int code = api_->CreateEvent(event);
  fault_->Note(code, "creating an event");
  return code == device_code::kSuccess;
}

void LinkStaging::Reap() {
  while (!under_way_.empty()) {
    const int code = api_->QueryEvent(under_way_.front().done);
    if (code == device_code::kNotReady) return;
    fault_->Note(code, kFromLink);
    spare_.push_back(under_way_.front().done);
    under_way_.pop_front();
  }
}

absl::Status LinkStaging::ToLink(const Tensor& source, const Tensor& target) {
  CHECK_EQ(source.bytes(), target.bytes()) << source.shape().ToString();
  Reap();
  if (source.bytes() == 0) return fault_->status();
  DeviceEvent copied;
  if (!TakeEvent(&copied)) return fault_->status();
  fault_->Note(api_->CopyToHost(target.raw(), source.raw(), source.bytes(), stream_), kToLink);
  fault_->Note(api_->RecordEvent(copied, stream_), kToLink);
  fault_->Note(api_->SynchronizeEvent(copied), kToLink);
  spare_.push_back(copied);
  return fault_->status();
}

absl::Status LinkStaging::FromLink(const Tensor& source, const Tensor& target) {
  CHECK_EQ(source.bytes(), target.bytes()) << source.shape().ToString();
  Reap();
  if (source.bytes() == 0) return fault_->status();
  DeviceEvent read;
  if (!TakeEvent(&read)) return fault_->status();
  fault_->Note(api_->CopyFromHost(target.raw(), source.raw(), source.bytes(), stream_), kFromLink);
  fault_->Note(api_->RecordEvent(read, stream_), kFromLink);
  under_way_.push_back({read, source});
  return fault_->status();
}

}  // namespace stagecoach
