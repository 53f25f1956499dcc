// FusedAttention: the back end's attention through attention graphs. It decides whether graphs take
// a shape, keeps each shape's plans, and cuts backward passes to a bounded workspace.
// Ownership: owns the graphs; borrows allocator and the fixed workspace.
// Threads:   executor thread only.
// Units and shapes: as AttentionForwardArgs and AttentionBackwardArgs.
// Errors:    RESOURCE_EXHAUSTED of the allocator, INTERNAL of cuDNN. Whether a shape is for cuDNN
//            does not depend on how much memory is free.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_ATTENTION_FUSED_ATTENTION_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_ATTENTION_FUSED_ATTENTION_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "stage/backends/cuda/cudnn/attention/attention_graphs.h"
#include "stage/backends/cuda/cudnn/attention/attention_operands.h"
#include "stage/backends/cuda/cudnn/attention/attention_rules.h"
#include "stage/tensor/allocator.h"

namespace stagecoach::cudnn {

struct AttentionWay {
  std::string way;  // "cuDNN", "own kernels"
  std::string why;  // for people, and not part of what must be equal: why not the faster one
};

class FusedAttention {
 public:
  struct Workspace {
    void* data = nullptr;
    int64_t bytes = 0;
  };
  // graphs: OpenAttentionGraphs; an error means that own kernels do everything. If a workspace does
  // not fit into `fixed`, the allocator gives it for the time of a call.
  FusedAttention(absl::StatusOr<std::unique_ptr<AttentionGraphs>> graphs, Allocator* allocator,
                 Workspace fixed, int64_t score_bytes = kScoreBytes);
  ~FusedAttention();

  // True: queued. False: it is for own kernels, and nothing was done.
  absl::StatusOr<bool> Forward(const AttentionForwardArgs& args);
  absl::StatusOr<bool> Backward(const AttentionBackwardArgs& args);

  // Calls so far that took memory from the allocator, because the fixed workspace was too small.
  int64_t rooms_taken() const { return rooms_taken_; }

  // The kernels for a memory forecast; none: own kernels do everything.
  std::optional<AttentionKernels> kernels() const;
  // Equal bits need the same text: the graphs' version, or that own kernels do everything.
  std::string fingerprint() const;
  // Builds the shape's plans, and says whether cuDNN or own kernels compute it.
  absl::StatusOr<AttentionWay> Way(const AttentionShape& shape, DType dtype);
  // The reason why own kernels take this shape. Empty: cuDNN is asked, and may still refuse.
  std::string WhyOwn(const AttentionShape& shape, DType dtype) const;

 private:
  struct Plans;
  absl::StatusOr<Plans*> FindPlans(const AttentionShape& shape, DType dtype);  // null: own kernels
  absl::StatusOr<Plans> MakePlans(const AttentionProblem& problem);
  absl::StatusOr<std::shared_ptr<Buffer>> Room(int64_t bytes, void** data);

  const absl::StatusOr<std::unique_ptr<AttentionGraphs>> graphs_;
  Allocator* const allocator_;
  const Workspace fixed_;
  const int64_t score_bytes_;
  absl::flat_hash_map<AttentionProblem, std::unique_ptr<Plans>> plans_;
  int64_t rooms_taken_ = 0;
};

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_ATTENTION_FUSED_ATTENTION_H_
