#include "services/coordinator/watch/export_sweep.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/testing/temporary_folder.h"
#include "base/threads/clock.h"

namespace stagecoach {
namespace {

class ExportSweepTest : public ::testing::Test {
 protected:
  ExportSweepTest() {
    for (const char* const name : {"job", "job.step-4", "job.step-4-average", "job-step-5"}) {
      folder_.Write(std::string(name) + "/model.safetensors", "weights");
    }
  }
  bool Has(const std::string& name) { return std::filesystem::exists(folder_.File(name)); }
  void Age(const std::string& name, double seconds) {
    const auto by = std::chrono::duration_cast<std::filesystem::file_time_type::duration>(
        std::chrono::duration<double>(seconds));
    const std::string path = folder_.File(name);
    std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) - by);
  }

  const TemporaryFolder folder_;
  ExportSweep exports_{folder_.path()};
  const double now_ = SystemClock::Get()->UnixSeconds();
};

TEST_F(ExportSweepTest, WhatWasAskedForGoesAfterADayAndWhatJobsExportedStays) {
  exports_.Sweep(now_ + ExportSweep::kKeepSeconds - 60);
  EXPECT_TRUE(Has("job.step-4/model.safetensors"));
  exports_.Sweep(now_ + ExportSweep::kKeepSeconds + 60);
  EXPECT_FALSE(Has("job.step-4"));
  EXPECT_FALSE(Has("job.step-4-average"));
  EXPECT_TRUE(Has("job/model.safetensors"));
  EXPECT_TRUE(Has("job-step-5/model.safetensors"));
}

TEST_F(ExportSweepTest, AskingAgainKeepsIt) {
  Age("job.step-4", 2 * ExportSweep::kKeepSeconds);
  Age("job.step-4-average", 2 * ExportSweep::kKeepSeconds);
  ASSERT_TRUE(ExportSweep::Touch(folder_.File("job.step-4")).ok());
  exports_.Sweep(now_);
  EXPECT_TRUE(Has("job.step-4/model.safetensors"));
  EXPECT_FALSE(Has("job.step-4-average"));
  EXPECT_FALSE(ExportSweep::Touch(folder_.File("job.step-4-average")).ok());
}

TEST_F(ExportSweepTest, WithoutAnyExportThereIsNothingToDo) {
  ExportSweep(folder_.File("nowhere")).Sweep(now_);
}

}  // namespace
}  // namespace stagecoach
