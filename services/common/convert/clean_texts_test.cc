#include "services/common/convert/clean_texts.h"

#include <gtest/gtest.h>

#include "stagecoach/v1/job.pb.h"
#include "stagecoach/v1/telemetry.pb.h"

namespace stagecoach {
namespace {

// A stage under another's control wrote to terminals, forged rows of tables and labels of metrics.
TEST(CleanTexts, NothingThatATerminalObeysIsLeftInAnyMessageWithin) {
  v1::ReadLogsResponse logs;
  logs.add_lines()->set_message("one\ntwo \x1b[2J");
  logs.mutable_lines(0)->set_source("stage\n1");
  logs.add_unreachable("stage-2: \u202egnp");
  CleanTexts(&logs);
  EXPECT_EQ(logs.lines(0).message(), "one\ntwo \\x1b[2J") << "a message may have lines";
  EXPECT_EQ(logs.lines(0).source(), "stage\\x0a1") << "a name has none";
  EXPECT_EQ(logs.unreachable(0), "stage-2: \\xe2\\x80\\xaegnp");
}

TEST(CleanTexts, FilesKeepTheirNames) {
  v1::Job job;
  job.mutable_spec()->mutable_data()->mutable_text()->set_path("/data/\u200f\x01");
  job.set_message("\x07 rung");
  v1::JobSpec spec = job.spec();
  job.mutable_spec()->set_name("a\x1b[2J");
  spec.set_name("a\\x1b[2J");
  CleanTexts(&job);
  EXPECT_EQ(job.message(), "\\x07 rung");
  EXPECT_EQ(job.spec().SerializeAsString(), spec.SerializeAsString());
}

}  // namespace
}  // namespace stagecoach
