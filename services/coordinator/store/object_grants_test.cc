#include "services/coordinator/store/object_grants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/testing/manual_clock.h"
#include "base/testing/status_is.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;
using Use = ObjectGrants::Use;

constexpr char kFolder[] = "checkpoints/job/step-000000000004";

class ObjectGrantsTest : public ::testing::Test {
 protected:
  std::string Refusal(const std::string& grant, const std::string& folder, Use use) {
    const absl::Status status = grants_.Check(grant, folder, use);
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
    EXPECT_THAT(status.message(), HasSubstr(folder));
    return std::string(status.message());
  }
  ManualClock clock_{int64_t{1'700'000'000} * 1'000'000'000};
  const ObjectGrants grants_{&clock_};
};

TEST_F(ObjectGrantsTest, OpensItsFolderForItsUse) {
  const std::string reads = grants_.Make(kFolder, Use::kRead);
  const std::string writes = grants_.Make(kFolder, Use::kWrite);
  EXPECT_TRUE(grants_.Check(reads, kFolder, Use::kRead).ok());
  EXPECT_TRUE(grants_.Check(writes, kFolder, Use::kRead).ok());
  EXPECT_TRUE(grants_.Check(writes, kFolder, Use::kWrite).ok());
  EXPECT_THAT(Refusal(reads, kFolder, Use::kWrite), HasSubstr("for reading"));
}

TEST_F(ObjectGrantsTest, OpensNoOtherFolder) {
  const std::string grant = grants_.Make(kFolder, Use::kWrite);
  for (const char* other : {"checkpoints/other/step-000000000004", "checkpoints/job", "",
                            "checkpoints/job/step-000000000004/x"}) {
    EXPECT_THAT(Refusal(grant, other, Use::kRead), HasSubstr("another folder"));
  }
}

TEST_F(ObjectGrantsTest, EndsAtItsTime) {
  const std::string grant = grants_.Make(kFolder, Use::kRead);
  clock_.AdvanceNanos(static_cast<int64_t>((ObjectGrants::kSeconds - 2) * 1e9));
  EXPECT_TRUE(grants_.Check(grant, kFolder, Use::kRead).ok());
  clock_.AdvanceNanos(4'000'000'000);
  EXPECT_THAT(Refusal(grant, kFolder, Use::kRead), HasSubstr("expired"));
}

// A machine whose clock is set in the middle of a job ended the job: its stages' grants had expired.
TEST_F(ObjectGrantsTest, AWallClockThatJumpsEndsNone) {
  struct Jumping final : Clock {
    int64_t MonotonicNanos() const override { return 1'000'000'000; }
    int64_t UnixNanos() const override { return unix_nanos; }
    int64_t unix_nanos = int64_t{1'700'000'000} * 1'000'000'000;
  } clock;
  const ObjectGrants grants(&clock);
  const std::string grant = grants.Make(kFolder, Use::kRead);
  clock.unix_nanos += int64_t{60 * 86400} * 1'000'000'000;
  EXPECT_TRUE(grants.Check(grant, kFolder, Use::kRead).ok());
  EXPECT_EQ(grants.SecondsLeft(grant), static_cast<int64_t>(ObjectGrants::kSeconds));
}

// Every change of a text makes it another one: its use, its time, its signature.
TEST_F(ObjectGrantsTest, AnyChangedCharacterIsRefused) {
  const std::string grant = grants_.Make(kFolder, Use::kRead);
  for (size_t i = 0; i < grant.size(); ++i) {
    std::string changed = grant;
    changed[i] = changed[i] == '1' ? '2' : '1';
    Refusal(changed, kFolder, Use::kRead);
  }
  Refusal("", kFolder, Use::kRead);
  Refusal(".", kFolder, Use::kRead);
  Refusal("r.9999999999.", kFolder, Use::kRead);
  Refusal(absl::StrCat(grant, "0"), kFolder, Use::kRead);
}

TEST_F(ObjectGrantsTest, IsOfThisProcessAlone) {
  const ObjectGrants before(&clock_);
  Refusal(before.Make(kFolder, Use::kRead), kFolder, Use::kRead);
}

}  // namespace
}  // namespace stagecoach
