#include "stage/backends/cuda/matmul.h"

#include <array>
#include <utility>

#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {
namespace {

static_assert(kReductionNone == CUBLASLT_REDUCTION_SCHEME_NONE);
static_assert(kReductionInPlace == CUBLASLT_REDUCTION_SCHEME_INPLACE);
static_assert(kReductionComputeType == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
static_assert(kReductionOutputType == CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE);

constexpr int kOffers = 16;
constexpr uint32_t kAlignment = 256;  // of every buffer of the device allocator

struct DestroyDesc {
  void operator()(cublasLtMatmulDesc_t d) const { cublasLtMatmulDescDestroy(d); }
};
struct DestroyLayout {
  void operator()(cublasLtMatrixLayout_t l) const { cublasLtMatrixLayoutDestroy(l); }
};
struct DestroyPreference {
  void operator()(cublasLtMatmulPreference_t p) const { cublasLtMatmulPreferenceDestroy(p); }
};
using Desc = std::unique_ptr<std::remove_pointer_t<cublasLtMatmulDesc_t>, DestroyDesc>;
using Layout = std::unique_ptr<std::remove_pointer_t<cublasLtMatrixLayout_t>, DestroyLayout>;
using Preference =
    std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>, DestroyPreference>;

template <typename T>
bool Set(const Desc& desc, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  return cublasLtMatmulDescSetAttribute(desc.get(), attribute, &value, sizeof value) ==
         CUBLAS_STATUS_SUCCESS;
}
template <typename T>
bool Set(const Preference& preference, cublasLtMatmulPreferenceAttributes_t attribute,
         const T& value) {
  return cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value) ==
         CUBLAS_STATUS_SUCCESS;
}
template <typename T>
bool Get(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute,
         T& value) {
  size_t written = 0;
  return cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof value,
                                              &written) == CUBLAS_STATUS_SUCCESS;
}

Layout MakeLayout(int64_t rows, int64_t columns) {
  cublasLtMatrixLayout_t layout = nullptr;
  if (cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, static_cast<uint64_t>(rows),
                                 static_cast<uint64_t>(columns), rows) != CUBLAS_STATUS_SUCCESS) {
    return nullptr;
  }
  return Layout(layout);
}

Desc MakeDesc(const MatmulProblem& problem, bool fuse_bias, const float* bias) {
  cublasLtMatmulDesc_t raw = nullptr;
  if (cublasLtMatmulDescCreate(&raw, CUBLAS_COMPUTE_32F, CUDA_R_32F) != CUBLAS_STATUS_SUCCESS) {
    return nullptr;
  }
  Desc desc(raw);
  const cublasOperation_t a = problem.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t b = problem.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasLtEpilogue_t epilogue =
      fuse_bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  bool good = Set(desc, CUBLASLT_MATMUL_DESC_TRANSA, a) &&
              Set(desc, CUBLASLT_MATMUL_DESC_TRANSB, b) &&
              Set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  if (fuse_bias) good = good && Set(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  if (!good) return nullptr;
  return desc;
}

Preference MakePreference(size_t workspace_bytes) {
  cublasLtMatmulPreference_t raw = nullptr;
  if (cublasLtMatmulPreferenceCreate(&raw) != CUBLAS_STATUS_SUCCESS) return nullptr;
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

MatmulCandidate Describe(const cublasLtMatmulHeuristicResult_t& offer) {
  MatmulCandidate candidate = {.workspace_bytes = offer.workspaceSize};
  candidate.usable =
      offer.state == CUBLAS_STATUS_SUCCESS &&
      Get(offer.algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, candidate.reduction_scheme) &&
      Get(offer.algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, candidate.split_k);
  return candidate;
}

}  // namespace

struct Matmul::Plan {
  MatmulProblem problem;
  bool fuse_bias = false;
  Desc desc;
  Layout a, b, d;
  cublasLtMatmulAlgo_t algorithm;
  size_t workspace_bytes = 0;
};

Matmul::Matmul(CudaContext* context) : context_(context) {}
Matmul::~Matmul() = default;

bool Matmul::MakePlan(const MatmulShape& shape, bool fuse_bias, const float* bias, Plan& plan) {
  const MatmulProblem& problem = plan.problem = DescribeMatmul(shape);
  plan.fuse_bias = fuse_bias;
  plan.desc = MakeDesc(problem, fuse_bias, bias);
  plan.a = MakeLayout(problem.a_rows, problem.a_columns);
  plan.b = MakeLayout(problem.b_rows, problem.b_columns);
  plan.d = MakeLayout(problem.m, problem.n);
  const Preference preference = MakePreference(context_->workspace_bytes());
  if (!plan.desc || !plan.a || !plan.b || !plan.d || !preference) return false;
  std::array<cublasLtMatmulHeuristicResult_t, kOffers> offers{};
  int count = 0;
  if (cublasLtMatmulAlgoGetHeuristic(context_->blas(), plan.desc.get(), plan.a.get(), plan.b.get(),
                                     plan.d.get(), plan.d.get(), preference.get(), kOffers,
                                     offers.data(), &count) != CUBLAS_STATUS_SUCCESS) {
    return false;
  }
  std::vector<MatmulCandidate> candidates;
  for (int i = 0; i < count; ++i) candidates.push_back(Describe(offers[i]));
  const int choice = ChooseCandidate(candidates, context_->workspace_bytes());
  if (choice < 0) return false;
  plan.algorithm = offers[choice].algo;
  plan.workspace_bytes = offers[choice].workspaceSize;
  return true;
}

Matmul::Plan* Matmul::FindPlan(const MatmulShape& shape, const float* bias, const char* what) {
  const auto found = plans_.find(shape);
  if (found != plans_.end()) return found->second.get();
  auto plan = std::make_unique<Plan>();
  // Without the epilogue more shapes are offered an algorithm; a kernel adds the bias then.
  if (!(shape.bias && MakePlan(shape, true, bias, *plan)) &&
      !MakePlan(shape, false, nullptr, *plan)) {
    context_->NoteBlas(CUBLAS_STATUS_NOT_SUPPORTED, what);
    return nullptr;
  }
  return plans_.emplace(shape, std::move(plan)).first->second.get();
}

void Matmul::Run(const MatmulShape& shape, const float* a, const float* b, const float* bias,
                 float* d, const char* what) {
  if (!context_->ok()) return;
  Plan* const plan = FindPlan(shape, bias, what);
  if (plan == nullptr) return;
  if (plan->fuse_bias && !Set(plan->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias)) {
    context_->NoteBlas(CUBLAS_STATUS_INVALID_VALUE, what);
    return;
  }
  const float alpha = 1.0f;
  context_->NoteBlas(
      cublasLtMatmul(context_->blas(), plan->desc.get(), &alpha, a, plan->a.get(), b, plan->b.get(),
                     &plan->problem.beta, d, plan->d.get(), d, plan->d.get(), &plan->algorithm,
                     context_->workspace(), plan->workspace_bytes, context_->stream()),
      what);
  if (shape.bias && !plan->fuse_bias) {
    context_->Note(AddBias(context_->stream(), bias, d, shape.rows, shape.out), what);
  }
}

}  // namespace stagecoach::cuda
