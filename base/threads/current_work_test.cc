// What a handler would read of a thread that works.
#include "base/threads/current_work.h"

#include <gtest/gtest.h>

#include <string>

#include "base/threads/thread.h"

namespace stagecoach {
namespace {

TEST(CurrentWorkTest, NotesOfAThreadGoIntoItsScope) {
  CurrentWork work;
  NoteInstruction("forward");
  EXPECT_EQ(work.Look().instruction, nullptr) << "no scope, no note";
  const CurrentWorkScope scope(&work);
  BeginWork({.job = "a-job", .term = 3, .generation = 2, .step = 17});
  NoteInstruction("backward", MicroBatchId(4));
  NoteOperation("linear");
  Thread("other", [] { NoteInstruction("forward"); }).Join();
  const CurrentWork::View view = work.Look();
  EXPECT_STREQ(view.job.data(), "a-job");
  EXPECT_EQ(view.term, 3u);
  EXPECT_EQ(view.generation, 2u);
  EXPECT_EQ(view.step, 17u);
  EXPECT_EQ(view.micro_batch, 4);
  EXPECT_STREQ(view.instruction, "backward");
  EXPECT_STREQ(view.operation, "linear");
}

TEST(CurrentWorkTest, ANoteEndsWhatWasNotedBefore) {
  CurrentWork work;
  const CurrentWorkScope scope(&work);
  BeginWork({.job = std::string(kMaxJobNameLength, 'j')});
  NoteInstruction("forward", MicroBatchId(4));
  NoteOperation("linear");
  NoteInstruction("apply");
  EXPECT_EQ(work.Look().operation, nullptr);
  EXPECT_EQ(work.Look().micro_batch, -1);
  EXPECT_EQ(work.Look().job.data(), std::string(kMaxJobNameLength, 'j'));
  BeginWork({.job = "b"});
  EXPECT_EQ(work.Look().instruction, nullptr);
  EXPECT_STREQ(work.Look().job.data(), "b");
  NoteInstruction("load");
  EndWork();
  EXPECT_EQ(work.Look().instruction, nullptr);
}

}  // namespace
}  // namespace stagecoach
