#include "stage/cell/objective_runner.h"

#include <cmath>
#include <cstring>
#include <memory>

#include "gtest/gtest.h"
#include "network/zoo/gpt.h"
#include "stage/layers/layer_testing.h"

namespace stagecoach {
namespace {

// The table of sums is read in blocks of micro-batches, the last of them a smaller one.
TEST(ObjectiveRunner, AddsTheSumsOfMoreMicroBatchesThanTheHostReadsAtOnce) {
  constexpr int kMicroBatches = 100'000;
  const std::unique_ptr<Backend> backend = MakeReferenceBackend({});
  const auto objective = ObjectiveRunner::Create(
      ExpandOrDie(GptSpec{.layers = 1, .width = 4, .heads = 2, .context = 1, .vocabulary = 17}),
      *backend);
  ASSERT_TRUE(objective.ok()) << objective.status();
  const auto zeros = [&](DType dtype, const Shape& shape) {
    Tensor made = MakeTensor(backend->allocator(), MemoryKind::kActivations, dtype, shape).value();
    std::memset(made.raw(), 0, static_cast<size_t>(made.bytes()));
    return made;
  };
  (*objective)->Begin(kMicroBatches, 1.0);
  for (const int micro_batch : {0, 1, 50'000, kMicroBatches - 1}) {
    ASSERT_TRUE((*objective)
                    ->Evaluate({.micro_batch = MicroBatchId(micro_batch), .sequences = 1},
                               zeros(DType::kF32, {1, 17}), {zeros(DType::kI32, {1}), {}})
                    .ok());
  }
  EXPECT_NEAR((*objective)->TakeSums().named[0], 4 * std::log(17.0), 1e-6);
}

}  // namespace
}  // namespace stagecoach
