#include "stage/backends/device/device_memory.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "base/errors/check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage/backends/device/testing/fake_device_api.h"
#include "stage/tensor/tensor.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr MemoryKind kActivations = MemoryKind::kActivations;

class DeviceMemoryTest : public ::testing::Test {
 protected:
  std::unique_ptr<Allocator> Device(int64_t limit) {
    return MakeDeviceAllocator(api_, 1, limit, fault_);
  }
  Tensor Vector(Allocator& allocator, int64_t elements) {
    return *MakeTensor(allocator, kActivations, DType::kF32, Shape{elements});
  }

  const std::shared_ptr<FakeDeviceApi> api_ = std::make_shared<FakeDeviceApi>();
  const std::shared_ptr<DeviceFault> fault_ = std::make_shared<DeviceFault>(api_, 1);
};

TEST_F(DeviceMemoryTest, AccountsByKindAndAsksTheCardOncePerSize) {
  auto device = Device(0);
  {
    auto a = *device->Allocate(1000, MemoryKind::kParameters);
    auto b = *device->Allocate(1, kActivations);
    EXPECT_EQ(api_->current, 1) << "on this thread another card may have been current";
    EXPECT_EQ(device->Use().current[static_cast<int>(MemoryKind::kParameters)], 1024);
    EXPECT_EQ(device->Use().total_current, 1024 + 512);
  }
  EXPECT_EQ(device->Use().cached, 1024 + 512);
  EXPECT_EQ(device->Use().total_peak, 1024 + 512);
  auto again = *device->Allocate(1024, kActivations);
  EXPECT_EQ(api_->device_allocations, 2) << "the cache serves every kind";
  device->ReleaseCached();
  EXPECT_EQ(api_->used, 1024);
}

TEST_F(DeviceMemoryTest, SaysWhoHoldsWhatWhenOverTheLimit) {
  auto device = Device(8192);
  auto weights = *device->Allocate(4096, MemoryKind::kParameters);
  auto moments = *device->Allocate(2048, MemoryKind::kOptimizer);
  const absl::Status refused = device->Allocate(4096, kActivations).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("memory for activations: 4096 bytes asked, 6144 in use, limit 8192"),
                    HasSubstr("held: parameters 4096, gradients 0, optimizer 2048"),
                    HasSubstr("limit 8192; cuda:1 has 1042432 of 1048576 bytes free"),
                    HasSubstr("--memory-limit-bytes")));
  EXPECT_TRUE(fault_->ok());
}

TEST_F(DeviceMemoryTest, EmptiesItsCacheBeforeItGivesUpOnTheCard) {
  auto device = Device(0);
  static_cast<void>(*device->Allocate(700 << 10, kActivations));
  auto other = device->Allocate(600 << 10, kActivations);
  EXPECT_TRUE(other.ok()) << "cached bytes of another size must make room: " << other.status();
  const absl::Status refused = device->Allocate(600 << 10, kActivations).status();
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("cuda:1 refused (cudaErrorMemoryAllocation: out of memory) 614400"),
                    HasSubstr("no limit"), HasSubstr("bytes free")));
  EXPECT_TRUE(fault_->ok()) << "a full card is no broken card";
}

TEST_F(DeviceMemoryTest, NotesAFaultOfTheCard) {
  auto device = Device(0);
  api_->fault = FakeDeviceApi::kIllegalAddress;
  EXPECT_FALSE(device->Allocate(64, kActivations).ok());
  EXPECT_THAT(std::string(fault_->status().message()), HasSubstr("cudaErrorIllegalAddress"));
}

TEST_F(DeviceMemoryTest, PinsHostMemoryOnceAndSaysWhenItMayNot) {
  auto pinned = MakePinnedAllocator(api_, 0, fault_);
  static_cast<void>(*pinned->Allocate(5000, kActivations));
  static_cast<void>(*pinned->Allocate(5000, kActivations));
  EXPECT_EQ(api_->pinned_allocations, 1);
  api_->pinned_code = device_code::kOutOfMemory;
  EXPECT_THAT(std::string(pinned->Allocate(1 << 20, kActivations).status().message()),
              AllOf(HasSubstr("the host refused to pin"), HasSubstr("1048576")));
}

TEST_F(DeviceMemoryTest, LetsBuffersOutliveAllocators) {
  Tensor tensor = Vector(*Device(0), 16);
  tensor.Reset();
  EXPECT_TRUE(api_->blocks.empty());
}

