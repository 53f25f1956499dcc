// StagedBackend: the reference back end on a made-up card. Its tensors are in the card's memory,
// links carry pinned memory, and copies between the two are queued. An operation on any other
// memory than the card's fails. So tests find a boundary that was not staged.
#ifndef STAGECOACH_STAGE_TESTING_STAGED_BACKEND_H_
#define STAGECOACH_STAGE_TESTING_STAGED_BACKEND_H_

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/errors/check.h"
#include "base/errors/status.h"
#include "stage/backends/backend.h"
#include "stage/backends/device/device_clock.h"
#include "stage/backends/device/device_memory.h"
#include "stage/backends/device/device_progress.h"
#include "stage/backends/device/link_staging.h"
#include "stage/backends/device/testing/fake_device_api.h"
#include "stage/backends/kernel_table.h"

namespace stagecoach {

class StagedBackend final : public Backend {
 public:
  // Copies run late, in an order drawn from the seed, and only when a caller queries them.
  explicit StagedBackend(uint64_t order_seed = 0) {
    api_->total = int64_t{1} << 30;
    api_->order_seed = order_seed;
    api_->run_per_query = 1;
    api_->CreateStream(&stream_);
    api_->CreateStream(&busy_);
    staging_ = std::make_unique<LinkStaging>(api_, stream_, device_.get(), fault_);
    progress_ = std::make_unique<DeviceProgress>(api_, busy_, fault_);
    device_->SetRelief(
        [this] { return staging_->Relieve([this] { progress_->Wait("waiting for memory"); }); });
  }
  ~StagedBackend() override { device_->SetRelief(nullptr); }

  std::string fingerprint() const override { return inner_->fingerprint(); }
  std::optional<CardProfile> Card() const override { return card_; }
  // Sets the card's profile; the default says only that it is a card.
  void BeCard(const CardProfile& card) { card_ = card; }
  // A card's limits, or smaller ones that a test sets before a cell is made.
  std::optional<HeadChunkLimits> HeadChunks() const override { return head_chunks_; }
  void CutHeads(const HeadChunkLimits& limits) { head_chunks_ = limits; }
  absl::StatusOr<CallDescription> Describe(const Call& call, const CallTypes& types,
                                           int64_t samples, DType activation) override {
    RETURN_IF_ERROR(CheckKernel(call));
    return inner_->Describe(call, types, samples, activation);
  }
  std::vector<std::string> WithoutKernels() const override { return without_kernels_; }
  // From now on it has no kernels for these operations.
  void LoseKernels(std::vector<std::string> operations) {
    without_kernels_ = std::move(operations);
  }
  Allocator& allocator() override { return *device_; }
  Allocator& link_allocator() override { return *pinned_; }
  absl::StatusOr<Kernel> Prepare(const Call& call, const CallTypes& types,
                                 DType activation) override {
    RETURN_IF_ERROR(CheckKernel(call));
    ASSIGN_OR_RETURN(Kernel kernel, inner_->Prepare(call, types, activation));
    return [this, kernel](const KernelContext& context, const KernelArguments& arguments) {
      for (const Operands* some : {&arguments.inputs, &arguments.outputs, &arguments.adds}) {
        for (size_t i = 0; i < some->size(); ++i) CHECK(OnCard((*some)[i])) << "operand " << i;
      }
      const Operands& first = arguments.inputs.size() > 0    ? arguments.inputs
                              : arguments.outputs.size() > 0 ? arguments.outputs
                                                             : arguments.adds;
      Ready(first[0], first[0]);
      kernel(context, arguments);
    };
  }
  absl::StatusOr<uint64_t> CopyToLink(const Tensor& source, const Tensor& target) override {
    CHECK(OnCard(source) && Pinned(target)) << "to a link";
    ++to_link_;
    return staging_->ToLink(source, target);
  }
  absl::StatusOr<bool> LinkCopyDone(uint64_t copy) override { return staging_->Done(copy); }
  absl::StatusOr<Tensor> CopyFromLink(const Tensor& source) override {
    CHECK(Pinned(source)) << "from a link";
    ++(source.dtype() == DType::kI32 ? ids_ : from_link_);
    return staging_->FromLink(source);
  }
  void OnLinkCopyDone(std::function<void()> wake) override {
    wakes_ = wake != nullptr;
    staging_->OnDone(std::move(wake));
  }
  bool wakes() const { return wakes_; }
  void EndLinkCopies() override { staging_->End(); }
  // From now on its card has a clock, by which an operation takes `nanos_per_operation`.
  void UseClock(int64_t nanos_per_operation) {
    nanos_per_operation_ = nanos_per_operation;
    clock_ = std::make_unique<DeviceClock>(api_, stream_, fault_);
  }
  // From now on its card is slow: each operation queues `pieces` more pieces of work.
  void BeSlow(int pieces, std::function<void()> work) {
    pieces_ = pieces;
    work_ = std::move(work);
  }
  bool MarkTime() override {
    if (clock_ != nullptr) clock_->Mark();
    return clock_ != nullptr;
  }
  std::vector<int64_t> TakeTimes() override {
    return clock_ == nullptr ? std::vector<int64_t>() : clock_->Take();
  }
  void EndCell() override { fault_->ForgetRefusal(); }
  absl::Status Fault() const override { return fault_->lasting(); }
  int to_link() const { return to_link_; }
  int from_link() const { return from_link_; }
  int ids() const { return ids_; }
  int to_host() const { return to_host_; }  // calls of CopyToHost
  int operations() const { return operations_; }
  int synchronized() const { return synchronized_; }
  FakeDeviceApi& api() { return *api_; }

