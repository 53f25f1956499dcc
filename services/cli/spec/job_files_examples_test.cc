// The examples of docs/job_files.md and its pages are jobs that Stagecoach takes: that of
// job_files.md by itself, the others as changes of it.
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/testing/file_text.h"
#include "gtest/gtest.h"
#include "services/cli/spec/spec_reader.h"

namespace stagecoach {
namespace {

constexpr char kFirstPage[] = STAGECOACH_SOURCE_DIR "/docs/job_files.md";
constexpr char kPages[] = STAGECOACH_SOURCE_DIR "/docs/job_files";

std::vector<std::string> ExamplesOf(const std::string& path) {
  constexpr char kBegin[] = "\n```yaml\n", kEnd[] = "\n```\n";
  std::vector<std::string> examples;
  const std::string page = FileText(path);
  for (size_t at = page.find(kBegin); at != std::string::npos; at = page.find(kBegin, at)) {
    at += sizeof(kBegin) - 1;
    examples.push_back(page.substr(at, page.find(kEnd, at) + 1 - at));
  }
  return examples;
}

class JobFilesExamples : public testing::Test {
 protected:
  void SetUp() override {
    const std::vector<std::string> examples = ExamplesOf(kFirstPage);
    ASSERT_GE(examples.size(), 2u);
    const auto whole = ParseSpec(examples[0], kFirstPage);
    ASSERT_TRUE(whole.ok()) << whole.status();
    whole_ = *whole;
  }

  void ExpectTaken(const std::string& example, const std::string& page) const {
    const auto change = ParseSpec(example, page);
    ASSERT_TRUE(change.ok()) << change.status();
    SpecFile changed{.file = page, .spec = whole_.spec, .positions = change->positions};
    // `stages: auto` is a 0, which merging leaves out; epochs stand in the place of steps.
    if (change->spec.has_pipeline()) changed.spec.clear_pipeline();
    if (change->spec.training().epochs() > 0) changed.spec.mutable_training()->clear_steps();
    if (change->spec.has_write()) changed.spec.clear_evaluation();  // it trains nothing
    changed.spec.MergeFrom(change->spec);
    const auto valid = ValidateSpecFile(changed);
    EXPECT_TRUE(valid.ok()) << valid.status();
  }

  SpecFile whole_;
};

TEST_F(JobFilesExamples, TheWholeOneIsAJob) {
  const auto valid = ValidateSpecFile(whole_);
  EXPECT_TRUE(valid.ok()) << valid.status();
}

TEST_F(JobFilesExamples, EveryPageHasOneThatChangesIt) {
  std::set<std::string> pages{kFirstPage};
  for (const auto& entry : std::filesystem::directory_iterator(kPages)) pages.insert(entry.path());
  EXPECT_EQ(pages.size(), 6u);
  for (const std::string& page : pages) {
    const std::vector<std::string> examples = ExamplesOf(page);
    EXPECT_FALSE(examples.empty()) << page;
    for (const std::string& example : examples) ExpectTaken(example, page);
  }
}

}  // namespace
}  // namespace stagecoach
