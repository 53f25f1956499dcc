#include "base/errors/error_place.h"

#include <gtest/gtest.h>

namespace stagecoach {
namespace {

TEST(ErrorPlaceTest, APlaceStandsBehindTheCauseAndPlacesJoin) {
  EXPECT_EQ(TextAt("no room", "step 3"), "no room [at step 3]");
  EXPECT_EQ(TextAt(TextAt("no room", "micro-batch 1"), "step 3"),
            "no room [at micro-batch 1; step 3]");
  EXPECT_EQ(TextAt("shape [3, 2]", "step 3"), "shape [3, 2] [at step 3]");
  EXPECT_EQ(TextAt("no room [at step 3]; shape [3, 2]", "job a"),
            "no room [at step 3]; shape [3, 2] [at job a]");
  EXPECT_EQ(TextAt("no room [at step 3]; mount it", "job a"),
            "no room [at step 3]; mount it [at job a]");
}

TEST(ErrorPlaceTest, AStatusKeepsItsCodeAndPayloads) {
  EXPECT_TRUE(AnnotateAt(absl::OkStatus(), "step 3").ok());
  absl::Status full = absl::ResourceExhaustedError("no room");
  full.SetPayload("kind", absl::Cord("disk"));
  const absl::Status placed = AnnotateAt(full, "step 3");
  EXPECT_EQ(placed.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(placed.message(), "no room [at step 3]");
  EXPECT_EQ(placed.GetPayload("kind"), absl::Cord("disk"));
  EXPECT_EQ(AnnotateAt(absl::StatusOr<int>(7), "step 3").value(), 7);
  EXPECT_EQ(AnnotateAt(absl::StatusOr<int>(full), "step 3").status().message(),
            "no room [at step 3]");
}

}  // namespace
}  // namespace stagecoach
