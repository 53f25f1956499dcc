#include "services/cli/spec/spec_difference.h"

#include <gtest/gtest.h>

#include "services/cli/spec/spec_reader.h"
#include "services/common/convert/spec/convert_spec.h"

namespace stagecoach {
namespace {

v1::JobSpec Tiny() {
  const auto file = ReadSpecFile(STAGECOACH_SOURCE_DIR "/examples/gpt-tiny.yaml");
  EXPECT_TRUE(file.ok()) << file.status();
  return file->spec;
}

// Seen: a job that was submitted again with one step more was answered with a dozen fields, for the
// coordinator tells every default (beta1, epsilon, keep, ...) and the job file leaves them out.
TEST(SpecDifference, ADefaultThatOneSideLeavesOutIsNoDifference) {
  const absl::StatusOr<JobSpec> known = FromProto(Tiny());
  ASSERT_TRUE(known.ok()) << known.status();
  v1::JobSpec there = ToProto(*known);
  ASSERT_NE(there.SerializeAsString(), Tiny().SerializeAsString()) << "else nothing is tested";
  EXPECT_EQ(SpecDifference(there, Tiny()), "");
  there.mutable_training()->set_steps(61);
  EXPECT_EQ(SpecDifference(there, Tiny()), "  training.steps: 61 -> 60\n");
}

TEST(SpecDifference, SpeaksLikeAJobFile) {
  v1::JobSpec changed = Tiny();
  changed.mutable_pipeline()->set_schedule(v1::SCHEDULE_KIND_GPIPE);
  changed.mutable_resume()->set_job("other");
  const std::string text = SpecDifference(Tiny(), changed);
  EXPECT_NE(text.find("  pipeline.schedule: one_forward_one_backward -> gpipe\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("resume"), std::string::npos) << text;
  EXPECT_EQ(text.find("modified"), std::string::npos) << text;
}

}  // namespace
}  // namespace stagecoach
