#include "services/records/hyperparameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "network/zoo/gpt.h"
#include "plan/learning_rates/cosine.h"
#include "plan/optimizers/sgd.h"

namespace stagecoach {
namespace {

using testing::Contains;
using testing::HasSubstr;

JobSpec CosineSpec() {
  JobSpec spec;
  spec.network = GptSpec{.layers = 4, .width = 64, .heads = 2, .context = 32, .vocabulary = 256};
  spec.training.batch_size = 24;
  spec.training.learning_rate = CosineRate{.peak = 3e-3};
  return spec;
}

TEST(HyperParameters, AreWhatTheJobFileSays) {
  JobSpec spec = CosineSpec();
  const auto parameters = HyperParametersOf(spec);
  EXPECT_THAT(parameters, Contains(HyperParameter{"layers", 4.0}));
  EXPECT_THAT(parameters, Contains(HyperParameter{"batch_size", 24.0}));
  EXPECT_THAT(parameters, Contains(HyperParameter{"learning_rate", 3e-3}));
  EXPECT_THAT(parameters, Contains(HyperParameter{"learning_rate_curve", "cosine"}));
  EXPECT_THAT(parameters, Contains(HyperParameter{"optimizer", "adamw"}));
  EXPECT_THAT(parameters, Contains(HyperParameter{"beta2", 0.999}));
  spec.initialize.from = "/a";
  EXPECT_THAT(HyperParametersOf(spec), Contains(HyperParameter{"initialize", "/a"}));
  spec.training.optimizer = SgdSpec{.momentum = 0.9};
  EXPECT_THAT(HyperParametersOf(spec), Contains(HyperParameter{"momentum", 0.9}));
}

// That TensorBoard's own library reads it is in tests/e2e/tensorboard_test.py.
TEST(HyperParameters, AreASummaryOfTheHparamsPlugin) {
  const std::string event = SessionStartEvent(1.0, "tiny", {{"width", 64.0}});
  EXPECT_THAT(event, HasSubstr("_hparams_/session_start_info"));
  EXPECT_THAT(event, HasSubstr("\x0a\x07hparams"));
  EXPECT_THAT(event, HasSubstr("\x0a\x05width\x12\x09\x11"));
}

}  // namespace
}  // namespace stagecoach
