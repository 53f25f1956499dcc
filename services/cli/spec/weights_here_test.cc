#include "services/cli/spec/weights_here.h"

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/errors/check.h"
#include "checkpoint/safetensors/safetensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/names/weight_names.h"
#include "network/zoo/mlp.h"
#include "plan/data/idx.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;

JobSpec JobOfClasses(int64_t classes, const std::string& from) {
  JobSpec spec;
  spec.network = MlpNetworkSpec{.image = {2, 2, 1}, .hidden = 3, .classes = classes};
  spec.data = IdxData{.images = "/nowhere/images", .labels = "/nowhere/labels"};
  spec.initialize.from = from;
  return spec;
}

// A folder with the weights of the job, all zeros, as exported.
std::string ExportOf(const JobSpec& spec) {
  const auto* const info = testing::UnitTest::GetInstance()->current_test_info();
  const std::string folder = testing::TempDir() + "/" + info->name();
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const auto network = ExpandJob(spec);
  CHECK_OK(network.status());
  std::vector<std::byte> zeros(4096);
  std::vector<TensorSource> sources;
  const std::vector<WeightName> names = *WeightNames(*network, kOwnNames);
  for (const WeightName& name : names) {
    const auto bytes = static_cast<size_t>(name.shape.elements()) * sizeof(float);
    sources.push_back({name.ours, DType::kF32, name.shape, [&zeros, bytes] {
                         return absl::StatusOr<std::span<const std::byte>>(
                             std::span<const std::byte>(zeros).first(bytes));
                       }});
  }
  CHECK_OK(
      WriteSafetensors(*PosixFileSystem(), folder + "/model.safetensors", sources, {}).status());
  return folder;
}

absl::Status WeightsHere(const JobSpec& spec) {
  return CheckWeightsHere(spec, ExpandJob(spec).value());
}
absl::Status WeightsIfHere(const JobSpec& spec) {
  return CheckWeightsIfHere(spec, ExpandJob(spec).value());
}

TEST(WeightsHere, WeightsOfAnotherHeadAreRefusedBeforeTheJobIsSubmitted) {
  const std::string folder = ExportOf(JobOfClasses(7, ""));
  EXPECT_TRUE(WeightsHere(JobOfClasses(7, folder)).ok());
  JobSpec other = JobOfClasses(5, folder);
  for (const absl::Status& status : {WeightsHere(other), WeightsIfHere(other)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("F32 [7, 3], where the job's model/0003/weight has F32 [5, 3]"));
  }
  other.initialize.except = {"model/0003/*"};
  EXPECT_TRUE(WeightsHere(other).ok()) << WeightsHere(other);
}

TEST(WeightsHere, WhatIsNotHereMayBeThereForTheStages) {
  const JobSpec spec = JobOfClasses(5, "/nowhere/model.safetensors");
  EXPECT_TRUE(absl::IsNotFound(WeightsHere(spec))) << WeightsHere(spec);
  EXPECT_TRUE(WeightsIfHere(spec).ok());
  EXPECT_TRUE(WeightsHere(JobOfClasses(5, "")).ok()) << "begins with none";
}

// As a cache of downloads has its files.
TEST(WeightsHere, ALinkIsFollowed) {
  const std::string folder = ExportOf(JobOfClasses(5, ""));
  const std::string link = folder + "/link.safetensors";
  std::filesystem::create_symlink(folder + "/model.safetensors", link);
  EXPECT_TRUE(WeightsHere(JobOfClasses(5, link)).ok());
}

TEST(WeightsHere, AFolderWithoutWeightsIsRefusedWithWhatIsMissing) {
  const absl::Status status = WeightsHere(JobOfClasses(5, testing::TempDir()));
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("or a folder with a model.safetensors"));
}

}  // namespace
}  // namespace stagecoach
