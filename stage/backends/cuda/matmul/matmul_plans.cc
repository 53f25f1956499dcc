#include "stage/backends/cuda/matmul/matmul_plans.h"

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"

namespace stagecoach::cuda {

namespace {

// Sizes alone.
MatmulProblem Sizes(const MatmulShape& s) {
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

}  // namespace

const char* EpilogueName(MatmulEpilogue epilogue) {
  switch (epilogue) {
    case MatmulEpilogue::kNone:
      return "none";
    case MatmulEpilogue::kBias:
      return "bias";
    case MatmulEpilogue::kGelu:
      return "gelu";
    case MatmulEpilogue::kBiasGelu:
      return "bias_gelu";
    case MatmulEpilogue::kGeluGradient:
      return "gelu_gradient";
  }
  return "unknown";
}

MatmulEpilogue ForwardEpilogue(bool bias, bool gelu) {
  if (gelu) return bias ? MatmulEpilogue::kBiasGelu : MatmulEpilogue::kGelu;
  return bias ? MatmulEpilogue::kBias : MatmulEpilogue::kNone;
}

MatmulProblem DescribeMatmul(const MatmulShape& s) {
  CHECK(s.rows > 0 && s.in > 0 && s.out > 0) << s.rows << " x " << s.in << " x " << s.out;
  MatmulProblem problem = Sizes(s);
  problem.b_ld = problem.b_rows;
  problem.d_ld = problem.m;
  if (s.out_stride != 0) {
    CHECK(s.out_stride >= s.out && s.epilogue == MatmulEpilogue::kNone && !s.residual)
        << "a stride of " << s.out_stride << " for " << s.out << " columns";
    (s.kind == MatmulKind::kForward ? problem.d_ld : problem.b_ld) = s.out_stride;
  }
  problem.bf16_operands = s.type == MatmulType::kBfloat16;
  // Weight gradients are added up over micro-batches.
  problem.bf16_result = problem.bf16_operands && s.kind != MatmulKind::kBackwardWeight;
  if (s.residual) {
    CHECK(s.kind == MatmulKind::kForward && !HasAux(s.epilogue)) << "a product with a residual";
    problem.beta = 1.0f;
  }
  problem.tensor_float = s.type == MatmulType::kTensorFloat32;
  return problem;
}

std::vector<MatmulEpilogue> EpiloguesToTry(const MatmulShape& shape) {
  std::vector<MatmulEpilogue> epilogues;
  const bool can_aux = shape.type == MatmulType::kBfloat16 && DescribeMatmul(shape).m % 8 == 0;
  if (HasAux(shape.epilogue) && can_aux) epilogues.push_back(shape.epilogue);
  if (HasBias(shape.epilogue)) epilogues.push_back(MatmulEpilogue::kBias);
  epilogues.push_back(MatmulEpilogue::kNone);
  return epilogues;
}

std::string AlgorithmText(const MatmulAlgorithm& a) {
  return absl::StrCat(a.id, " tile ", a.tile, " stages ", a.stages, " split-k ", a.split_k,
                      " cluster ", a.cluster);
}

bool HasFixedOrder(const MatmulAlgorithm& algorithm) {
  return algorithm.split_k <= 1 || algorithm.reduction_scheme == kReductionComputeType;
}

bool MayTake(const MatmulCandidate& candidate, size_t workspace_bytes) {
  return candidate.usable && HasFixedOrder(candidate.algorithm) &&
         candidate.workspace_bytes <= workspace_bytes;
}

int ChooseCandidate(const std::vector<MatmulCandidate>& candidates, size_t workspace_bytes) {
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (MayTake(candidates[i], workspace_bytes)) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace stagecoach::cuda
