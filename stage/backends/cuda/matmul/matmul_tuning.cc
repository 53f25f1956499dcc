#include "stage/backends/cuda/matmul/matmul_tuning.h"

#include <cmath>
#include <limits>
#include <utility>

#include "base/errors/status.h"
#include "stage/backends/cuda/matmul/matmul_choice.h"

namespace stagecoach::cuda {
namespace {

constexpr double kNotTimed = std::numeric_limits<double>::quiet_NaN();

MatmulChoice ChoiceOf(const MatmulOffer& offer) { return {offer.fused, offer.candidate.algorithm}; }

// Whether a table that names it means it: of offers that it cannot tell apart the first runs.
bool MayTry(const std::vector<MatmulOffer>& offers, size_t place, size_t workspace_bytes) {
  if (!MayTake(offers[place].candidate, workspace_bytes)) return false;
  for (size_t i = 0; i < place; ++i) {
    if (!MayTake(offers[i].candidate, workspace_bytes)) continue;
    if (ChoiceOf(offers[i]) == ChoiceOf(offers[place])) return false;
  }
  return true;
}

absl::StatusOr<double> TimeOffer(MatmulTrials& trials, const TimeCall& time,
                                 const MatmulShape& shape, const MatmulOffer& offer) {
  RETURN_IF_ERROR(trials.Take(shape, ChoiceOf(offer)));
  ASSIGN_OR_RETURN(const double seconds, time());
  return trials.Refused(shape) ? kNotTimed : seconds;
}

absl::Status TimeOffers(MatmulTrials& trials, const TimeCall& time, size_t workspace_bytes,
                        TunedProduct& product) {
  for (size_t i = 0; i < product.offers.size(); ++i) {
    if (!MayTry(product.offers, i, workspace_bytes)) continue;
    ASSIGN_OR_RETURN(product.seconds[i], TimeOffer(trials, time, product.shape, product.offers[i]));
  }
  return absl::OkStatus();
}

absl::StatusOr<TunedProduct> Tune(MatmulTrials& trials, const TimeCall& time,
                                  const MatmulShape& shape, size_t workspace_bytes) {
  TunedProduct product{.shape = shape, .offers = trials.Offers(shape), .seconds = {}};
  product.seconds.assign(product.offers.size(), kNotTimed);
  const absl::Status timed = TimeOffers(trials, time, workspace_bytes, product);
  trials.Forget(shape);
  RETURN_IF_ERROR(timed);
  std::vector<MatmulCandidate> candidates;
  for (const MatmulOffer& offer : product.offers) candidates.push_back(offer.candidate);
  product.first = ChooseCandidate(candidates, workspace_bytes);
  product.chosen = ChooseByTime(candidates, product.seconds, workspace_bytes);
  return product;
}

}  // namespace

absl::StatusOr<std::vector<TunedProduct>> TuneMatmul(MatmulTrials& trials, const TimeCall& time,
                                                     MatmulTable& table) {
  trials.TakeShapes();  // of what ran before
  RETURN_IF_ERROR(time().status());
  std::vector<TunedProduct> products;
  for (const MatmulShape& shape : trials.TakeShapes()) {
    if (table.Find(shape) != nullptr) continue;
    const auto workspace_bytes = static_cast<size_t>(table.header().workspace_bytes);
    ASSIGN_OR_RETURN(TunedProduct product, Tune(trials, time, shape, workspace_bytes));
    if (product.chosen >= 0) {
      table.Add(shape, ChoiceOf(product.offers[static_cast<size_t>(product.chosen)]));
    }
    products.push_back(std::move(product));
  }
  return products;
}

}  // namespace stagecoach::cuda
