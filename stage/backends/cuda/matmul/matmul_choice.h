// Chooses among the matrix library's offers: by a table, by their order, or by their times. Pure,
// so that it is tested without a card.
// Ownership: everything is borrowed for the call.
// Threads:   pure functions.
// Units and shapes: seconds, bytes.
// Errors:    NOT_FOUND if no offer may be taken. INVALID_ARGUMENT if the table's algorithm is not
//            among the offers: an error of the job's shape, which other jobs need not have.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_MATMUL_MATMUL_CHOICE_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_MATMUL_MATMUL_CHOICE_H_

#include <cstddef>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "stage/backends/cuda/matmul/matmul_plans.h"
#include "stage/backends/cuda/matmul/matmul_table.h"

namespace stagecoach::cuda {

struct TakenOffer {
  MatmulEpilogue fused = MatmulEpilogue::kNone;
  int index = 0;  // among the offers for that epilogue
};

// The library's offers for a shape with this epilogue, in its own order.
using OffersFor = absl::FunctionRef<std::vector<MatmulCandidate>(MatmulEpilogue)>;

// If the table has the shape, the offer that it names, in any place (null: there is no table). Else
// the first offer that may be taken, with as much of the epilogue as the library has. The epilogue
// of the last call of `offers` is the one that is taken.
absl::StatusOr<TakenOffer> TakeOffer(const MatmulShape& shape, const MatmulTable* table,
                                     size_t workspace_bytes, OffersFor offers);

// An offer must be faster than the library's own first by this share. Less is noise, and bits do
// not change without a reason.
inline constexpr double kFasterBy = 0.03;

// Index of the fastest candidate that may be taken. The first of those stays unless another is
// faster by more than kFasterBy. Of equally fast ones it is the first. For an untimed candidate
// seconds[i] is not a positive number. If none was timed, it is the first that may be taken, or -1
// if there is none.
int ChooseByTime(const std::vector<MatmulCandidate>& candidates, const std::vector<double>& seconds,
                 size_t workspace_bytes);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_MATMUL_MATMUL_CHOICE_H_
