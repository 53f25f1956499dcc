#include "stage/backends/cuda/matmul/matmul.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "stage/backends/cuda/matmul/matmul_choice.h"
#include "stage/backends/cuda/runtime/blas_library.h"

namespace stagecoach::cuda {
namespace {

static_assert(kReductionNone == CUBLASLT_REDUCTION_SCHEME_NONE);
static_assert(kReductionInPlace == CUBLASLT_REDUCTION_SCHEME_INPLACE);
static_assert(kReductionComputeType == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
static_assert(kReductionOutputType == CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE);

constexpr int kOffers = 16;
constexpr uint32_t kAlignment = 256;  // of every buffer of the device allocator

struct DestroyDesc {
  void operator()(cublasLtMatmulDesc_t d) const { Blas().MatmulDescDestroy(d); }
};
struct DestroyLayout {
  void operator()(cublasLtMatrixLayout_t l) const { Blas().MatrixLayoutDestroy(l); }
};
struct DestroyPreference {
  void operator()(cublasLtMatmulPreference_t p) const { Blas().MatmulPreferenceDestroy(p); }
};
using Desc = std::unique_ptr<std::remove_pointer_t<cublasLtMatmulDesc_t>, DestroyDesc>;
using Layout = std::unique_ptr<std::remove_pointer_t<cublasLtMatrixLayout_t>, DestroyLayout>;
using Preference =
    std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>, DestroyPreference>;

template <typename T>
bool Set(const Desc& desc, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  return Blas().MatmulDescSetAttribute(desc.get(), attribute, &value, sizeof value) ==
         CUBLAS_STATUS_SUCCESS;
}
template <typename T>
bool Set(const Preference& preference, cublasLtMatmulPreferenceAttributes_t attribute,
         const T& value) {
  return Blas().MatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value) ==
         CUBLAS_STATUS_SUCCESS;
}
template <typename T>
bool Get(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute,
         T& value) {
  size_t written = 0;
  return Blas().MatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof value,
                                             &written) == CUBLAS_STATUS_SUCCESS;
}

Layout MakeLayout(bool bf16, int64_t rows, int64_t columns, int64_t ld) {
  cublasLtMatrixLayout_t layout = nullptr;
  if (Blas().MatrixLayoutCreate(&layout, bf16 ? CUDA_R_16BF : CUDA_R_32F,
                                static_cast<uint64_t>(rows), static_cast<uint64_t>(columns),
                                ld) != CUBLAS_STATUS_SUCCESS) {
    return nullptr;
  }
  return Layout(layout);
}

cublasLtEpilogue_t NameOf(MatmulEpilogue epilogue) {
  switch (epilogue) {
    case MatmulEpilogue::kNone:
      break;
    case MatmulEpilogue::kBias:
      return CUBLASLT_EPILOGUE_BIAS;
    case MatmulEpilogue::kGelu:
      return CUBLASLT_EPILOGUE_GELU_AUX;
    case MatmulEpilogue::kBiasGelu:
      return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    case MatmulEpilogue::kGeluGradient:
      return CUBLASLT_EPILOGUE_DGELU;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

// The library's own D: with a fused GELU it is the activation, and y is the second matrix.
void* ResultOf(MatmulEpilogue epilogue, const MatmulOperands& operands) {
  return HasGelu(epilogue) ? operands.activation : operands.d;
}

// What changes from call to call. Bias and second matrix have the result's type, the default.
bool SetPointers(const Desc& desc, MatmulEpilogue epilogue, const MatmulOperands& operands) {
  bool good = true;
  if (HasBias(epilogue)) good = Set(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
  if (HasAux(epilogue)) {
    const void* const aux = HasGelu(epilogue) ? operands.d : operands.gelu_input;
    good = good && Set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux);
  }
  return good;
}

Desc MakeDesc(const MatmulProblem& problem, MatmulEpilogue epilogue,
              const MatmulOperands& operands) {
  cublasLtMatmulDesc_t raw = nullptr;
  const cublasComputeType_t compute =
      problem.tensor_float ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  if (Blas().MatmulDescCreate(&raw, compute, CUDA_R_32F) != CUBLAS_STATUS_SUCCESS) return nullptr;
  Desc desc(raw);
  const cublasOperation_t a = problem.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t b = problem.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  bool good = Set(desc, CUBLASLT_MATMUL_DESC_TRANSA, a) &&
              Set(desc, CUBLASLT_MATMUL_DESC_TRANSB, b) &&
              Set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, NameOf(epilogue)) &&
              SetPointers(desc, epilogue, operands);
  if (HasAux(epilogue)) {
    good = good && Set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, problem.m);
  }
  if (!good) return nullptr;
  return desc;
}

Preference MakePreference(size_t workspace_bytes) {
  cublasLtMatmulPreference_t raw = nullptr;
  if (Blas().MatmulPreferenceCreate(&raw) != CUBLAS_STATUS_SUCCESS) return nullptr;
  Preference preference(raw);
  const uint64_t bytes = workspace_bytes;
  bool good = Set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, bytes) &&
              Set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, kReductionMask);
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    good = good && Set(preference, attribute, kAlignment);
  }
  if (!good) return nullptr;
  return preference;
}

