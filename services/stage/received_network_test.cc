// What a stage takes it can run: networks that were changed at random on their way, and hold all
// the same.
#include <memory>
#include <utility>

#include "base/sanitized.h"
#include "base/threads/clock.h"
#include "gtest/gtest.h"
#include "plan/data/idx.h"
#include "plan/data/text.h"
#include "plan/learning_rates/constant.h"
#include "services/common/convert/network/network_changes_testing.h"
#include "stage/backends/backend.h"
#include "stage/cell/layer_profile.h"

namespace stagecoach {
namespace {

// A job that asks for nothing that a network could lack.
JobSpec JobFor(const Network& network) {
  JobSpec spec;
  spec.name = "received";
  spec.precision = network.precision;
  if (network.InputNamed("tokens").valid()) {
    spec.data = TextData{.path = "/text"};
  } else {
    const bool weighted = network.InputNamed("weights").valid();
    spec.data =
        IdxData{.images = "/images", .labels = "/labels", .weights = weighted ? "/weights" : ""};
  }
  spec.training = {.steps = 1, .batch_size = 4, .micro_batches = 2};
  spec.training.learning_rate = ConstantRate{.peak = 0.1};
  spec.pipeline.stages = 1;
  return spec;
}

TEST(ReceivedNetwork, RunsOrIsRefused) {
  int ran = 0;
  for (const v1::Network& message : NetworkMessages()) {
    for (uint64_t seed = 0; seed < SeedsOr(kSanitized ? 4 : 40); ++seed) {
      v1::Network proto = message;
      NetworkChanger changer(seed);
      changer.ChangeField(&proto);
      if (seed % 3 == 0) changer.ChangeField(&proto);
      SetItsDigest(&proto);
      const absl::StatusOr<Network> network = NetworkFromProto(proto);
      if (!network.ok()) continue;
      const auto backend = MakeReferenceBackend({.memory_limit_bytes = 4 << 20});
      const auto profile = ProfileLayers(JobFor(*network), *network, *backend, *SystemClock::Get(),
                                         [] { return false; });
      if (profile.ok()) ++ran;
    }
  }
  EXPECT_GT(ran, kSanitized ? 2 : 20);
}

}  // namespace
}  // namespace stagecoach
