#include "stage/backends/device/link_staging.h"

#include <algorithm>
#include <utility>

#include "base/errors/check.h"
#include "base/errors/status.h"

namespace stagecoach {
namespace {

constexpr char kToLink[] = "copying a boundary tensor to the host";
constexpr char kFromLink[] = "copying a boundary tensor from the host";
constexpr char kEvent[] = "creating an event";
constexpr char kStream[] = "creating a stream";

}  // namespace

LinkStaging::LinkStaging(std::shared_ptr<DeviceApi> api, DeviceStream compute, Allocator* device,
                         std::shared_ptr<DeviceFault> fault)
    : api_(std::move(api)), compute_(compute), device_(device), fault_(std::move(fault)) {
  Note(api_->CreateStream(&to_host_), kStream);
  Note(api_->CreateStream(&from_host_), kStream);
}

LinkStaging::~LinkStaging() {
  End();
  for (DeviceStream stream : {to_host_, from_host_}) {
    if (stream != nullptr) Note(api_->SynchronizeStream(stream), kToLink);
  }
  for (const Copy& copy : to_link_) api_->DestroyEvent(copy.done);
  for (const Copy& copy : from_link_) api_->DestroyEvent(copy.done);
  for (DeviceEvent event : spare_) api_->DestroyEvent(event);
  for (DeviceStream stream : {to_host_, from_host_}) {
    if (stream != nullptr) api_->DestroyStream(stream);
  }
}

bool LinkStaging::TakeEvent(DeviceEvent* event) {
  if (!spare_.empty()) {
    *event = spare_.back();
    spare_.pop_back();
    return true;
  }
  const int code = api_->CreateEvent(event);
  Note(code, kEvent);
  return code == device_code::kSuccess;
}

bool LinkStaging::MarkCompute(DeviceEvent* event) {
  if (!TakeEvent(event)) return false;
  Note(api_->RecordEvent(*event, compute_), kEvent);
  return true;
}

bool LinkStaging::ReapFront(std::deque<Copy>* copies) {
  if (copies->empty()) return false;
  const int code = api_->QueryEvent(copies->front().done);
  if (code == device_code::kNotReady) return false;
  Note(code, copies == &to_link_ ? kToLink : kFromLink);
  spare_.push_back(copies->front().done);
  copies->pop_front();
  return true;
}

void LinkStaging::Reap() {
  while (ReapFront(&to_link_)) ++done_;
  while (ReapFront(&from_link_)) continue;
}

void LinkStaging::Wake() const {
  if (wake_) wake_();
}

absl::StatusOr<uint64_t> LinkStaging::ToLink(const Tensor& source, const Tensor& target) {
  CHECK_EQ(source.bytes(), target.bytes()) << source.shape().ToString();
  Reap();
  RETURN_IF_ERROR(fault_->status());
  if (source.bytes() == 0) return 0;
  DeviceEvent computed, copied;
  if (!MarkCompute(&computed)) return fault_->status();
  Note(api_->StreamWaitEvent(to_host_, computed), kToLink);
  spare_.push_back(computed);  // whoever waits for it waits for this record, not for a later one
  if (!TakeEvent(&copied)) return fault_->status();
  Note(api_->CopyToHost(target.raw(), source.raw(), source.bytes(), to_host_), kToLink);
  Note(api_->RecordEvent(copied, to_host_), kToLink);
  const auto wake = [](void* self) { static_cast<const LinkStaging*>(self)->Wake(); };
  Note(api_->CallHost(to_host_, wake, this), kToLink);
  to_link_.push_back({copied, source, target});
  ++started_;
  RETURN_IF_ERROR(fault_->status());
  return started_;
}

absl::StatusOr<bool> LinkStaging::Done(uint64_t copy) {
  CHECK_LE(copy, started_) << "a copy that was not started";
  Reap();
  RETURN_IF_ERROR(fault_->status());
  return copy <= done_;
}

absl::StatusOr<LinkStaging::Ahead> LinkStaging::TakeTarget(int64_t bytes) {
  const auto found = std::find_if(ahead_.begin(), ahead_.end(), [bytes](const Ahead& ahead) {
    return ahead.buffer->bytes() >= bytes && ahead.buffer->bytes() < bytes + bytes / 8 + 512;
  });
  if (found != ahead_.end()) {
    Ahead taken = std::move(*found);
    ahead_.erase(found);
    return taken;
  }
  Ahead fresh;
  ASSIGN_OR_RETURN(fresh.buffer, device_->Allocate(bytes, MemoryKind::kActivations));
  if (!MarkCompute(&fresh.unused)) return fault_->status();
  return fresh;
}

void LinkStaging::TakeAhead(int64_t bytes) {
  if (ahead_.size() == kAhead) {
    spare_.push_back(ahead_.front().unused);
    ahead_.pop_front();
  }
  taking_ahead_ = true;
  absl::StatusOr<Ahead> ahead = TakeTarget(bytes);
  taking_ahead_ = false;
  if (ahead.ok()) ahead_.push_back(*std::move(ahead));  // else the next copy waits longer
}

absl::StatusOr<Tensor> LinkStaging::FromLink(const Tensor& source) {
  Reap();
  RETURN_IF_ERROR(fault_->status());
  if (source.bytes() == 0) {
    return MakeTensor(*device_, MemoryKind::kActivations, source.dtype(), source.shape());
  }
  ASSIGN_OR_RETURN(Ahead taken, TakeTarget(source.bytes()));
  Tensor target(std::move(taken.buffer), source.dtype(), source.shape());
  Note(api_->StreamWaitEvent(from_host_, taken.unused), kFromLink);
  spare_.push_back(taken.unused);
  DeviceEvent arrived;
  if (!TakeEvent(&arrived)) return fault_->status();
  Note(api_->CopyFromHost(target.raw(), source.raw(), source.bytes(), from_host_), kFromLink);
  Note(api_->RecordEvent(arrived, from_host_), kFromLink);
  Note(api_->StreamWaitEvent(compute_, arrived), kFromLink);
  // The target needs no holding: whatever is computed in its place later comes after the copy.
  from_link_.push_back({arrived, source, Tensor()});
  TakeAhead(source.bytes());
  RETURN_IF_ERROR(fault_->status());
  return target;
}

bool LinkStaging::Relieve(const std::function<void()>& wait) {
  if (taking_ahead_ || (ahead_.empty() && to_link_.empty())) return false;
  wait();
  End();
  if (!to_link_.empty()) Note(api_->SynchronizeEvent(to_link_.back().done), kToLink);
  Reap();
  return true;
}

void LinkStaging::End() {
  for (Ahead& ahead : ahead_) spare_.push_back(ahead.unused);
  ahead_.clear();
  Reap();
}

}  // namespace stagecoach
