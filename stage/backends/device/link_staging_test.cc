// Copies beside a compute stream: each test makes one of the streams late and looks at the values.
#include "stage/backends/device/link_staging.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage/backends/device/device_memory.h"
#include "stage/backends/device/testing/fake_device_api.h"

namespace stagecoach {
namespace {

class LinkStagingTest : public ::testing::Test {
 protected:
  LinkStagingTest() {
    api_->CreateStream(&compute_);
    staging_.emplace(api_, compute_, device_.get(), fault_);
  }
  static Tensor Vector(Allocator& allocator) {
    return *MakeTensor(allocator, MemoryKind::kActivations, DType::kF32, Shape{4});
  }
  // A kernel that is slower than everything else.
  void Compute(std::function<void()> kernel) { api_->Queue(std::move(kernel), compute_); }
  static void Set(float* data, float value) { data[3] = value; }

  const std::shared_ptr<FakeDeviceApi> api_ = std::make_shared<FakeDeviceApi>();
  const std::shared_ptr<DeviceFault> fault_ = std::make_shared<DeviceFault>(api_, 1);
  const std::unique_ptr<Allocator> device_ = MakeDeviceAllocator(api_, 1, 0, fault_);
  const std::unique_ptr<Allocator> pinned_ = MakePinnedAllocator(api_, 1, fault_);
  DeviceStream compute_ = nullptr;
  std::optional<LinkStaging> staging_;
};

TEST_F(LinkStagingTest, SendsWhatWasComputedBeforeAndNobodyWaits) {
  Tensor source = Vector(*device_), target = Vector(*pinned_);
  Set(source.data<float>(), 0.0f);
  int woken = 0;
  staging_->OnDone([&] { ++woken; });
  Compute([&] { Set(source.data<float>(), 5.0f); });
  const auto copy = staging_->ToLink(source, target);
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_FALSE(*staging_->Done(*copy)) << "a link must not send what is not there yet";
  EXPECT_EQ(woken, 0);
  api_->RunAll();
  EXPECT_EQ(woken, 1);
  EXPECT_TRUE(*staging_->Done(*copy));
  EXPECT_EQ(target.data<float>()[3], 5.0f);
}

TEST_F(LinkStagingTest, ASentTensorIsNotHandedOutBeforeItsCopyHasRun) {
  Tensor source = Vector(*device_), target = Vector(*pinned_);
  Set(source.data<float>(), 1.0f);
  ASSERT_TRUE(staging_->ToLink(source, target).ok());
  source.Reset();  // the executor has no use for it any more
  api_->SynchronizeStream(compute_);
  Tensor next = Vector(*device_);
  Set(next.data<float>(), 2.0f);  // computed while the copy is late
  api_->RunAll();
  EXPECT_EQ(target.data<float>()[3], 1.0f);
}

TEST_F(LinkStagingTest, ComputesOnAReceivedTensorWhenItIsThere) {
  Tensor received = Vector(*pinned_);
  Set(received.data<float>(), 7.0f);
  const auto tensor = staging_->FromLink(received);
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  float seen = 0;
  Compute([&] { seen = tensor->data<float>()[3]; });
  api_->SynchronizeStream(compute_);
  EXPECT_EQ(seen, 7.0f) << "the compute stream must wait for the copy";
}

TEST_F(LinkStagingTest, DoesNotOverwriteWhatQueuedWorkStillReads) {
  for (int message = 0; message < 40; ++message) {
    api_->order_seed = static_cast<uint64_t>(message);
    Tensor old = Vector(*device_);
    float* const data = old.data<float>();
    float seen = 0;
    Compute([=] { Set(data, 3.0f); });
    Compute([=, &seen] { seen = data[3]; });
    old.Reset();  // to the cache, with its reader still queued
    Tensor received = Vector(*pinned_);
    Set(received.data<float>(), 7.0f);
    const auto tensor = staging_->FromLink(received);
    ASSERT_TRUE(tensor.ok());
    // The copies run as early as they may.
    const size_t before = api_->queued();
    for (size_t i = 0; i < before; ++i) api_->RunSome(1);
    api_->RunAll();
    EXPECT_EQ(seen, 3.0f) << "message " << message;
    EXPECT_EQ(tensor->data<float>()[3], 7.0f);
  }
}

TEST_F(LinkStagingTest, TakesMemoryAheadSoThatACopyMayPassQueuedWork) {
  bool passed = false;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    api_->order_seed = seed;
    Tensor received = Vector(*pinned_);
    ASSERT_TRUE(staging_->FromLink(received).ok());
    api_->RunAll();
    bool computed = false;
    Compute([&] { computed = true; });
    Set(received.data<float>(), 9.0f);
    const auto tensor = staging_->FromLink(received);
    ASSERT_TRUE(tensor.ok());
    float* const data = tensor->data<float>();
    Set(data, 0.0f);
    while (!computed) {
      api_->RunSome(1);
      passed = passed || (data[3] == 9.0f && !computed);
    }
    api_->RunAll();
    EXPECT_EQ(data[3], 9.0f);
  }
  EXPECT_TRUE(passed) << "copies wait for everything: nothing overlaps";
}

TEST_F(LinkStagingTest, HoldsAReceivedMessageUntilItWasRead) {
  Tensor received = Vector(*pinned_);
  Set(received.data<float>(), 7.0f);
  const auto target = staging_->FromLink(received);
  ASSERT_TRUE(target.ok());
  const std::byte* at = received.raw();
  received.Reset();
  Tensor next = Vector(*pinned_);  // the link's next message
  EXPECT_NE(next.raw(), at) << "the copy has not run, its source was handed out";
  Set(next.data<float>(), 8.0f);
  api_->RunAll();
  EXPECT_EQ(target->data<float>()[3], 7.0f);
  ASSERT_TRUE(staging_->FromLink(next).ok());
  EXPECT_EQ(staging_->held(), 1u) << "what has run is let go";
}

// Memory is reused at once, streams go on in any order, and every value arrives.
TEST_F(LinkStagingTest, MovesEveryValueWhateverStreamIsLate) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    api_->order_seed = seed;
    std::vector<Tensor> sent;
    for (int i = 0; i < 6; ++i) {
      Tensor message = Vector(*pinned_);
      Set(message.data<float>(), static_cast<float>(i));
      const auto input = staging_->FromLink(message);
      ASSERT_TRUE(input.ok());
      message.Reset();
      Tensor output = Vector(*device_);
      Compute([from = input->data<float>(), to = output.data<float>()] {
        Set(to, from[3] + 10.0f);
        Set(from, -1.0f);  // as whoever gets the memory next would
      });
      sent.push_back(Vector(*pinned_));
      ASSERT_TRUE(staging_->ToLink(output, sent.back()).ok());
      api_->RunSome(static_cast<int>(seed % 5));
    }
    api_->RunAll();
    for (int i = 0; i < 6; ++i) {
      EXPECT_EQ(sent[i].data<float>()[3], static_cast<float>(i) + 10.0f) << "seed " << seed;
    }
    staging_->End();
  }
  EXPECT_EQ(staging_->held(), 0u);
}