  void Swap(const Tensor& a, const Tensor& b) override {
    Ready(a, b);
    inner_->Swap(a, b);
  }
  void Fill(const Tensor& tensor, float value) override {
    Ready(tensor, tensor);
    inner_->Fill(tensor, value);
  }
  void SquaredNorm(const Tensor& tensor, const Tensor& result) override {
    Ready(tensor, result);
    inner_->SquaredNorm(tensor, result);
  }
  void Convert(const Tensor& source, const Tensor& target) override {
    Ready(source, target);
    inner_->Convert(source, target);
  }
  void CopyFromHost(std::span<const std::byte> source, const Tensor& target) override {
    Ready(target, target);
    inner_->CopyFromHost(source, target);
  }
  void CopyToHost(const Tensor& source, std::span<std::byte> target) override {
    Ready(source, source);
    ++to_host_;
    progress_->Wait("CopyToHost");
    inner_->CopyToHost(source, target);
  }
  absl::Status Synchronize() override {
    ++synchronized_;
    progress_->Wait("waiting for what was queued");
    fault_->Note(api_->SynchronizeStream(stream_), "waiting for what was queued");
    return fault_->status();
  }
  void TellProgress() override { progress_->Look(); }

 private:
  absl::Status CheckKernel(const Call& call) const {
    const auto lost = std::find(without_kernels_.begin(), without_kernels_.end(), call.operation);
    return lost == without_kernels_.end() ? absl::OkStatus() : NoKernel(call, "staged");
  }
  bool OnCard(const Tensor& tensor) const {  // a view begins inside of a block
    const auto after = api_->blocks.upper_bound(tensor.raw());
    if (after == api_->blocks.begin()) return false;
    const auto& [data, bytes] = *std::prev(after);
    return tensor.raw() + tensor.bytes() <= static_cast<std::byte*>(data) + bytes;
  }
  bool Pinned(const Tensor& tensor) const {
    // Memory of this stage's host or its neighbour's, never of a card.
    return !OnCard(tensor);
  }
  void Ready(const Tensor& a, const Tensor& b) {
    CHECK(OnCard(a) && OnCard(b)) << "an operation got memory that its card cannot read";
    api_->SynchronizeStream(stream_);  // runs only the copies that must come before it
    ++operations_;
    api_->now_nanos += nanos_per_operation_;
    for (int i = 0; i < pieces_; ++i) {
      progress_->Operation();
      api_->Queue(work_, busy_);
    }
  }

  const std::unique_ptr<Backend> inner_ = MakeReferenceBackend({});
  const std::shared_ptr<FakeDeviceApi> api_ = std::make_shared<FakeDeviceApi>();
  const std::shared_ptr<DeviceFault> fault_ = std::make_shared<DeviceFault>(api_, 0);
  const std::unique_ptr<Allocator> device_ = MakeDeviceAllocator(api_, 0, 0, fault_);
  const std::unique_ptr<Allocator> pinned_ = MakePinnedAllocator(api_, 0, fault_);
  CardProfile card_;
  std::vector<std::string> without_kernels_;
  HeadChunkLimits head_chunks_ = kCardHeadChunks;
  DeviceStream stream_ = nullptr;
  std::unique_ptr<LinkStaging> staging_;
  std::unique_ptr<DeviceClock> clock_;
  DeviceStream busy_ = nullptr;  // the stream of the pieces
  std::unique_ptr<DeviceProgress> progress_;
  int pieces_ = 0;
  std::function<void()> work_;
  int64_t nanos_per_operation_ = 0;
  int operations_ = 0;
  bool wakes_ = false;
  int to_link_ = 0, from_link_ = 0, ids_ = 0, to_host_ = 0, synchronized_ = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TESTING_STAGED_BACKEND_H_
