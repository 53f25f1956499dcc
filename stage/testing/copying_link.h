// CopyingLink: an end of a boundary in one process whose stages have memory of their own, as stages in processes have.
// What was sent is the sender's no longer: it is on the wire, outside of both stages, until it arrives in the memory
// of the stage that receives it. One message arrives before it is asked for, but gradients of activations: nobody is
// ahead with those.
// Ownership: owns its end; the allocators outlive it.
// Threads:   one, for both ends.
#ifndef STAGECOACH_STAGE_TESTING_COPYING_LINK_H_
#define STAGECOACH_STAGE_TESTING_COPYING_LINK_H_

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/check.h"
#include "stage/link/link.h"

namespace stagecoach {

class CopyingLink final : public Link {
 public:
  // memory: of the stage at this end; asked for when something arrives.
  CopyingLink(std::unique_ptr<Link> link, Allocator* wire, std::function<Allocator&()> memory)
      : link_(std::move(link)), wire_(wire), memory_(std::move(memory)) {
    link_->SetReadyCallback([this] { Ready(); });
  }
  ~CopyingLink() override { link_->SetReadyCallback(nullptr); }

  bool TrySend(TensorMessage&& message) override {
    TensorMessage copy = message;
    Copy(*wire_, &copy.tensors);
    if (!link_->TrySend(std::move(copy))) return false;
    message.tensors.clear();
    return true;
  }
  std::optional<TensorMessage> TryReceive() override {
    TakeNext();
    if (next_.has_value() && !arrived_) Arrive();
    std::optional<TensorMessage> message = std::exchange(next_, std::nullopt);
    arrived_ = false;
    TakeNext();
    return message;
  }
  absl::Status status() const override { return link_->status(); }
  void Close(absl::Status reason) override { link_->Close(std::move(reason)); }
  void SetReadyCallback(std::function<void()> callback) override {
    callback_ = std::move(callback);
  }
  LinkStatistics statistics() const override { return link_->statistics(); }

 private:
  static void Copy(Allocator& memory, Tensors* tensors) {
    for (Tensor& tensor : *tensors) {
      auto copy = MakeTensor(memory, MemoryKind::kActivations, tensor.dtype(), tensor.shape());
      CHECK_OK(copy.status());
      std::memcpy(copy->raw(), tensor.raw(), static_cast<size_t>(tensor.bytes()));
      tensor = *std::move(copy);
    }
  }
  void Arrive() {
    Copy(memory_(), &next_->tensors);
    arrived_ = true;
  }
  void TakeNext() {
    if (!next_.has_value()) next_ = link_->TryReceive();
    if (next_.has_value() && !arrived_ && next_->kind != MessageKind::kGradient) Arrive();
  }
  void Ready() {
    TakeNext();
    if (callback_) callback_();
  }

  const std::unique_ptr<Link> link_;
  Allocator* const wire_;
  const std::function<Allocator&()> memory_;
  std::optional<TensorMessage> next_;
  bool arrived_ = false;  // it is in the memory of the stage
  std::function<void()> callback_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TESTING_COPYING_LINK_H_
