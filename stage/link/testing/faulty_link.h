// Link doubles for tests: a link that stalls or closes on command, and a connector that hands them
// out.
// Threads:   as Link; the switches may be turned from any thread.
#ifndef STAGECOACH_STAGE_LINK_TESTING_FAULTY_LINK_H_
#define STAGECOACH_STAGE_LINK_TESTING_FAULTY_LINK_H_

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "stage/link/link.h"

namespace stagecoach {

// The faults to inject, shared by the test and its links.
struct LinkFaults {
  std::atomic<bool> stalled{false};      // no message arrives or is accepted, without an error
  std::atomic<int64_t> close_after{-1};  // messages received before the link breaks; -1: never
};

class FaultyLink final : public Link {
 public:
  FaultyLink(std::unique_ptr<Link> link, std::shared_ptr<LinkFaults> faults)
      : link_(std::move(link)), faults_(std::move(faults)) {}

  bool TrySend(TensorMessage&& message) override {
    return !faults_->stalled && link_->TrySend(std::move(message));
  }
  std::optional<TensorMessage> TryReceive() override {
    if (faults_->stalled) return std::nullopt;
    if (faults_->close_after == 0) {
      link_->Close(absl::UnavailableError("connection reset by the test"));
      return std::nullopt;
    }
    std::optional<TensorMessage> message = link_->TryReceive();
    if (message.has_value()) CountDown();
    return message;
  }
  absl::Status status() const override { return link_->status(); }
  void Close(absl::Status reason) override { link_->Close(std::move(reason)); }
  void SetReadyCallback(std::function<void()> callback) override {
    link_->SetReadyCallback(std::move(callback));
  }
  LinkStatistics statistics() const override { return link_->statistics(); }

 private:
  void CountDown() {  // both ends count
    int64_t left = faults_->close_after;
    while (left > 0 && !faults_->close_after.compare_exchange_weak(left, left - 1)) {
    }
  }

  const std::unique_ptr<Link> link_;
  const std::shared_ptr<LinkFaults> faults_;
};

// Wraps both ends of the boundary below `upstream` with one set of faults; the others are left
// alone.
class FaultyConnector final : public LinkConnector {
 public:
  FaultyConnector(LinkConnector* connector, CellId upstream, std::shared_ptr<LinkFaults> faults)
      : connector_(connector), upstream_(upstream), faults_(std::move(faults)) {}

  std::unique_ptr<Link> Dial(const std::string& address, const BoundaryId& boundary,
                             Allocator& allocator, int64_t most_message_bytes) override {
    return Wrap(boundary, connector_->Dial(address, boundary, allocator, most_message_bytes));
  }
  std::unique_ptr<Link> Accept(const BoundaryId& boundary, const std::string& upstream_name,
                               Allocator& allocator, int64_t most_message_bytes) override {
    return Wrap(boundary,
                connector_->Accept(boundary, upstream_name, allocator, most_message_bytes));
  }

 private:
  std::unique_ptr<Link> Wrap(const BoundaryId& boundary, std::unique_ptr<Link> link) {
    if (boundary.above != upstream_) return link;
    return std::make_unique<FaultyLink>(std::move(link), faults_);
  }

  LinkConnector* const connector_;
  const CellId upstream_;
  const std::shared_ptr<LinkFaults> faults_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LINK_TESTING_FAULTY_LINK_H_
