#include "services/common/grpc/message_checksum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "stagecoach/v1/fleet.pb.h"
#include "stagecoach/v1/stage.pb.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

v1::RunRequest Command() {
  v1::RunRequest request;
  request.mutable_fence()->set_job("a");
  request.mutable_fence()->set_step(41);
  request.mutable_apply()->set_learning_rate(0.1);
  request.mutable_apply()->set_gradient_scale(1);
  request.set_work(v1::WORK_KIND_TRAIN);
  return WithChecksum(request);
}

TEST(MessageChecksumTest, AMessageArrivesAsItWasSent) {
  v1::RunRequest arrived;
  ASSERT_TRUE(arrived.ParseFromString(Command().SerializeAsString()));
  EXPECT_TRUE(CheckChecksum(&arrived).ok());
  EXPECT_EQ(arrived.SerializeAsString(), Command().SerializeAsString());
  v1::GetStatusResponse without;  // people look at these, nobody computes with them
  EXPECT_TRUE(CheckChecksum(&without).ok());
}

// Every bit, one after the other: what can be parsed is refused, or says the same.
TEST(MessageChecksumTest, NoFlippedBitIsBelieved) {
  const std::string sent = Command().SerializeAsString();
  int parsed = 0;
  for (size_t bit = 0; bit < 8 * sent.size(); ++bit) {
    std::string bytes = sent;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    v1::RunRequest arrived;
    if (!arrived.ParseFromString(bytes)) continue;
    ++parsed;
    const absl::Status status = CheckChecksum(&arrived);
    EXPECT_TRUE(absl::IsUnavailable(status)) << "bit " << bit << ": " << status;
    EXPECT_THAT(status.message(), HasSubstr("RunRequest"));
  }
  EXPECT_GT(parsed, 100);
}

TEST(MessageChecksumTest, AMapHasOneOrder) {
  v1::RunResponse report;
  for (const char* phase : {"forward", "backward", "optimizer", "idle", "data_wait"}) {
    (*report.mutable_phases()->mutable_seconds())[phase] = 0.5;
  }
  SetChecksum(&report);
  v1::RunResponse arrived;
  ASSERT_TRUE(arrived.ParseFromString(report.SerializeAsString()));
  EXPECT_TRUE(CheckChecksum(&arrived).ok());
}

}  // namespace
}  // namespace stagecoach
