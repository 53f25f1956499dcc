#include "stage/cell/layer_profile.h"

#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/zoo/resnet.h"
#include "plan/data/idx.h"
#include "plan/learning_rates/constant.h"
#include "stage/layers/layer_testing.h"

namespace stagecoach {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// The made-up inputs lay on the host before the allocator was asked: a job that fits no machine
// ended a free stage by std::bad_alloc.
TEST(LayerProfile, OfAMicroBatchThatNoMemoryHoldsIsRefusedByTheAllocator) {
  const Network network =
      ExpandOrDie(ResnetSpec{.image = {4096, 4096, 3}, .classes = 2, .depth = 8, .width = 4});
  JobSpec spec;
  spec.name = "large";
  spec.data = IdxData{.images = "/images", .labels = "/labels"};
  spec.training = {.steps = 1, .batch_size = 1 << 20, .micro_batches = 1};
  spec.training.learning_rate = ConstantRate{.peak = 0.1};
  spec.pipeline.stages = 1;
  const auto backend = MakeReferenceBackend({.memory_limit_bytes = int64_t{1} << 28});
  const absl::Status status =
      ProfileLayers(spec, network, *backend, *SystemClock::Get(), [] { return false; }).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("profile of layer "), HasSubstr("memory for activations"),
                    HasSubstr("training.batch_size = 1048576"),
                    HasSubstr("raise micro_batches or lower batch_size")));
}

}  // namespace
}  // namespace stagecoach
