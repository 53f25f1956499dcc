#include <memory>
#include <optional>
#include <utility>

#include "stage/link/grpc/link_core.h"

namespace stagecoach {
namespace {

class CoreLink final : public Link {
 public:
  explicit CoreLink(std::shared_ptr<LinkCore> core) : core_(std::move(core)) {}
  ~CoreLink() override {
    core_->SetReadyCallback(nullptr);
    core_->Close(absl::CancelledError("this end of the link was destroyed"));
    core_->Detach();
  }
  bool TrySend(TensorMessage&& message) override { return core_->TrySend(std::move(message)); }
  std::optional<TensorMessage> TryReceive() override { return core_->TryReceive(); }
  absl::Status status() const override { return core_->status(); }
  void Close(absl::Status reason) override { core_->Close(reason); }
  void SetReadyCallback(std::function<void()> callback) override {
    core_->SetReadyCallback(std::move(callback));
  }
  LinkStatistics statistics() const override { return core_->statistics(); }

 private:
  const std::shared_ptr<LinkCore> core_;
};

}  // namespace

std::unique_ptr<Link> LinkOver(std::shared_ptr<LinkCore> core) {
  return std::make_unique<CoreLink>(std::move(core));
}

}  // namespace stagecoach
