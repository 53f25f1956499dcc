// The gradients of a norm in one call and in two: the same bits, which is what schedules with a
// split backward rest on.
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "base/errors/check.h"
#include "base/numbers/random.h"
#include "gtest/gtest.h"
#include "stage/backends/cuda/emulation/emulation.h"
#include "stage/backends/cuda/kernels/norms/layer_norm.h"
#include "stage/backends/cuda/kernels/norms/rms_norm.h"

namespace stagecoach::cuda {
namespace {

struct Rows {
  int64_t rows, width;
};
// One row; odd widths; chunks whose last one is short, and ends within the rows that are read
// together; threads with several packs; sums that do not fit the shared memory.
constexpr Rows kShapes[] = {{1, 5},    {7, 17},    {33, 48},  {517, 24},
                            {5003, 8}, {13, 4104}, {9, 12304}};

// Drawn once: drawing takes longer than what is tested.
const std::vector<float>& Normal(int64_t count, uint32_t stream) {
  static auto* const drawn = new std::map<std::pair<int64_t, uint32_t>, std::vector<float>>();
  std::vector<float>& values = (*drawn)[{count, stream}];
  if (!values.empty()) return values;
  values.resize(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    values[static_cast<size_t>(i)] = RandomNormal({.seed = 5, .operation = stream}, i);
  }
  return values;
}

template <typename T>
std::vector<T> Elements(int64_t count, int64_t offset, uint32_t stream) {
  std::vector<T> elements(static_cast<size_t>(count + offset));
  const std::vector<float>& values = Normal(count, stream);
  for (int64_t i = 0; i < count; ++i) {
    elements[static_cast<size_t>(i + offset)] = FromFloat<T>(values[static_cast<size_t>(i)]);
  }
  return elements;
}

struct Gradients {
  std::vector<float> dx, d_weight, d_bias;
  friend bool operator==(const Gradients&, const Gradients&) = default;
};

// Of one norm, by these parts one after the other. `offset`: how many elements behind a multiple of
// 16 bytes arrays begin.
template <typename T, bool kCentred>
Gradients GradientsOf(Rows shape, const std::vector<NormPart>& parts, bool residual = true,
                      int64_t offset = 0) {
  const int64_t count = shape.rows * shape.width;
  const std::vector<T> dy = Elements<T>(count, offset, 0), x = Elements<T>(count, offset, 1),
                       trunk = Elements<T>(count, offset, 2);
  std::vector<T> dx(static_cast<size_t>(count + offset));
  const std::vector<float> weight = Normal(shape.width, 3), mean = Normal(shape.rows, 4),
                           rstd = Normal(shape.rows, 5);
  Gradients found = {{}, Normal(shape.width, 6), Normal(shape.width, 7)};
  const NormGradients<T> all = {.rows = shape.rows,
                                .width = shape.width,
                                .dy = dy.data() + offset,
                                .x = x.data() + offset,
                                .weight = weight.data(),
                                .mean = kCentred ? mean.data() : nullptr,
                                .rstd = rstd.data(),
                                .residual = residual ? trunk.data() + offset : nullptr,
                                .dx = dx.data() + offset,
                                .d_weight = found.d_weight.data(),
                                .d_bias = kCentred ? found.d_bias.data() : nullptr};
  const NormBackwardPlan plan =
      PlanNormBackward(shape.rows, shape.width, kCentred ? 2 : 1, 16 / sizeof(T));
  for (const NormPart part : parts) {
    std::vector<float> scratch(plan.scratch_bytes / sizeof(float), NAN);
    if constexpr (kCentred) {
      CHECK(LayerNormBackward(nullptr, part, all, scratch.data()) == cudaSuccess);
    } else {
      CHECK(RmsNormBackward(nullptr, part, all, scratch.data()) == cudaSuccess);
    }
  }
  for (int64_t i = 0; i < count; ++i) {
    found.dx.push_back(ToFloat(dx[static_cast<size_t>(i + offset)]));
  }
  return found;
}

template <typename T, bool kCentred>
void ExpectSameBitsInOneCallAndInTwo() {
  for (const Rows& shape : kShapes) {
    for (const bool residual : {false, true}) {
      const Gradients both = GradientsOf<T, kCentred>(shape, {NormPart::kBoth}, residual);
      EXPECT_EQ((GradientsOf<T, kCentred>(shape, {NormPart::kInput, NormPart::kWeight}, residual)),
                both)
          << shape.rows << " rows of " << shape.width;
      EXPECT_NE(both.d_weight, Normal(shape.width, 6)) << "something is added";
    }
  }
}

TEST(NormBackward, HasTheSameBitsInOneCallAndInTwo) {
  ExpectSameBitsInOneCallAndInTwo<float, true>();
  ExpectSameBitsInOneCallAndInTwo<Bf16, true>();
  ExpectSameBitsInOneCallAndInTwo<float, false>();
  ExpectSameBitsInOneCallAndInTwo<Bf16, false>();
}

TEST(NormBackward, HasTheSameBitsWhereverArraysLieAndInWhicheverOrderThreadsRun) {
  for (const Rows& shape : kShapes) {
    const Gradients aligned = GradientsOf<Bf16, true>(shape, {NormPart::kBoth});
    EXPECT_EQ((GradientsOf<Bf16, true>(shape, {NormPart::kBoth}, true, 1)), aligned) << shape.width;
    emulation::SetOrder(emulation::Order::kDescending);
    EXPECT_EQ((GradientsOf<Bf16, true>(shape, {NormPart::kBoth})), aligned) << shape.width;
    emulation::SetOrder(emulation::Order::kAscending);
  }
}

// In which order: in a chunk row after row, then every eighth chunk, then those sums.
TEST(NormBackward, AddsTheRowsOfAColumnInTheOrderThatItPromises) {
  constexpr Rows kShape = {5003, 8};
  const std::vector<float> dy = Normal(kShape.rows * kShape.width, 0);
  const NormBackwardPlan plan = PlanNormBackward(kShape.rows, kShape.width, 2, 4);
  std::vector<float> expected = Normal(kShape.width, 7);
  for (int64_t column = 0; column < kShape.width; ++column) {
    float total = 0.0f;
    for (int64_t lane = 0; lane < kColumnLanes; ++lane) {
      float of_lane = 0.0f;
      for (int64_t chunk = lane; chunk < plan.chunks; chunk += kColumnLanes) {
        float of_chunk = 0.0f;
        for (int64_t r = 0; r < plan.rows_per_chunk; ++r) {
          const int64_t row = chunk * plan.rows_per_chunk + r;
          if (row < kShape.rows) of_chunk += dy[row * kShape.width + column];
        }
        of_lane += of_chunk;
      }
      total = lane == 0 ? of_lane : total + of_lane;
    }
    expected[static_cast<size_t>(column)] += total;
  }
  EXPECT_EQ((GradientsOf<float, true>(kShape, {NormPart::kWeight}).d_bias), expected);
}

}  // namespace
}  // namespace stagecoach::cuda
