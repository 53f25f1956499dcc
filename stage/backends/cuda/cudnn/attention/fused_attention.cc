#include "stage/backends/cuda/cudnn/attention/fused_attention.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"

namespace stagecoach::cudnn {
namespace {

void* At(const Tensor& tensor, int64_t element) {
  return tensor.raw() + element * DTypeSize(tensor.dtype());
}

// cuDNN would read and write beyond what is too small.
void CheckSizes(const AttentionProblem& p, const Tensor& qkv, const Tensor& out,
                const Tensor& log_sum_exp) {
  const int64_t rows = p.sequences * p.context;
  CHECK_EQ(qkv.elements(), rows * 3 * p.width()) << "attention: qkv";
  CHECK_EQ(out.elements(), rows * p.width()) << "attention: out";
  CHECK_EQ(log_sum_exp.elements(), rows * p.heads) << "attention: log_sum_exp";
  CHECK(out.dtype() == DType::kBF16 && log_sum_exp.dtype() == DType::kF32) << "attention: types";
}

}  // namespace

// Both directions are built before the first runs: what is kept in between must be of one make.
struct FusedAttention::Plans {
  std::unique_ptr<AttentionGraph> forward, backward;  // null: cuDNN does not take the shape
  AttentionSlice slice;                               // of backward
};

FusedAttention::FusedAttention(absl::StatusOr<std::unique_ptr<AttentionGraphs>> graphs,
                               Allocator* allocator, Workspace fixed, int64_t score_bytes)
    : graphs_(std::move(graphs)), allocator_(allocator), fixed_(fixed), score_bytes_(score_bytes) {}

FusedAttention::~FusedAttention() = default;

std::string FusedAttention::fingerprint() const {
  return absl::StrCat("attention ", graphs_.ok() ? (*graphs_)->version() : "by own kernels");
}

std::optional<AttentionKernels> FusedAttention::kernels() const {
  if (!graphs_.ok()) return std::nullopt;
  return Attention();
}

std::string FusedAttention::WhyOwn(const AttentionShape& shape, DType dtype) const {
  if (!graphs_.ok()) return std::string(graphs_.status().message());
  return WhyOwnKernels(shape, dtype, (*graphs_)->offer());
}

absl::StatusOr<AttentionWay> FusedAttention::Way(const AttentionShape& shape, DType dtype) {
  std::string why = WhyOwn(shape, dtype);
  if (why.empty()) {
    ASSIGN_OR_RETURN(const Plans* const plans, FindPlans(shape, dtype));
    if (plans != nullptr) return AttentionWay{.way = "cuDNN", .why = ""};
    why = absl::StrCat((*graphs_)->version(), " does not support the shape");
  }
  return AttentionWay{.way = "own kernels", .why = std::move(why)};
}

absl::StatusOr<FusedAttention::Plans> FusedAttention::MakePlans(const AttentionProblem& problem) {
  Plans plans{.slice = ChooseSlice(problem, score_bytes_)};
  auto forward = (*graphs_)->Build(Direction::kForward, LayoutsOf(problem, WholeOf(problem)));
  if (absl::IsUnimplemented(forward.status())) return plans;
  RETURN_IF_ERROR(forward.status());
  auto backward = (*graphs_)->Build(Direction::kBackward, LayoutsOf(problem, plans.slice));
  if (absl::IsUnimplemented(backward.status())) return plans;
  RETURN_IF_ERROR(backward.status());
  plans.forward = *std::move(forward);
  plans.backward = *std::move(backward);
  return plans;
}

absl::StatusOr<FusedAttention::Plans*> FusedAttention::FindPlans(const AttentionShape& shape,
                                                                 DType dtype) {
  if (!graphs_.ok() || !WhyOwnKernels(shape, dtype, (*graphs_)->offer()).empty()) return nullptr;
  const AttentionProblem problem = ProblemOf(shape);
  auto found = plans_.find(problem);
  if (found == plans_.end()) {
    ASSIGN_OR_RETURN(Plans plans, MakePlans(problem));
    found = plans_.emplace(problem, std::make_unique<Plans>(std::move(plans))).first;
  }
  Plans* const plans = found->second.get();
  return plans->forward == nullptr ? nullptr : plans;
}

// A buffer that is let go when the call ends may be handed out again at once: what is queued later
// runs later. Null where the fixed workspace is enough.
absl::StatusOr<std::shared_ptr<Buffer>> FusedAttention::Room(int64_t bytes, void** data) {
  *data = fixed_.data;
  if (bytes <= fixed_.bytes) return nullptr;
  ++rooms_taken_;
  ASSIGN_OR_RETURN(auto buffer, allocator_->Allocate(bytes, MemoryKind::kWorkspace));
  *data = buffer->data();
  return buffer;
}

absl::StatusOr<bool> FusedAttention::Forward(const AttentionForwardArgs& args) {
  ASSIGN_OR_RETURN(Plans* const plans, FindPlans(args.shape, args.qkv.dtype()));
  if (plans == nullptr) return false;
  const AttentionProblem problem = ProblemOf(args.shape);
  CheckSizes(problem, args.qkv, args.out, args.log_sum_exp);
  void* workspace = nullptr;
  ASSIGN_OR_RETURN(const auto room, Room(plans->forward->workspace_bytes(), &workspace));
  const SliceStart start = StartOf(problem, 0, 0);
  RETURN_IF_ERROR(plans->forward->Run({.q = At(args.qkv, start.queries),
                                       .k = At(args.qkv, start.keys),
                                       .v = At(args.qkv, start.values),
                                       .out = At(args.out, start.out),
                                       .log_sum_exp = At(args.log_sum_exp, start.log_sum_exp)},
                                      workspace));
  return true;
}

absl::StatusOr<bool> FusedAttention::Backward(const AttentionBackwardArgs& args) {
  ASSIGN_OR_RETURN(Plans* const plans, FindPlans(args.shape, args.qkv.dtype()));
  if (plans == nullptr) return false;
  const AttentionProblem problem = ProblemOf(args.shape);
  CheckSizes(problem, args.qkv, args.out, args.log_sum_exp);
  CheckSizes(problem, args.d_qkv, args.d_out, args.log_sum_exp);
  CHECK(args.d_qkv.dtype() == DType::kBF16) << "attention: types";
  void* workspace = nullptr;
  ASSIGN_OR_RETURN(const auto room, Room(plans->backward->workspace_bytes(), &workspace));
  for (int64_t sequence = 0; sequence < problem.sequences; sequence += plans->slice.sequences) {
    for (int64_t head = 0; head < problem.heads; head += plans->slice.heads) {
      const SliceStart start = StartOf(problem, sequence, head);
      RETURN_IF_ERROR(plans->backward->Run({.q = At(args.qkv, start.queries),
                                            .k = At(args.qkv, start.keys),
                                            .v = At(args.qkv, start.values),
                                            .out = At(args.out, start.out),
                                            .log_sum_exp = At(args.log_sum_exp, start.log_sum_exp),
                                            .d_out = At(args.d_out, start.out),
                                            .d_q = At(args.d_qkv, start.queries),
                                            .d_k = At(args.d_qkv, start.keys),
                                            .d_v = At(args.d_qkv, start.values)},
                                           workspace));
    }
  }
  return true;
}

}  // namespace stagecoach::cudnn
