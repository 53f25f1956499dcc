// TuneMatmul: times the matrix library's offers for the products of one call and keeps the choices
// in a table.
// Ownership: everything is borrowed for the call.
// Threads:   one: the executor's, as the products are queued by it.
// Units and shapes: seconds of one run of a call.
// Errors:    those of `time`; the table then has the choices made before. If the library refuses to
//            run an offer, that one is not chosen.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_MATMUL_MATMUL_TUNING_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_MATMUL_MATMUL_TUNING_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "stage/backends/cuda/matmul/matmul_plans.h"
#include "stage/backends/cuda/matmul/matmul_table.h"

namespace stagecoach::cuda {

struct MatmulOffer {
  MatmulEpilogue fused = MatmulEpilogue::kNone;
  MatmulCandidate candidate;
};

// The matrix library behind a back end, for trying its offers. In the programs it is a card's.
class MatmulTrials {
 public:
  virtual ~MatmulTrials() = default;
  // The header of a table made here.
  virtual MatmulTableHeader Header() const = 0;
  // The shapes of the products since the last call, each once, sorted.
  virtual std::vector<MatmulShape> TakeShapes() = 0;
  // The offers for a shape that has run, those with the most of its epilogue first. For equal
  // epilogues in the library's order.
  virtual std::vector<MatmulOffer> Offers(const MatmulShape& shape) = 0;
  // Products of the shape are computed by this offer from now on. NOT_FOUND: no such offer.
  virtual absl::Status Take(const MatmulShape& shape, const MatmulChoice& choice) = 0;
  // Whether the library refused to run the offer taken. That is no fault of the device.
  virtual bool Refused(const MatmulShape& shape) const = 0;
  // Products of the shape are computed as if none had been tried.
  virtual void Forget(const MatmulShape& shape) = 0;
};

// Seconds of one run of a call, with the offers taken at present.
using TimeCall = std::function<absl::StatusOr<double>()>;

// The result for one product.
struct TunedProduct {
  MatmulShape shape;
  std::vector<MatmulOffer> offers;
  std::vector<double> seconds;  // of the call with each offer; NaN: not timed
  int first = -1;               // the choice without timing; -1: none
  int chosen = -1;
};

// Tunes each product of the call that the table lacks. It times the call and not the product alone:
// if the library fuses less, the time of the kernels that follow counts too.
absl::StatusOr<std::vector<TunedProduct>> TuneMatmul(MatmulTrials& trials, const TimeCall& time,
                                                     MatmulTable& table);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_MATMUL_MATMUL_TUNING_H_
