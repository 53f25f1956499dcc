// CopyingLink: an end of a boundary in one process, for stages with memory of their own, as in
// separate processes. A message takes the most memory that a real link may take: from the send to
// the receive it is in the memory of both stages.
// Ownership: owns its end; the allocators outlive both.
// Threads:   one, for both ends.
#ifndef STAGECOACH_STAGE_TESTING_COPYING_LINK_H_
#define STAGECOACH_STAGE_TESTING_COPYING_LINK_H_

#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/errors/check.h"
#include "stage/link/link.h"
#include "stage/link/testing/in_process_link.h"

namespace stagecoach {

class CopyingLink final : public Link {
 public:
  using Memory = std::function<Allocator&()>;  // asked for when something arrives
  static std::pair<std::unique_ptr<Link>, std::unique_ptr<Link>> MakePair(
      const LinkOptions& options, Memory upstream, Memory downstream) {
    auto [up, down] = MakeInProcessLinkPair(options);
    const auto rising = std::make_shared<UnderWay>(), falling = std::make_shared<UnderWay>();
    return {std::unique_ptr<Link>(
                new CopyingLink(std::move(up), std::move(downstream), falling, rising)),
            std::unique_ptr<Link>(
                new CopyingLink(std::move(down), std::move(upstream), rising, falling))};
  }

  bool TrySend(TensorMessage&& message) override {
    Tensors tensors = std::exchange(message.tensors, {});  // the link itself carries none
    if (!link_->TrySend(std::move(message))) {
      message.tensors = std::move(tensors);
      return false;
    }
    Tensors copies = Copied(tensors);
    sent_->push_back({std::move(tensors), std::move(copies)});
    return true;
  }
  std::optional<TensorMessage> TryReceive() override {
    std::optional<TensorMessage> message = link_->TryReceive();
    if (!message.has_value()) return std::nullopt;
    CHECK(!received_->empty()) << "a message without its tensors";
    message->tensors = std::move(received_->front().arrived);
    received_->pop_front();
    return message;
  }
  absl::Status status() const override { return link_->status(); }
  void Close(absl::Status reason) override { link_->Close(std::move(reason)); }
  void SetReadyCallback(std::function<void()> callback) override {
    link_->SetReadyCallback(std::move(callback));
  }
  LinkStatistics statistics() const override { return link_->statistics(); }

 private:
  struct Both {
    Tensors sent, arrived;
  };
  using UnderWay = std::deque<Both>;

  CopyingLink(std::unique_ptr<Link> link, Memory of_peer, std::shared_ptr<UnderWay> sent,
              std::shared_ptr<UnderWay> received)
      : link_(std::move(link)),
        of_peer_(std::move(of_peer)),
        sent_(std::move(sent)),
        received_(std::move(received)) {}

  Tensors Copied(const Tensors& tensors) const {
    Tensors copies;
    for (const Tensor& tensor : tensors) {
      auto copy = MakeTensor(of_peer_(), MemoryKind::kActivations, tensor.dtype(), tensor.shape());
      CHECK_OK(copy.status());
      std::memcpy(copy->raw(), tensor.raw(), static_cast<size_t>(tensor.bytes()));
      copies.push_back(*std::move(copy));
    }
    return copies;
  }

  const std::unique_ptr<Link> link_;
  const Memory of_peer_;
  const std::shared_ptr<UnderWay> sent_, received_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TESTING_COPYING_LINK_H_
