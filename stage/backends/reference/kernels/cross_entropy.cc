#include "operations/losses/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "operations/losses/loss_types.h"
#include "stage/backends/reference/kernel_list.h"

namespace stagecoach::reference {
namespace {

double LogSumExp(const float* logits, int64_t classes) {
  double largest = -INFINITY, total = 0;
  for (int64_t j = 0; j < classes; ++j) largest = std::max(largest, double{logits[j]});
  for (int64_t j = 0; j < classes; ++j) total += std::exp(logits[j] - largest);
  return largest + std::log(total);
}

// Classes that come before the target by their logits; of equal ones the lower class comes first.
// Written so that logits that are not numbers come before it, and all if its own is none.
int64_t RankOf(const float* logits, int64_t classes, int64_t target) {
  const float own = logits[target];
  int64_t rank = 0;
  for (int64_t j = 0; j < target; ++j) rank += !(logits[j] < own) ? 1 : 0;
  for (int64_t j = target + 1; j < classes; ++j) rank += !(logits[j] <= own) ? 1 : 0;
  return rank;
}

// The class that comes first; -1: none does where a logit is not a number.
int64_t GuessOf(const float* logits, int64_t classes) {
  if (std::any_of(logits, logits + classes, [](float logit) { return std::isnan(logit); })) {
    return -1;
  }
  return std::max_element(logits, logits + classes) - logits;
}

// counts: [classes, kClassCounts].
void CountRow(int64_t target, int64_t guess, double* counts) {
  if (guess == target) ++counts[target * kClassCounts];
  ++counts[target * kClassCounts + 1];
  if (guess >= 0) ++counts[guess * kClassCounts + 2];
}

// One row: adds to the sums; d_logits may be null or logits.
void Row(const CrossEntropyAttributes& attributes, const float* logits, int64_t classes,
         int64_t target, double weight, double scale, std::vector<double>& sums, float* d_logits) {
  const bool known = target >= 0 && target < classes;
  if (attributes.counts_classes() && known && target != attributes.ignore_index) {
    CountRow(target, GuessOf(logits, classes), sums.data() + attributes.sums());
  }
  if (target == attributes.ignore_index || weight == 0) {
    if (d_logits != nullptr) std::fill_n(d_logits, classes, 0.0f);
    return;
  }
  sums[1] += weight;
  if (!known) {
    sums[0] = std::numeric_limits<double>::quiet_NaN();
    if (d_logits != nullptr) std::fill_n(d_logits, classes, NAN);
    return;
  }
  const double normalizer = LogSumExp(logits, classes);
  const double smooth = attributes.label_smoothing / static_cast<double>(classes);
  double spread = 0;  // a class may have a logit of minus infinity where nothing is spread
  for (int64_t j = 0; attributes.label_smoothing > 0 && j < classes; ++j) {
    spread += attributes.label_smoothing * (logits[j] / static_cast<double>(classes));
  }
  sums[0] += weight * (normalizer - (1 - attributes.label_smoothing) * logits[target] - spread);
  const int64_t rank = RankOf(logits, classes, target);
  size_t next = 2;
  if (attributes.accuracy) sums[next++] += rank == 0 ? weight : 0;
  if (attributes.top > 0) sums[next] += rank < attributes.top ? weight : 0;
  if (d_logits == nullptr) return;
  for (int64_t j = 0; j < classes; ++j) {
    const double q = smooth + (j == target ? 1 - attributes.label_smoothing : 0);
    d_logits[j] = static_cast<float>((std::exp(logits[j] - normalizer) - q) * scale * weight);
  }
}

absl::StatusOr<Kernel> Loss(ReferenceBackend&, const Call& call, const CallTypes&, DType) {
  return Kernel([attributes = AttributesOf<CrossEntropyAttributes>(call)](
                    const KernelContext&, const KernelArguments& a) {
    const int64_t classes = a.inputs[0].shape().back(), rows = a.inputs[1].elements();
    const LossForm form{attributes.weighted, attributes.gradient};
    const double scale = form.gradient ? a.inputs[ScalePlace(form)].data<float>()[0] : 0.0f;
    std::vector<double> sums(a.outputs[form.gradient ? 1 : 0].elements(), 0.0);
    for (int64_t r = 0; r < rows; ++r) {
      Row(attributes, a.inputs[0].data<float>() + r * classes, classes,
          a.inputs[1].data<int32_t>()[r], form.weighted ? a.inputs[2].data<float>()[r] : 1.0, scale,
          sums, attributes.gradient ? a.outputs[0].data<float>() + r * classes : nullptr);
    }
    std::copy(sums.begin(), sums.end(), a.outputs[attributes.gradient ? 1 : 0].data<double>());
  });
}

}  // namespace

KernelList CrossEntropyKernels() { return {{"cross_entropy", Loss}}; }

}  // namespace stagecoach::reference
