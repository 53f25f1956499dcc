#include "stage/backends/device/device_memory.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stagecoach {
namespace {

constexpr int64_t kDeviceGranule = 512;
constexpr int64_t kPinnedGranule = 4096;

// What both kinds share; the allocator's lock guards last_code_.
class CardMemory : public MemorySource {
 public:
  CardMemory(std::shared_ptr<DeviceApi> api, int ordinal, std::shared_ptr<DeviceFault> fault)
      : api_(std::move(api)), ordinal_(ordinal), fault_(std::move(fault)) {}

  std::byte* Take(int64_t bytes) final {
    void* data = nullptr;
    last_code_ = api_->SetDevice(ordinal_);
    if (last_code_ == device_code::kSuccess) last_code_ = Allocate(bytes, &data);
    if (last_code_ == device_code::kSuccess) return static_cast<std::byte*>(data);
    if (last_code_ != device_code::kOutOfMemory) fault_->Note(last_code_, "allocating memory");
    return nullptr;
  }

  void Give(std::byte* data) final {
    int code = api_->SetDevice(ordinal_);
    if (code == device_code::kSuccess) code = Free(data);
    fault_->Note(code, "freeing memory");
  }

 protected:
  virtual int Allocate(int64_t bytes, void** data) = 0;
  virtual int Free(void* data) = 0;
  DeviceApi& api() const { return *api_; }
  int ordinal() const { return ordinal_; }
  std::string LastError() const {
    return absl::StrCat(api_->ErrorName(last_code_), ": ", api_->ErrorText(last_code_));
  }

 private:
  const std::shared_ptr<DeviceApi> api_;
  const int ordinal_;
  const std::shared_ptr<DeviceFault> fault_;
  int last_code_ = device_code::kSuccess;
};

class DeviceMemory final : public CardMemory {
 public:
  using CardMemory::CardMemory;

  std::string Refusal() const override {
    return absl::StrCat("cuda:", ordinal(), " refused (", LastError(), ")");
  }
  std::string Explain(const MemoryUse& use) const override {
    std::string text = "; held:";
    for (int k = 0; k < kMemoryKinds; ++k) {
      absl::StrAppend(&text, k > 0 ? ", " : " ", MemoryKindName(static_cast<MemoryKind>(k)), " ",
                      use.current[k]);
    }
    absl::StrAppend(&text, "; cached ", use.cached);
    absl::StrAppend(&text, use.limit > 0 ? absl::StrCat(", limit ", use.limit) : ", no limit");
    int64_t free = 0, total = 0;
    if (api().MemoryInfo(&free, &total) == device_code::kSuccess) {
      absl::StrAppend(&text, "; cuda:", ordinal(), " has ", free, " of ", total, " bytes free");
    }
    return absl::StrCat(text,
                        "; use more stages, smaller micro-batches or rematerialization, or raise "
                        "--memory-limit-bytes");
  }

 private:
  int Allocate(int64_t bytes, void** data) override { return api().Allocate(bytes, data); }
  int Free(void* data) override { return api().Free(data); }
};

class PinnedMemory final : public CardMemory {
 public:
  using CardMemory::CardMemory;

  std::string Refusal() const override {
    return absl::StrCat("the host refused to pin (", LastError(), ")");
  }
  std::string Explain(const MemoryUse&) const override {
    return "; pinned memory carries what links send: free memory of this machine, or raise the "
           "container's limit";
  }

 private:
  int Allocate(int64_t bytes, void** data) override { return api().AllocatePinned(bytes, data); }
  int Free(void* data) override { return api().FreePinned(data); }
};

}  // namespace

absl::Status CheckMemoryLimit(DeviceApi& api, int ordinal, int64_t limit_bytes) {
  if (limit_bytes == 0) return absl::OkStatus();
  int64_t free = 0, total = 0;
  const int code = api.MemoryInfo(&free, &total);
  if (code != device_code::kSuccess) {
    return DeviceError(api, ordinal, code, "asking for the card's free memory");
  }
  if (limit_bytes <= free) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "device cuda:", ordinal, ": --memory-limit-bytes=", limit_bytes, ", but the card has ", free,
      " of ", total, " bytes free; ",
      limit_bytes > total ? "give a lower limit"
                          : "end what holds the rest (nvidia-smi shows it) or give a lower limit",
      "; the limits of all processes on a card and about 500 MB for each of them must fit it"));
}

std::unique_ptr<Allocator> MakeDeviceAllocator(std::shared_ptr<DeviceApi> api, int ordinal,
                                               int64_t limit_bytes,
                                               std::shared_ptr<DeviceFault> fault, Reuse reuse) {
  return MakeCachingAllocator(
      std::make_shared<DeviceMemory>(std::move(api), ordinal, std::move(fault)), limit_bytes,
      kDeviceGranule, reuse);
}

std::unique_ptr<Allocator> MakePinnedAllocator(std::shared_ptr<DeviceApi> api, int ordinal,
                                               std::shared_ptr<DeviceFault> fault) {
  return MakeCachingAllocator(
      std::make_shared<PinnedMemory>(std::move(api), ordinal, std::move(fault)), 0, kPinnedGranule);
}

}  // namespace stagecoach
