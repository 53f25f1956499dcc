#include "stage/backends/device/device_clock.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage/backends/device/testing/fake_device_api.h"

namespace stagecoach {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class DeviceClockTest : public ::testing::Test {
 protected:
  DeviceClockTest() { api_->CreateStream(&stream_); }
  void Compute(int64_t nanos) {
    api_->Queue([this, nanos] { api_->now_nanos += nanos; }, stream_);
  }

  const std::shared_ptr<FakeDeviceApi> api_ = std::make_shared<FakeDeviceApi>();
  const std::shared_ptr<DeviceFault> fault_ = std::make_shared<DeviceFault>(api_, 0);
  DeviceStream stream_ = nullptr;
};

TEST_F(DeviceClockTest, TellsWhenTheCardCameByAndNotWhenTheHostDid) {
  DeviceClock clock(api_, stream_, fault_);
  for (int step = 0; step < 2; ++step) {
    clock.Mark();
    Compute(500);
    clock.Mark();
    clock.Mark();
    Compute(70);
    clock.Mark();
    EXPECT_THAT(clock.Take(), ElementsAre(0, 500, 500, 570));
  }
  EXPECT_EQ(api_->events.size(), 4u) << "events are used again";
  EXPECT_THAT(clock.Take(), IsEmpty());
}

TEST_F(DeviceClockTest, KnowsNothingOfABrokenCard) {
  DeviceClock clock(api_, stream_, fault_);
  clock.Mark();
  api_->fault = FakeDeviceApi::kIllegalAddress;
  clock.Mark();
  EXPECT_THAT(clock.Take(), IsEmpty());
  EXPECT_FALSE(fault_->ok());
}

}  // namespace
}  // namespace stagecoach