// What this version of the library does not know stays as it is.
MatmulAlgorithm NumbersOf(const cublasLtMatmulAlgo_t& algorithm) {
  MatmulAlgorithm a;
  Get(algorithm, CUBLASLT_ALGO_CONFIG_ID, a.id);
  Get(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID, a.tile);
  Get(algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID, a.stages);
  Get(algorithm, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, a.swizzle);
  Get(algorithm, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, a.custom_option);
  Get(algorithm, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, a.inner_shape);
  Get(algorithm, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, a.cluster);
  return a;
}

MatmulCandidate Describe(const cublasLtMatmulHeuristicResult_t& offer) {
  MatmulCandidate candidate = {.workspace_bytes = offer.workspaceSize};
  if (offer.state != CUBLAS_STATUS_SUCCESS) return candidate;
  MatmulAlgorithm& algorithm = candidate.algorithm = NumbersOf(offer.algo);
  candidate.usable =
      Get(offer.algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, algorithm.reduction_scheme) &&
      Get(offer.algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, algorithm.split_k);
  return candidate;
}

}  // namespace

struct Matmul::Plan {
  MatmulProblem problem;
  MatmulEpilogue epilogue = MatmulEpilogue::kNone;
  Desc desc;
  Layout a, b, d;
  cublasLtMatmulAlgo_t algorithm;
  MatmulAlgorithm numbers;  // of the algorithm
  size_t workspace_bytes = 0;
  MatmulOperands operands;  // of the last run; their places are never read by it
  bool used = false;        // since TakeUsed
  bool ran = false;         // since TakeShapes
  bool tried = false, refused = false;

  void Use(const cublasLtMatmulHeuristicResult_t& offer) {
    algorithm = offer.algo;
    numbers = Describe(offer).algorithm;
    workspace_bytes = offer.workspaceSize;
  }
};

// A plan without an algorithm yet, and those on offer.
struct Matmul::Asked {
  std::unique_ptr<Plan> plan;
  std::array<cublasLtMatmulHeuristicResult_t, kOffers> offers;
  std::vector<MatmulCandidate> candidates;
};

Matmul::Matmul(CudaContext* context, std::shared_ptr<const MatmulTable> table)
    : context_(context), table_(std::move(table)) {}
Matmul::~Matmul() = default;

Matmul::Asked Matmul::Ask(const MatmulShape& shape, MatmulEpilogue epilogue,
                          const MatmulOperands& operands) {
  Asked asked{.plan = std::make_unique<Plan>(), .offers = {}, .candidates = {}};
  Plan& plan = *asked.plan;
  const MatmulProblem& problem = plan.problem = DescribeMatmul(shape);
  plan.epilogue = epilogue;
  plan.desc = MakeDesc(problem, epilogue, operands);
  plan.a = MakeLayout(problem.bf16_operands, problem.a_rows, problem.a_columns, problem.a_rows);
  plan.b = MakeLayout(problem.bf16_operands, problem.b_rows, problem.b_columns, problem.b_ld);
  plan.d = MakeLayout(problem.bf16_result, problem.m, problem.n, problem.d_ld);
  const Preference preference = MakePreference(context_->workspace_bytes());
  if (!plan.desc || !plan.a || !plan.b || !plan.d || !preference) return asked;
  int count = 0;
  if (Blas().MatmulAlgoGetHeuristic(context_->blas(), plan.desc.get(), plan.a.get(), plan.b.get(),
                                    plan.d.get(), plan.d.get(), preference.get(), kOffers,
                                    asked.offers.data(), &count) != CUBLAS_STATUS_SUCCESS) {
    return asked;
  }
  for (int i = 0; i < count; ++i) asked.candidates.push_back(Describe(asked.offers[i]));
  return asked;
}

Matmul::Plan* Matmul::FindPlan(const MatmulShape& shape, const MatmulOperands& operands,
                               const char* what) {
  const auto found = plans_.find(shape);
  if (found != plans_.end()) return found->second.get();
  Asked asked;
  const auto taken =
      TakeOffer(shape, table_.get(), context_->workspace_bytes(), [&](MatmulEpilogue epilogue) {
        asked = Ask(shape, epilogue, operands);
        return asked.candidates;
      });
  if (absl::IsNotFound(taken.status())) {
    context_->NoteBlas(CUBLAS_STATUS_NOT_SUPPORTED, what);
    return nullptr;
  }
  if (!taken.ok()) {
    context_->fault()->NoteStatus(taken.status(), what);
    return nullptr;
  }
  CHECK(asked.plan->epilogue == taken->fused);
  asked.plan->Use(asked.offers[taken->index]);
  return plans_.emplace(shape, std::move(asked.plan)).first->second.get();
}

