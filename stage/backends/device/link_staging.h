// LinkStaging: copies between a card's memory and the pinned memory that links carry. They run on
// streams of their own, beside the computation. Events keep the order. A copy to a link begins when
// the work queued before it on the compute stream has run. Work queued on the compute stream after
// a copy from a link finds it complete.
// Ownership: borrows compute stream, device allocator and fault; owns the copy streams. It holds
//            the source and target of a copy until the copy has run, since the allocators hand out
//            released memory at once. Pinned memory goes to the next message, the card's to the
//            next computation. A copy from a link writes memory that queued work may still be
//            reading. So it waits for the work that had been queued when that memory was taken. The
//            memory is taken one message ahead. Otherwise a copy would wait for all queued work,
//            and nothing would overlap.
// Threads:   executor thread only, with the card current; OnDone's function runs on any thread.
// Errors:    the fault's status; an error met here is noted there.
#ifndef STAGECOACH_STAGE_BACKENDS_DEVICE_LINK_STAGING_H_
#define STAGECOACH_STAGE_BACKENDS_DEVICE_LINK_STAGING_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plan/costs/card_memory.h"
#include "stage/backends/device/device_error.h"
#include "stage/tensor/tensor.h"

namespace stagecoach {

class LinkStaging {
 public:
  LinkStaging(std::shared_ptr<DeviceApi> api, DeviceStream compute, Allocator* device,
              std::shared_ptr<DeviceFault> fault);
  LinkStaging(const LinkStaging&) = delete;
  LinkStaging& operator=(const LinkStaging&) = delete;
  ~LinkStaging();  // waits for copies under way

  // Queues a copy. The target may be sent once Done(the number returned); 0: at once.
  absl::StatusOr<uint64_t> ToLink(const Tensor& source, const Tensor& target);
  absl::StatusOr<bool> Done(uint64_t copy);
  // Set it before the first copy: `wake` is called when a copy to a link has run.
  void OnDone(std::function<void()> wake) { wake_ = std::move(wake); }

  // Queues a copy; work queued later on the compute stream finds the result complete.
  absl::StatusOr<Tensor> FromLink(const Tensor& source);

  // For an allocator that has no more memory. First calls `wait`, which returns when the compute
  // stream has run the queued work. Then it releases the memory that was taken ahead, and waits for
  // copies to links, whose sources it holds. False, and no wait: there was nothing to release.
  bool Relieve(const std::function<void()>& wait);
  void End();  // releases the memory that was taken ahead

  size_t held() const { return to_link_.size() + from_link_.size(); }  // copies under way

 private:
  struct Copy {
    DeviceEvent done;
    Tensor source, target;
  };
  // Memory that a copy may write when the compute stream has passed the event.
  struct Ahead {
    DeviceEvent unused;
    std::shared_ptr<Buffer> buffer;
  };
  static constexpr size_t kAhead = kCardAhead;  // activations and gradients may differ in size

  bool TakeEvent(DeviceEvent* event);
  // Records an event behind the work queued on the compute stream so far.
  bool MarkCompute(DeviceEvent* event);
  absl::StatusOr<Ahead> TakeTarget(int64_t bytes);
  void TakeAhead(int64_t bytes);
  void Reap();
  bool ReapFront(std::deque<Copy>* copies);  // false: it has not run, or there is none
  void Note(int code, const char* what) { fault_->Note(code, what); }
  void Wake() const;

  const std::shared_ptr<DeviceApi> api_;
  const DeviceStream compute_;
  Allocator* const device_;
  const std::shared_ptr<DeviceFault> fault_;
  DeviceStream to_host_ = nullptr, from_host_ = nullptr;
  std::function<void()> wake_;
  std::deque<Copy> to_link_, from_link_;  // each in the order of its stream
  std::deque<Ahead> ahead_;
  bool taking_ahead_ = false;
  uint64_t started_ = 0, done_ = 0;  // copies to links
  std::vector<DeviceEvent> spare_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_DEVICE_LINK_STAGING_H_