TEST_F(LinkStagingTest, GivesUpWhatItHoldsBeforeMemoryIsRefused) {
  auto device = MakeDeviceAllocator(api_, 1, 2048, fault_);
  LinkStaging staging(api_, compute_, device.get(), fault_);
  device->SetRelief([&] { return staging.Relieve([] {}); });
  Tensor source = Vector(*device), target = Vector(*pinned_);
  Set(source.data<float>(), 4.0f);
  ASSERT_TRUE(staging.ToLink(source, target).ok());
  ASSERT_TRUE(staging.FromLink(target).ok());  // holds memory ahead
  source.Reset();
  const auto most = device->Allocate(2048, MemoryKind::kActivations);
  EXPECT_TRUE(most.ok()) << most.status();
  EXPECT_EQ(target.data<float>()[3], 4.0f) << "after the copy that read it had run";
  device->SetRelief(nullptr);
}

// A place ahead that a full card had no room for stopped the host until the card had done all.
TEST_F(LinkStagingTest, NobodyWaitsForACardThatHasNothingToGiveUp) {
  auto device = MakeDeviceAllocator(api_, 1, 1024, fault_);
  LinkStaging staging(api_, compute_, device.get(), fault_);
  int waits = 0;
  device->SetRelief([&] { return staging.Relieve([&] { ++waits; }); });
  Tensor source = Vector(*device), target = Vector(*pinned_);
  ASSERT_TRUE(staging.FromLink(target).ok());  // there is room for it, and none ahead
  EXPECT_EQ(waits, 0) << "for a place that it can do without";
  EXPECT_FALSE(device->Allocate(1024, MemoryKind::kActivations).ok());
  EXPECT_EQ(waits, 0) << "nothing is held";
  ASSERT_TRUE(staging.ToLink(source, target).ok());
  source.Reset();
  EXPECT_TRUE(device->Allocate(1024, MemoryKind::kActivations).ok());
  EXPECT_EQ(waits, 1) << "a copy holds its source until it has run";
  device->SetRelief(nullptr);
}

TEST_F(LinkStagingTest, FailsWithTheFaultAndDoesNotHang) {
  Tensor source = Vector(*device_), target = Vector(*pinned_);
  const auto copy = staging_->ToLink(source, target);
  ASSERT_TRUE(copy.ok());
  api_->fault = FakeDeviceApi::kIllegalAddress;
  const absl::Status status = staging_->Done(*copy).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
  api_->fault = 0;
  EXPECT_EQ(staging_->ToLink(source, target).status(), status) << "the first error stays";
  EXPECT_EQ(staging_->FromLink(target).status(), status);
}

}  // namespace
}  // namespace stagecoach
