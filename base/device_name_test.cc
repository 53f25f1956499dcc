#include "base/device_name.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

TEST(DeviceName, TakesCudaWithANumber) {
  EXPECT_EQ(*ParseCudaDevice("cuda"), 0);
  EXPECT_EQ(*ParseCudaDevice("cuda:7"), 7);
  for (const char* bad : {"cuda:", "cuda:x", "cuda:-1", "cuda:+1", "cuda: 1", "cuda:1024", "cud",
                          "cuda:99999999999", "cuda1"}) {
    const absl::Status status = ParseCudaDevice(bad).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(std::string(status.message()), HasSubstr("cuda:0"));
  }
  EXPECT_TRUE(IsCudaDevice("cuda") && IsCudaDevice("cuda:x"));
  EXPECT_FALSE(IsCudaDevice("cpu") || IsCudaDevice("cuda1"));
}

}  // namespace
}  // namespace stagecoach
