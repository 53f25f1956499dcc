#include "services/cli/spec/weights_here.h"

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/errors/check.h"
#include "base/testing/status_is.h"
#include "base/testing/temporary_folder.h"
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

// Writes the weights of the job, all zeros, as exported.
void Export(const JobSpec& spec, const TemporaryFolder& folder) {
  const auto network = ExpandJob(spec);
  CHECK_OK(network.status());
  std::vector<std::byte> zeros(4096);
  std::vector<TensorSource> sources;
  const WeightTable table = *WeightNames(*network, kOwnNames);
  for (const WeightName& name : table.names) {
    const auto bytes = static_cast<size_t>(name.shape.elements()) * sizeof(float);
    sources.push_back({name.ours, DType::kF32, name.shape, [&zeros, bytes] {
                         return absl::StatusOr<std::span<const std::byte>>(
                             std::span<const std::byte>(zeros).first(bytes));
                       }});
  }
  CHECK_OK(
      WriteSafetensors(*PosixFileSystem(), folder.File("model.safetensors"), sources, {}).status());
}

absl::Status WeightsHere(const JobSpec& spec) {
  return CheckWeightsHere(spec, ExpandJob(spec).value());
}

TEST(WeightsHere, WeightsOfAnotherHeadAreRefusedBeforeTheJobIsSubmitted) {
  const TemporaryFolder folder;
  Export(JobOfClasses(7, ""), folder);
  EXPECT_TRUE(WeightsHere(JobOfClasses(7, folder.path())).ok());
  JobSpec other = JobOfClasses(5, folder.path());
  EXPECT_THAT(WeightsHere(other),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("F32 [7, 3], where the job's model/0003/weight has F32 [5, 3]")));
  other.initialize.except = {"model/0003/*"};
  EXPECT_TRUE(WeightsHere(other).ok()) << WeightsHere(other);
}

TEST(WeightsHere, WhatIsNotHereIsSaid) {
  const JobSpec spec = JobOfClasses(5, "/nowhere/model.safetensors");
  EXPECT_TRUE(absl::IsNotFound(WeightsHere(spec))) << WeightsHere(spec);
  EXPECT_TRUE(WeightsHere(JobOfClasses(5, "")).ok()) << "begins with none";
}

// As a cache of downloads has its files.
TEST(WeightsHere, ALinkIsFollowed) {
  const TemporaryFolder folder;
  Export(JobOfClasses(5, ""), folder);
  const std::string link = folder.File("link.safetensors");
  std::filesystem::create_symlink(folder.File("model.safetensors"), link);
  EXPECT_TRUE(WeightsHere(JobOfClasses(5, link)).ok());
}

TEST(WeightsHere, AFolderWithoutWeightsIsRefusedWithWhatIsMissing) {
  const TemporaryFolder folder;
  EXPECT_THAT(WeightsHere(JobOfClasses(5, folder.path())),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("or a folder with a model.safetensors")));
}

}  // namespace
}  // namespace stagecoach