TEST_F(DeviceMemoryTest, TellsAtTheStartThatALimitDoesNotFit) {
  api_->used = 1 << 19;  // of another process
  EXPECT_TRUE(CheckMemoryLimit(*api_, 1, 0).ok());
  EXPECT_TRUE(CheckMemoryLimit(*api_, 1, 1 << 19).ok());
  const absl::Status full = CheckMemoryLimit(*api_, 1, (1 << 19) + 1);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()),
              AllOf(HasSubstr("device cuda:1: --memory-limit-bytes=524289"),
                    HasSubstr("524288 of 1048576 bytes free"), HasSubstr("nvidia-smi")));
  EXPECT_THAT(std::string(CheckMemoryLimit(*api_, 1, 2 << 20).message()),
              AllOf(HasSubstr("2097152"), HasSubstr("give a lower limit")));
  api_->used = 0;
  api_->fault = FakeDeviceApi::kIllegalAddress;
  EXPECT_EQ(CheckMemoryLimit(*api_, 1, 1).code(), absl::StatusCode::kInternal);
}

TEST_F(DeviceMemoryTest, AsksForReliefBeforeItRefuses) {
  auto device = Device(4096);
  Tensor spare = Vector(*device, 768);
  int asked = 0;
  device->SetRelief([&] { return ++asked, spare.Reset(), true; });
  EXPECT_TRUE(device->Allocate(2048, kActivations).ok()) << "what was held ahead must make room";
  EXPECT_FALSE(device->Allocate(8192, kActivations).ok());
  EXPECT_EQ(asked, 2) << "once for each refusal";
}

// The order in which a step lets go of its tensors is not that in which the next one asks.
TEST(DeviceMemory, TheLowestAddressFirstGivesEveryStepTheSame) {
  const auto api = std::make_shared<FakeDeviceApi>();
  const auto fault = std::make_shared<DeviceFault>(api, 0);
  const auto addresses_of_a_step = [](Allocator& memory) {
    std::vector<std::shared_ptr<Buffer>> held;
    std::vector<std::byte*> addresses;
    for (int i = 0; i < 5; ++i) {
      held.push_back(*memory.Allocate(700, MemoryKind::kActivations));
      addresses.push_back(held.back()->data());
    }
    for (auto& buffer : held) buffer.reset();  // the first micro-batch first
    return addresses;
  };
  const auto lowest = MakeDeviceAllocator(api, 0, 0, fault, Reuse::kLowest);
  addresses_of_a_step(*lowest);
  const std::vector<std::byte*> second = addresses_of_a_step(*lowest);
  EXPECT_TRUE(std::is_sorted(second.begin(), second.end()));
  EXPECT_EQ(addresses_of_a_step(*lowest), second);
  const auto last = MakeDeviceAllocator(api, 0, 0, fault);
  const std::vector<std::byte*> first = addresses_of_a_step(*last);
  EXPECT_NE(addresses_of_a_step(*last), first);
}

TEST(DeviceMemory, SaysBeforeMemoryGoesBackAndOnlyThen) {
  const auto api = std::make_shared<FakeDeviceApi>();
  const auto fault = std::make_shared<DeviceFault>(api, 0);
  const auto memory = MakeDeviceAllocator(api, 0, 4096, fault);
  size_t blocks = 0;
  int said = 0;
  memory->SetBeforeRelease([&] {
    ++said;
    blocks = api->blocks.size();
  });
  for (int i = 0; i < 3; ++i) CHECK_OK(memory->Allocate(1024, MemoryKind::kActivations).status());
  EXPECT_EQ(said, 0) << "fresh, then cached";
  EXPECT_TRUE(memory->Allocate(3584, MemoryKind::kActivations).ok());
  EXPECT_EQ(said, 1) << "1024 had to make room";
  EXPECT_EQ(blocks, 1u) << "and was still there";
  EXPECT_EQ(memory->Use().total_peak, 3584);
  memory->ReleaseCached();
  EXPECT_EQ(said, 2);
  EXPECT_FALSE(memory->Allocate(8192, MemoryKind::kActivations).ok());
  EXPECT_EQ(said, 3) << "who is asked for relief finds all queued";
}

}  // namespace
}  // namespace stagecoach
