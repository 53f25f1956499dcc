// TuneMatmul: times the matrix library's offers for the products of one call and keeps the choices
// in a table.
// Ownership: everything is borrowed for the call.
// Threads:   one: the executor's, as the products are queued by it.
// Units and shapes: seconds of one run of a call.
// Errors:    what timing answers: then the table has what was chosen before. An offer that the
//            library refuses to run after all is not chosen.
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

// The library behind a back end, as somebody sees it who tries its offers. A card in the programs.
class MatmulTrials {
 public:
  virtual ~MatmulTrials() = default;
  // What a table made here is of.
  virtual MatmulTableHeader Header() const = 0;
  // Of the products since it was asked last, each once, sorted.
  virtual std::vector<MatmulShape> TakeShapes() = 0;
  // For a shape that has run, those with the most of its epilogue first, each in the library's
  // order.
  virtual std::vector<MatmulOffer> Offers(const MatmulShape& shape) = 0;
  // Products of the shape are computed by this offer from now on. NOT_FOUND: it is none.
  virtual absl::Status Take(const MatmulShape& shape, const MatmulChoice& choice) = 0;
  // Whether the library refused to run what was taken. No fault of the device.
  virtual bool Refused(const MatmulShape& shape) const = 0;
  // Products of the shape are computed as if none had been tried.
  virtual void Forget(const MatmulShape& shape) = 0;
};

// Seconds of one run of a call, by the products as they are computed now.
using TimeCall = std::function<absl::StatusOr<double>()>;

// What came out for one product.
struct TunedProduct {
  MatmulShape shape;
  std::vector<MatmulOffer> offers;
  std::vector<double> seconds;  // of the call with each offer; NaN: not timed
  int first = -1;               // that the library would be believed; -1: it has none
  int chosen = -1;
};

// For each product that the call makes and the table has not. What is timed is the call and not the
// product alone: where the library fuses less, kernels follow, whose time counts.
absl::StatusOr<std::vector<TunedProduct>> TuneMatmul(MatmulTrials& trials, const TimeCall& time,
                                                     MatmulTable& table);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_MATMUL_MATMUL_TUNING_H_
