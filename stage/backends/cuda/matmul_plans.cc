#include "stage/backends/cuda/matmul_plans.h"

#include "base/check.h"

namespace stagecoach::cuda {

MatmulProblem DescribeMatmul(const MatmulShape& s) {
  CHECK(s.rows > 0 && s.in > 0 && s.out > 0) << s.rows << " x " << s.in << " x " << s.out;
  switch (s.kind) {
    case MatmulKind::kForward:  // y^T = w x^T; w^T and x^T are stored
      return {.transpose_a = true,
              .m = s.out,
              .n = s.rows,
              .k = s.in,
              .a_rows = s.in,
              .a_columns = s.out,
              .b_rows = s.in,
              .b_columns = s.rows};
    case MatmulKind::kBackwardInput:  // dx^T = w^T dy^T
      return {.m = s.in,
              .n = s.rows,
              .k = s.out,
              .a_rows = s.in,
              .a_columns = s.out,
              .b_rows = s.out,
              .b_columns = s.rows};
    case MatmulKind::kBackwardWeight:  // dw^T = x^T dy; dy^T is stored
      break;
  }
  return {.transpose_b = true,
          .m = s.in,
          .n = s.out,
          .k = s.rows,
          .a_rows = s.in,
          .a_columns = s.rows,
          .b_rows = s.out,
          .b_columns = s.rows,
          .beta = 1.0f};
}

int ChooseCandidate(const std::vector<MatmulCandidate>& candidates, size_t workspace_bytes) {
  for (size_t i = 0; i < candidates.size(); ++i) {
    const MatmulCandidate& c = candidates[i];
    const bool ordered = c.split_k <= 1 || c.reduction_scheme == kReductionComputeType;
    if (c.usable && ordered && c.workspace_bytes <= workspace_bytes) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace stagecoach::cuda