MatmulEpilogue Matmul::Run(const MatmulShape& shape, const MatmulOperands& operands,
                           const char* what) {
  if (!context_->ok()) return MatmulEpilogue::kNone;
  Plan* const plan = FindPlan(shape, operands, what);
  if (plan == nullptr) return MatmulEpilogue::kNone;
  if (!SetPointers(plan->desc, plan->epilogue, operands)) {
    context_->NoteBlas(CUBLAS_STATUS_INVALID_VALUE, what);
    return plan->epilogue;
  }
  plan->used = plan->ran = true;
  plan->operands = operands;
  const float alpha = 1.0f;
  void* const d = ResultOf(plan->epilogue, operands);
  const void* const c = shape.residual ? operands.residual : d;
  const cublasStatus_t status = Blas().Matmul(
      context_->blas(), plan->desc.get(), &alpha, operands.a, plan->a.get(), operands.b,
      plan->b.get(), &plan->problem.beta, c, plan->d.get(), d, plan->d.get(), &plan->algorithm,
      context_->workspace(), plan->workspace_bytes, context_->stream());
  // An offer that is only tried is given up; nothing was queued.
  plan->refused |= status != CUBLAS_STATUS_SUCCESS;
  if (!plan->tried) context_->NoteBlas(status, what);
  return plan->epilogue;
}

std::vector<std::string> Matmul::TakeUsed() {
  std::vector<std::string> used;
  for (const auto& [shape, plan] : plans_) {
    if (!plan->used) continue;
    plan->used = false;
    used.push_back(absl::StrCat("cuBLASLt ", AlgorithmText(plan->numbers)));
    if (shape.epilogue == MatmulEpilogue::kNone) continue;
    absl::StrAppend(&used.back(), ", ", EpilogueName(shape.epilogue),
                    plan->epilogue == shape.epilogue ? " fused" : " asked for, fused: ",
                    plan->epilogue == shape.epilogue ? "" : EpilogueName(plan->epilogue));
  }
  return used;
}

MatmulTableHeader TableHeaderOf(const CudaContext& context) {
  return {.card = context.card(),
          .compute_capability = context.compute_capability(),
          .library_version = static_cast<int64_t>(Blas().GetVersion()),
          .workspace_bytes = static_cast<int64_t>(context.workspace_bytes())};
}

MatmulTableHeader Matmul::Header() const { return TableHeaderOf(*context_); }

std::vector<MatmulShape> Matmul::TakeShapes() {
  std::vector<MatmulShape> shapes;
  for (const auto& [shape, plan] : plans_) {
    if (std::exchange(plan->ran, false)) shapes.push_back(shape);
  }
  std::sort(shapes.begin(), shapes.end());
  return shapes;
}

std::vector<MatmulOffer> Matmul::Offers(const MatmulShape& shape) {
  std::vector<MatmulOffer> offers;
  const auto found = plans_.find(shape);
  if (found == plans_.end()) return offers;
  context_->MakeCurrent();
  for (const MatmulEpilogue epilogue : EpiloguesToTry(shape)) {
    const Asked asked = Ask(shape, epilogue, found->second->operands);
    for (const MatmulCandidate& candidate : asked.candidates) {
      offers.push_back({epilogue, candidate});
    }
  }
  return offers;
}

absl::Status Matmul::Take(const MatmulShape& shape, const MatmulChoice& choice) {
  MatmulTable wanted(Header());
  wanted.Add(shape, choice);
  const auto found = plans_.find(shape);
  const MatmulOperands operands =
      found == plans_.end() ? MatmulOperands() : found->second->operands;
  context_->MakeCurrent();
  Asked asked = Ask(shape, choice.fused, operands);
  const auto taken = TakeOffer(shape, &wanted, context_->workspace_bytes(),
                               [&](MatmulEpilogue) { return asked.candidates; });
  if (!taken.ok()) return absl::NotFoundError(taken.status().message());
  asked.plan->Use(asked.offers[taken->index]);
  asked.plan->operands = operands;
  asked.plan->tried = true;
  plans_[shape] = std::move(asked.plan);
  return absl::OkStatus();
}

bool Matmul::Refused(const MatmulShape& shape) const {
  const auto found = plans_.find(shape);
  return found != plans_.end() && found->second->refused;
}

void Matmul::Forget(const MatmulShape& shape) { plans_.erase(shape); }

}  // namespace stagecoach::cuda
