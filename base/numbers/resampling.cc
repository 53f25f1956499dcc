#include "base/numbers/resampling.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/errors/check.h"
#include "base/threads/progress.h"

namespace stagecoach {
namespace {

// distance: from the center of the filter, 0 or more.
double Triangle(double distance) { return distance < 1 ? 1 - distance : 0; }

// Keys' cubic convolution, 1981.
double Cubic(double distance) {
  constexpr double kA = -0.5;
  if (distance < 1) return ((kA + 2) * distance - (kA + 3)) * distance * distance + 1;
  if (distance < 2) return (((distance - 5) * distance + 8) * distance - 4) * kA;
  return 0;
}

struct Taps {
  size_t first = 0;
  std::vector<double> weights;
};

std::vector<Taps> CubicTaps(int64_t from, int64_t to) {
  std::vector<Taps> all(static_cast<size_t>(to));
  for (int64_t i = 0; i < to; ++i) {
    Taps& taps = all[static_cast<size_t>(i)];
    taps.first = static_cast<size_t>(
        ResamplingWeights(ResamplingFilter::kCubic, from, to, i, &taps.weights));
  }
  return all;
}

// Sets `sum` to the mean of rows of sum.size() numbers, which begin at `rows`.
template <typename Number>
void Mean(const Number* rows, const Taps& taps, std::span<double> sum) {
  std::fill(sum.begin(), sum.end(), 0.0);
  const Number* row = rows + taps.first * sum.size();
  for (const double weight : taps.weights) {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += weight * row[i];
    row += sum.size();
  }
}

}  // namespace

int64_t ResamplingWeights(ResamplingFilter filter, int64_t from, int64_t to, int64_t i,
                          std::vector<double>* weights) {
  CHECK(from >= 1 && i >= 0 && i < to);
  const bool cubic = filter == ResamplingFilter::kCubic;
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double stretch = std::max(scale, 1.0), support = cubic ? 2 * stretch : stretch;
  const double center = (static_cast<double>(i) + 0.5) * scale;
  const int64_t first = std::max<int64_t>(0, static_cast<int64_t>(center - support + 0.5));
  const int64_t end = std::min(from, static_cast<int64_t>(center + support + 0.5));
  weights->clear();
  double sum = 0;
  for (int64_t x = first; x < end; ++x) {
    const double distance = std::abs((static_cast<double>(x) - center + 0.5) * (1.0 / stretch));
    weights->push_back(cubic ? Cubic(distance) : Triangle(distance));
    sum += weights->back();
  }
  if (sum != 0) {
    for (double& weight : *weights) weight /= sum;
  }
  return first;
}

void ResampleGrid(std::span<const float> from, GridSize from_size, int64_t channels,
                  std::span<float> to, GridSize to_size) {
  CHECK(from_size.height >= 1 && from_size.width >= 1 && channels >= 1);
  CHECK_EQ(std::ssize(from), from_size.height * from_size.width * channels);
  CHECK_EQ(std::ssize(to), to_size.height * to_size.width * channels);
  const std::vector<Taps> rows = CubicTaps(from_size.height, to_size.height);
  const std::vector<Taps> columns = CubicTaps(from_size.width, to_size.width);
  std::vector<double> row(static_cast<size_t>(from_size.width * channels));
  std::vector<double> element(static_cast<size_t>(channels));
  float* out = to.data();
  for (const Taps& above : rows) {
    Mean(from.data(), above, row);
    for (const Taps& beside : columns) {
      Mean(row.data(), beside, element);
      for (const double number : element) *out++ = static_cast<float>(number);
    }
    TickProgress();
  }
}

}  // namespace stagecoach
