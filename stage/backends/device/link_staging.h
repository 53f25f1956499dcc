// LinkStaging: copies between a card's memory and the pinned memory that links carry, in the order
// of the compute stream: a tensor is sent when what computes it has run, and read after it has
// arrived. Ownership: borrows stream and fault; holds a received tensor until its copy has run, as
// its pinned
//            memory is handed to the next message the moment it is let go.
// Threads:   executor thread only, with the card current.
// Errors:    the fault's status; an error met here is noted there.
#ifndef STAGECOACH_STAGE_BACKENDS_DEVICE_LINK_STAGING_H_
#define STAGECOACH_STAGE_BACKENDS_DEVICE_LINK_STAGING_H_

#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "stage/backends/device/device_error.h"
#include "stage/tensor/tensor.h"

namespace stagecoach {

class LinkStaging {
 public:
  LinkStaging(std::shared_ptr<DeviceApi> api, DeviceStream stream,
              std::shared_ptr<DeviceFault> fault);
  LinkStaging(const LinkStaging&) = delete;
  LinkStaging& operator=(const LinkStaging&) = delete;
  ~LinkStaging();  // waits for copies under way

  // Returns when the target may be sent.
  absl::Status ToLink(const Tensor& source, const Tensor& target);
  // Queued; what is queued later on the stream finds the target complete.
  absl::Status FromLink(const Tensor& source, const Tensor& target);

  size_t held() const { return under_way_.size(); }

 private:
  struct Copy {
    DeviceEvent done;
    Tensor source;
  };

  bool TakeEvent(DeviceEvent* event);
  void Reap();

  const std::shared_ptr<DeviceApi> api_;
  const DeviceStream stream_;
  const std::shared_ptr<DeviceFault> fault_;
  std::deque<Copy> under_way_;  // in stream order
  std::vector<DeviceEvent> spare_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_DEVICE_LINK_STAGING_H_
