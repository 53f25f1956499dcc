// Questions to the matrix library as values: the column-major product for each linear operation.
// Also which of the library's offers is taken. Pure, so that it is tested without a card.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_MATMUL_MATMUL_PLANS_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_MATMUL_MATMUL_PLANS_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace stagecoach::cuda {

enum class MatmulKind : uint8_t {
  kForward,         // y[rows, out] = x[rows, in] w[out, in]^T
  kBackwardInput,   // dx[rows, in] = dy[rows, out] w[out, in]
  kBackwardWeight,  // dw[out, in] adds dy[rows, out]^T x[rows, in]
};

// The type in which products are computed; sums are float32 in all of them.
enum class MatmulType : uint8_t {
  kFloat32,        // float32 operands and products
  kTensorFloat32,  // float32 operands, rounded to 10 bits of mantissa before they are multiplied
  kBfloat16,       // bfloat16 operands; results bfloat16, kBackwardWeight's float32
};

// Operations on a result before it is stored and rounded.
enum class MatmulEpilogue : uint8_t {
  kNone,
  kBias,          // kForward: adds bias[out]
  kGelu,          // kForward: stores y, and gelu(y) in the activation
  kBiasGelu,      // kForward: both
  kGeluGradient,  // kBackwardInput: multiplies by gelu'(gelu_input)
};
inline bool HasBias(MatmulEpilogue epilogue) {
  return epilogue == MatmulEpilogue::kBias || epilogue == MatmulEpilogue::kBiasGelu;
}
inline bool HasGelu(MatmulEpilogue epilogue) {
  return epilogue == MatmulEpilogue::kGelu || epilogue == MatmulEpilogue::kBiasGelu;
}
// Whether there is a second matrix of the result's shape: the pre-activation, written or read.
inline bool HasAux(MatmulEpilogue epilogue) {
  return HasGelu(epilogue) || epilogue == MatmulEpilogue::kGeluGradient;
}
// "none", "bias", "gelu", "bias_gelu", "gelu_gradient".
const char* EpilogueName(MatmulEpilogue epilogue);
// The epilogue of a forward product.
MatmulEpilogue ForwardEpilogue(bool bias, bool gelu);

// The key of the plan cache: nothing else decides about a plan, hence about the bits.
struct MatmulShape {
  MatmulKind kind = MatmulKind::kForward;
  int64_t rows = 0, in = 0, out = 0;
  MatmulType type = MatmulType::kFloat32;
  MatmulEpilogue epilogue = MatmulEpilogue::kNone;
  bool residual = false;  // kForward without a GELU: adds a matrix like the result
  // From one row of y or dy to the next, if more than `out`, else 0. Then there is no epilogue and
  // no residual.
  int64_t out_stride = 0;

  friend bool operator==(const MatmulShape&, const MatmulShape&) = default;
  friend auto operator<=>(const MatmulShape&, const MatmulShape&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const MatmulShape& s) {
    return H::combine(std::move(h), s.kind, s.rows, s.in, s.out, s.type, s.epilogue, s.residual,
                      s.out_stride);
  }
};

// Addresses of the operands, in the shape's types.
struct MatmulOperands {
  const void *a = nullptr, *b = nullptr;  // as DescribeMatmul names them
  const void* bias = nullptr;
  void* d = nullptr;                 // y, dx or dw; with a GELU y is the pre-activation
  void* activation = nullptr;        // kGelu, kBiasGelu
  const void* gelu_input = nullptr;  // kGeluGradient
  const void* residual = nullptr;    // with shape.residual
};

// D[m, n] = op(A) op(B) + beta C, all column-major. The library sees row-major arrays as their own
// transposes. op(A) is m x k, op(B) is k x n, C is the residual or else D.
struct MatmulProblem {
  bool transpose_a = false, transpose_b = false;
  int64_t m = 0, n = 0, k = 0;
  int64_t a_rows = 0, a_columns = 0, b_rows = 0, b_columns = 0;  // as stored; a's ld = rows
  int64_t b_ld = 0, d_ld = 0;                                    // from column to column
  float beta = 0.0f;
  bool bf16_operands = false, bf16_result = false;  // float32 otherwise
  bool tensor_float = false;
};
// A is the weight for kForward and kBackwardInput, x for kBackwardWeight; B is x, dy, dy.
MatmulProblem DescribeMatmul(const MatmulShape& shape);

// Epilogues to ask the library for, the largest first, kNone last. Kernels do the missing part. The
// library fuses a GELU only in bfloat16. It does not say how exactly it evaluates tanh: float32 is
// held to 1e-5 of the reference, bfloat16 keeps 8 bits. And m must be divisible by 8: it is the
// leading dimension of the library's second matrix.
std::vector<MatmulEpilogue> EpiloguesToTry(const MatmulShape& shape);

// Reduction schemes as cublasLtReductionScheme_t numbers them.
inline constexpr uint32_t kReductionNone = 0, kReductionInPlace = 1, kReductionComputeType = 2,
                          kReductionOutputType = 4;
// The schemes that we ask for. A separate pass adds partial products in float from the workspace.
// Blocks never add into the result in the order in which they finish.
inline constexpr uint32_t kReductionMask = kReductionComputeType;

// An algorithm in the library's own numbers (cublasLtMatmulAlgoConfigAttributes_t), which tell the
// offers for one shape apart.
struct MatmulAlgorithm {
  int32_t id = 0;
  uint32_t tile = 0, stages = 0;
  int32_t split_k = 1;
  uint32_t reduction_scheme = kReductionNone;
  uint32_t swizzle = 0, custom_option = 0;
  uint16_t inner_shape = 0, cluster = 0;

  friend bool operator==(const MatmulAlgorithm&, const MatmulAlgorithm&) = default;
};
// For people: "66 tile 20 stages 14 split-k 1 cluster 3".
std::string AlgorithmText(const MatmulAlgorithm& algorithm);
// Whether the result is independent of the order in which blocks finish.
bool HasFixedOrder(const MatmulAlgorithm& algorithm);

struct MatmulCandidate {
  bool usable = false;  // the library says that it can run
  MatmulAlgorithm algorithm;
  size_t workspace_bytes = 0;
};
// Whether it can run, fits, and has a fixed order.
bool MayTake(const MatmulCandidate& candidate, size_t workspace_bytes);
// Index of the first offer whose result does not depend on timing and that fits, -1 if none does.
// The library orders them by its forecast of time.
int ChooseCandidate(const std::vector<MatmulCandidate>& candidates, size_t workspace_bytes);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_MATMUL_MATMUL_PLANS_H_
