// The real library comes with a driver; a made-up one with the same names stands for it.
#include "services/stage/nvml.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/manual_clock.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kCard[] = "0000:3b:00.0";

TEST(NvmlCard, ReadsWhatTheDriverTellsAndLeavesOutTheRest) {
  ManualClock clock;
  const auto card = NvmlCard::Open(STAGECOACH_FAKE_NVML, kCard, &clock);
  ASSERT_TRUE(card.ok()) << card.status();
  const DeviceReading reading = (*card)->Read();
  EXPECT_EQ(reading.utilization, 0.75);
  EXPECT_GE(reading.power_watts.value_or(0), 1.0);
  EXPECT_EQ(reading.temperature_celsius, std::nullopt) << "this card has no sensor";
  EXPECT_EQ(reading.memory_used_bytes, 600.0);
  EXPECT_EQ(reading.memory_size_bytes, 1000.0);
}

TEST(NvmlCard, AsksTheDriverAtMostOnceASecond) {
  ManualClock clock(5);
  const auto card = NvmlCard::Open(STAGECOACH_FAKE_NVML, kCard, &clock);
  ASSERT_TRUE(card.ok()) << card.status();
  const double first = *(*card)->Read().power_watts;
  clock.AdvanceNanos(999'999'999);
  EXPECT_EQ((*card)->Read().power_watts, first);
  clock.AdvanceNanos(1);
  EXPECT_EQ((*card)->Read().power_watts, first + 1);
}

TEST(NvmlCard, SaysWhyThereIsNone) {
  ManualClock clock;
  EXPECT_THAT(std::string(NvmlCard::Open("libnot-there.so.1", kCard, &clock).status().message()),
              AllOf(HasSubstr("libnot-there.so.1"), HasSubstr("cannot be loaded")));
  EXPECT_THAT(std::string(NvmlCard::Open("libm.so.6", kCard, &clock).status().message()),
              HasSubstr("libm.so.6 has no function nvmlInit_v2"));
  const absl::Status other = NvmlCard::Open(STAGECOACH_FAKE_NVML, "0000:99:00.0", &clock).status();
  EXPECT_EQ(other.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(other.message()),
              AllOf(HasSubstr("0000:99:00.0"), HasSubstr("Not Found")));
}

TEST(NvmlCard, EndsEverySessionThatItBegan) {
  void* const library = dlopen(STAGECOACH_FAKE_NVML, RTLD_NOW);
  ASSERT_NE(library, nullptr);
  const auto sessions = reinterpret_cast<int (*)()>(dlsym(library, "FakeNvmlSessions"));
  ASSERT_NE(sessions, nullptr);
  ManualClock clock;
  {
    const auto card = NvmlCard::Open(STAGECOACH_FAKE_NVML, kCard, &clock);
    EXPECT_EQ(sessions(), 1);
    EXPECT_FALSE(NvmlCard::Open(STAGECOACH_FAKE_NVML, "nowhere", &clock).ok());
    EXPECT_EQ(sessions(), 1);
  }
  EXPECT_EQ(sessions(), 0);
  dlclose(library);
}

}  // namespace
}  // namespace stagecoach
