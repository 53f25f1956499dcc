// Which pictures are left out with on_bad_record: skip, and what fails the load instead.
#include "stage/data/bad_records.h"

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

// Three pictures, of which the second one cannot be read.
class SecondIsBad final : public PictureSet {
 public:
  explicit SecondIsBad(absl::Status status) : status_(std::move(status)) {}
  int64_t count() const override { return 3; }
  int32_t label(int64_t i) const override { return static_cast<int32_t>(i); }
  absl::StatusOr<Picture> Read(int64_t i, int64_t) const override {
    if (i == 1) return status_;
    return Picture();
  }

 private:
  const absl::Status status_;
};

struct Left {
  absl::Status status;
  int64_t pictures = 0, bad = 0;
};
Left LeftAfter(absl::Status status) {
  Sha256 digest;
  BadRecords bad;
  const auto set =
      WithoutBadRecords(std::make_shared<SecondIsBad>(std::move(status)), 1, &digest, &bad);
  return {.status = set.status(), .pictures = set.ok() ? (*set)->count() : 0, .bad = bad.count};
}

TEST(BadRecordsTest, WhatIsNoPictureIsLeftOut) {
  for (const auto& status :
       {absl::DataLossError("cut off"), absl::InvalidArgumentError("too large")}) {
    const Left left = LeftAfter(status);
    ASSERT_TRUE(left.status.ok()) << left.status;
    EXPECT_EQ(left.pictures, 2);
    EXPECT_EQ(left.bad, 1);
  }
}

// Another stage may read it, or this one in a moment: it would leave out others than they do.
TEST(BadRecordsTest, WhatTheStorageCannotGiveFailsTheLoad) {
  for (const auto& status :
       {absl::UnavailableError("Input/output error"), absl::NotFoundError("No such file"),
        absl::PermissionDeniedError("Permission denied")}) {
    EXPECT_EQ(LeftAfter(status).status, status);
  }
}

}  // namespace
}  // namespace stagecoach
