#include "stage/backends/device/device_progress.h"

#include <algorithm>
#include <vector>

#include "base/threads/progress.h"
#include "gtest/gtest.h"
#include "stage/backends/device/testing/fake_device_api.h"

namespace stagecoach {
namespace {

class DeviceProgressTest : public ::testing::Test {
 protected:
  DeviceProgressTest() { api_->CreateStream(&stream_); }
  // Each notes what had been counted when the card came to it.
  void Compute(DeviceProgress& progress, int operations) {
    for (int i = 0; i < operations; ++i) {
      progress.Operation();
      api_->Queue([this] { seen_.push_back(counter_.count()); }, stream_);
    }
  }

  const std::shared_ptr<FakeDeviceApi> api_ = std::make_shared<FakeDeviceApi>();
  const std::shared_ptr<DeviceFault> fault_ = std::make_shared<DeviceFault>(api_, 0);
  DeviceStream stream_ = nullptr;
  ProgressCounter counter_;
  const ProgressScope scope_{&counter_};
  std::vector<uint64_t> seen_;
};

TEST_F(DeviceProgressTest, TicksWhileItsHostWaits) {
  DeviceProgress progress(api_, stream_, fault_);
  for (int step = 0; step < 2; ++step) {
    seen_.clear();
    Compute(progress, 80);
    EXPECT_TRUE(seen_.empty()) << "nobody waits for what is queued";
    progress.Wait("waiting");
    ASSERT_EQ(seen_.size(), 80u);
    for (const uint64_t number : seen_) {
      EXPECT_LE(std::count(seen_.begin(), seen_.end(), number), DeviceProgress::kOperationsPerEvent)
          << "the card looked stuck";
    }
  }
  EXPECT_EQ(api_->events.size(), 10u) << "events are used again";
}

TEST_F(DeviceProgressTest, ALookTellsWhatHasRunAndDoesNotWait) {
  DeviceProgress progress(api_, stream_, fault_);
  Compute(progress, 20);
  progress.Look();
  EXPECT_EQ(counter_.count(), 0u);
  EXPECT_TRUE(seen_.empty());
  api_->RunSome(12);  // past the first of the two events
  progress.Look();
  EXPECT_EQ(counter_.count(), 1u);
  progress.Look();
  EXPECT_EQ(counter_.count(), 1u) << "it stands still";
  api_->RunAll();
  progress.Look();
  EXPECT_EQ(counter_.count(), 2u);
}

TEST_F(DeviceProgressTest, ABrokenCardEndsTheWait) {
  DeviceProgress progress(api_, stream_, fault_);
  Compute(progress, 20);
  api_->fault = FakeDeviceApi::kIllegalAddress;
  progress.Wait("waiting for what was queued");
  EXPECT_EQ(fault_->status().code(), absl::StatusCode::kInternal);
}

TEST_F(DeviceProgressTest, NoMemoryForAnEventIsNoErrorOfTheJob) {
  DeviceProgress progress(api_, stream_, fault_);
  api_->event_code = device_code::kOutOfMemory;
  Compute(progress, 20);
  progress.Wait("waiting");
  EXPECT_EQ(seen_.size(), 20u);
  EXPECT_TRUE(fault_->ok());
}

// Many calls in one launch: there is an event behind it, and no more than that.
TEST_F(DeviceProgressTest, AGraphOfManyOperationsTicksOnce) {
  DeviceProgress progress(api_, stream_, fault_);
  for (int graph = 0; graph < 3; ++graph) {
    api_->Queue([] {}, stream_);
    progress.Operations(5 * DeviceProgress::kOperationsPerEvent);
  }
  api_->RunAll();
  progress.Look();
  EXPECT_EQ(counter_.count(), 3u);
}

}  // namespace
}  // namespace stagecoach
