// Row by row with the loop that the back end's function has; what each row adds to the sums is
// kept, and added up in the order of the rows.
#include "operations/losses/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "operations/losses/loss_types.h"
#include "stage/backends/cpu/float_view.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/cpu/vector/kernels.h"

namespace stagecoach::cpu {
namespace {

constexpr int64_t kMostSums = 4;

// Classes that come before the target by their logits; of equal ones the lower class comes first.
// Written so that logits that are not numbers come before it, and all if its own is none.
int64_t RankOf(const float* logits, int64_t classes, int64_t target) {
  const float own = logits[target];
  int64_t rank = 0;
  for (int64_t j = 0; j < target; ++j) rank += !(logits[j] < own) ? 1 : 0;
  for (int64_t j = target + 1; j < classes; ++j) rank += !(logits[j] <= own) ? 1 : 0;
  return rank;
}

// Of a row beside what it adds to the sums: which class is guessed.
constexpr int32_t kNoGuess = -1;   // a logit is not a number
constexpr int32_t kNoTarget = -2;  // its target does not count

int32_t GuessOf(const float* logits, int32_t classes) {
  int32_t guess = 0;
  bool numbers = logits[0] == logits[0];
  for (int32_t j = 1; j < classes; ++j) {
    numbers = numbers && logits[j] == logits[j];
    if (logits[j] > logits[guess]) guess = j;
  }
  return numbers ? guess : kNoGuess;
}

bool Counts(const CrossEntropyAttributes& attributes, int64_t classes, int32_t target) {
  return target != attributes.ignore_index && target >= 0 && target < classes;
}

// Whole numbers. counts: [classes, kClassCounts].
void CountClasses(const int32_t* targets, const int32_t* guesses, int64_t rows, int64_t classes,
                  double* counts) {
  std::fill_n(counts, classes * kClassCounts, 0.0);
  for (int64_t r = 0; r < rows; ++r) {
    if (guesses[r] == kNoTarget) continue;
    if (guesses[r] == targets[r]) ++counts[targets[r] * kClassCounts];
    ++counts[targets[r] * kClassCounts + 1];
    if (guesses[r] != kNoGuess) ++counts[guesses[r] * kClassCounts + 2];
  }
}

double MeanOf(const float* values, int64_t n) {
  double sum = 0;
  for (int64_t j = 0; j < n; ++j) sum += values[j];
  return sum / static_cast<double>(n);
}

// d_logits may be null or logits.
void Row(const CrossEntropyAttributes& attributes, const float* logits, int64_t classes,
         int32_t target, float weight, float scale, double* sums, float* d_logits) {
  std::fill_n(sums, kMostSums, 0.0);
  if (target == attributes.ignore_index || weight == 0) {
    if (d_logits != nullptr) std::fill_n(d_logits, classes, 0.0f);
    return;
  }
  sums[1] = weight;
  scale *= weight;
  if (target < 0 || target >= classes) {
    sums[0] = std::numeric_limits<double>::quiet_NaN();
    if (d_logits != nullptr) std::fill_n(d_logits, classes, NAN);
    return;
  }
  int64_t next = 2;
  if (attributes.accuracy || attributes.top > 0) {
    const int64_t rank = RankOf(logits, classes, target);
    if (attributes.accuracy) sums[next++] = rank == 0 ? weight : 0;
    if (attributes.top > 0) sums[next] = rank < attributes.top ? weight : 0;
  }
  const double smoothing = attributes.label_smoothing;
  if (smoothing > 0) sums[0] = smoothing * (logits[target] - MeanOf(logits, classes));
  sums[0] += CrossEntropyRow(logits, target, scale, d_logits, classes);
  sums[0] *= weight;
  if (smoothing == 0 || d_logits == nullptr) return;
  const auto share = static_cast<float>(smoothing / static_cast<double>(classes)) * scale;
  for (int64_t j = 0; j < classes; ++j) d_logits[j] -= share;
  d_logits[target] += static_cast<float>(smoothing) * scale;
}

absl::StatusOr<Kernel> Loss(CpuBackend& backend, const Call& call, const CallTypes&, DType) {
  return Kernel([&backend, attributes = AttributesOf<CrossEntropyAttributes>(call)](
                    const KernelContext&, const KernelArguments& a) {
    const int64_t classes = a.inputs[0].shape().back(), rows = a.inputs[1].elements();
    const bool gradient = attributes.gradient;
    const LossForm form{attributes.weighted, gradient};
    const FloatInput logits(a.inputs[0]);
    const FloatOutput d_logits(gradient ? a.outputs[0] : a.inputs[0]);
    const int32_t* const targets = a.inputs[1].data<int32_t>();
    const float* const weights = form.weighted ? a.inputs[2].data<float>() : nullptr;
    const float scale = gradient ? a.inputs[ScalePlace(form)].data<float>()[0] : 0.0f;
    const bool counted = attributes.counts_classes();
    auto* const table = reinterpret_cast<double*>(backend.ReserveShared(
        std::max<int64_t>(rows, 1) * (kMostSums * static_cast<int64_t>(sizeof(double)) +
                                      (counted ? static_cast<int64_t>(sizeof(int32_t)) : 0))));
    if (table == nullptr) return;
    auto* const guesses = counted ? reinterpret_cast<int32_t*>(table + rows * kMostSums) : nullptr;
    backend.ForEachPiece(
        a.inputs[0], kSmallRowBlock, classes, 1,
        [&](int64_t first, int64_t count, const Room& room) {
          const int64_t start = first * classes, elements = count * classes;
          const float* from = logits.Read(start, elements, room[0]);
          float* const to = gradient ? d_logits.At(start, room[0]) : nullptr;
          for (int64_t r = 0; r < count; ++r) {
            const int32_t target = targets[first + r];
            const float weight = weights == nullptr ? 1.0f : weights[first + r];
            if (counted) {
              guesses[first + r] = Counts(attributes, classes, target)
                                       ? GuessOf(from + r * classes, static_cast<int32_t>(classes))
                                       : kNoTarget;
            }
            Row(attributes, from + r * classes, classes, target, weight, scale,
                table + (first + r) * kMostSums, gradient ? to + r * classes : nullptr);
          }
          if (gradient) d_logits.Finish(start, elements, room[0]);
        });
    double* const sums = a.outputs[gradient ? 1 : 0].data<double>();
    for (int64_t i = 0; i < attributes.sums(); ++i) {
      sums[i] = 0;
      for (int64_t r = 0; r < rows; ++r) sums[i] += table[r * kMostSums + i];
    }
    if (counted) CountClasses(targets, guesses, rows, classes, sums + attributes.sums());
  });
}

}  // namespace

KernelList CrossEntropyKernels() { return {{"cross_entropy", Loss}}; }

}  // namespace stagecoach::cpu
