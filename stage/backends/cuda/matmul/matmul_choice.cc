#include "stage/backends/cuda/matmul/matmul_choice.h"

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/errors/check.h"

namespace stagecoach::cuda {
namespace {

absl::StatusOr<TakenOffer> TakeNamed(const MatmulShape& shape, const MatmulChoice& choice,
                                     size_t workspace_bytes, OffersFor offers) {
  const std::vector<MatmulCandidate> candidates = offers(choice.fused);
  for (size_t i = 0; i < candidates.size(); ++i) {
    const bool named = candidates[i].algorithm == choice.algorithm;
    if (named && MayTake(candidates[i], workspace_bytes)) {
      return TakenOffer{choice.fused, static_cast<int>(i)};
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the table of matrix algorithms has ", AlgorithmText(choice.algorithm), ", fused ",
      EpilogueName(choice.fused), ", for ", ShapeText(shape), ", which is none of the library's ",
      candidates.size(), " offers: the table is of another library; ", kMakeMatmulTable,
      ", or start without --matmul-table"));
}

bool WasTimed(double seconds) { return std::isfinite(seconds) && seconds > 0; }

}  // namespace

absl::StatusOr<TakenOffer> TakeOffer(const MatmulShape& shape, const MatmulTable* table,
                                     size_t workspace_bytes, OffersFor offers) {
  const MatmulChoice* const choice = table == nullptr ? nullptr : table->Find(shape);
  if (choice != nullptr) return TakeNamed(shape, *choice, workspace_bytes, offers);
  // With less of an epilogue more shapes are offered an algorithm.
  for (const MatmulEpilogue epilogue : EpiloguesToTry(shape)) {
    const int index = ChooseCandidate(offers(epilogue), workspace_bytes);
    if (index >= 0) return TakenOffer{epilogue, index};
  }
  return absl::NotFoundError(absl::StrCat("no algorithm for ", ShapeText(shape)));
}

int ChooseByTime(const std::vector<MatmulCandidate>& candidates, const std::vector<double>& seconds,
                 size_t workspace_bytes) {
  CHECK_EQ(candidates.size(), seconds.size());
  const int first = ChooseCandidate(candidates, workspace_bytes);
  int best = -1;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (!MayTake(candidates[i], workspace_bytes) || !WasTimed(seconds[i])) continue;
    if (best < 0 || seconds[i] < seconds[static_cast<size_t>(best)]) best = static_cast<int>(i);
  }
  if (best < 0) return first;
  const double own = seconds[static_cast<size_t>(first)];
  if (!WasTimed(own)) return best;
  return seconds[static_cast<size_t>(best)] * (1 + kFasterBy) < own ? best : first;
}

}  // namespace stagecoach::cuda
