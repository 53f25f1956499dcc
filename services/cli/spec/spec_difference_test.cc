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

// Seen: a job whose object was replaced "differs in data.text.path", which was the same one.
TEST(SpecDifference, ADataSetOfTheSameObjectsIsNoDifference) {
  v1::JobSpec given = Tiny(), there = Tiny();
  const std::string set = "store:/data/" + std::string(64, 'a');
  given.mutable_data()->mutable_text()->set_path("s3://corpora/en/a.txt");
  given.mutable_initialize()->set_from("s3://weights/gpt/");
  there.mutable_data()->mutable_text()->set_path(set + "/corpora/en/a.txt");
  there.mutable_initialize()->set_from(set + "/weights/gpt");
  EXPECT_EQ(SpecDifference(there, given), "");
  EXPECT_EQ(SpecDifference(given, there), "");
  given.mutable_training()->set_steps(61);
  EXPECT_EQ(SpecDifference(there, given), "  training.steps: 60 -> 61\n");
  given = there;
  given.mutable_data()->mutable_text()->set_path("s3://corpora/en/b.txt");
  EXPECT_EQ(SpecDifference(there, given),
            "  data.text.path: \"" + set + "/corpora/en/a.txt\" -> \"s3://corpora/en/b.txt\"\n");
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
