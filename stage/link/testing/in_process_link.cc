// Two queues behind one mutex. Callbacks are copied under the mutex and called outside it.
#include "stage/link/testing/in_process_link.h"

#include <array>
#include <deque>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"

namespace stagecoach {
namespace {

using Callback = std::shared_ptr<const std::function<void()>>;

void Notify(const Callback& callback) {
  if (callback != nullptr && *callback) (*callback)();
}

// What both ends share. Index 0 and 1 are the ends; queues[i] holds what end i will receive.
struct Channel {
  explicit Channel(int capacity) : capacity(static_cast<size_t>(capacity)) {
    CHECK(capacity >= 1) << "without a buffer two neighbours can both be stuck sending";
  }

  const size_t capacity;
  std::mutex mutex;  // guards what follows
  std::array<std::deque<TensorMessage>, 2> queues;
  std::array<LinkStatistics, 2> statistics;
  std::array<absl::Status, 2> closed;  // both ok, or both not
  std::array<Callback, 2> callbacks;
};

class InProcessLink final : public Link {
 public:
  InProcessLink(std::shared_ptr<Channel> channel, int end)
      : channel_(std::move(channel)), self_(end), peer_(1 - end) {}

  ~InProcessLink() override {
    SetReadyCallback(nullptr);
    Close(absl::CancelledError("this end of the link was destroyed"));
  }

  bool TrySend(TensorMessage&& message) override {
    Callback callback;
    {
      std::lock_guard<std::mutex> lock(channel_->mutex);
      std::deque<TensorMessage>& queue = channel_->queues[peer_];
      if (!channel_->closed[self_].ok() || queue.size() >= channel_->capacity) return false;
      const uint64_t bytes = static_cast<uint64_t>(PayloadBytes(message));
      queue.push_back(std::move(message));
      LinkStatistics& sent = channel_->statistics[self_];
      ++sent.sent_messages;
      sent.sent_bytes += bytes;
      callback = channel_->callbacks[peer_];
    }
    Notify(callback);
    return true;
  }

  std::optional<TensorMessage> TryReceive() override {
    std::optional<TensorMessage> message;
    Callback callback;
    {
      std::lock_guard<std::mutex> lock(channel_->mutex);
      std::deque<TensorMessage>& queue = channel_->queues[self_];
      if (queue.empty()) return std::nullopt;
      message.emplace(std::move(queue.front()));
      queue.pop_front();
      LinkStatistics& received = channel_->statistics[self_];
      ++received.received_messages;
      received.received_bytes += static_cast<uint64_t>(PayloadBytes(*message));
      callback = channel_->callbacks[peer_];  // there is room again
    }
    Notify(callback);
    return message;
  }

  absl::Status status() const override {
    std::lock_guard<std::mutex> lock(channel_->mutex);
    return channel_->closed[self_];
  }

  void Close(absl::Status reason) override {
    CHECK(!reason.ok()) << "a link closes for a reason";
    std::array<std::deque<TensorMessage>, 2> dropped;  // tensors are freed outside the mutex
    std::array<Callback, 2> callbacks;
    {
      std::lock_guard<std::mutex> lock(channel_->mutex);
      if (!channel_->closed[self_].ok()) return;
      channel_->closed[self_] = Annotate(reason, "in-process link closed");
      // Whatever the reason was there, for the neighbour it is a broken link.
      channel_->closed[peer_] = absl::UnavailableError(
          absl::StrCat("in-process link closed by its peer: ", reason.message()));
      dropped.swap(channel_->queues);
      callbacks = channel_->callbacks;
    }
    for (const Callback& callback : callbacks) Notify(callback);
  }

  void SetReadyCallback(std::function<void()> callback) override {
    Callback shared = std::make_shared<const std::function<void()>>(std::move(callback));
    std::lock_guard<std::mutex> lock(channel_->mutex);
    channel_->callbacks[self_].swap(shared);
  }

  LinkStatistics statistics() const override {
    std::lock_guard<std::mutex> lock(channel_->mutex);
    LinkStatistics result = channel_->statistics[self_];
    result.inflight_messages = channel_->queues[peer_].size();
    return result;
  }

 private:
  const std::shared_ptr<Channel> channel_;
  const int self_, peer_;
};

}  // namespace

std::pair<std::unique_ptr<Link>, std::unique_ptr<Link>> MakeInProcessLinkPair(
    const LinkOptions& options) {
  auto channel = std::make_shared<Channel>(options.capacity_messages);
  return {std::make_unique<InProcessLink>(channel, 0), std::make_unique<InProcessLink>(channel, 1)};
}

}  // namespace stagecoach
