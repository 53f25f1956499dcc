#include "stage/cell/chunked_head.h"

#include <algorithm>
#include <utility>

#include "base/errors/status.h"
#include "base/threads/progress.h"

namespace stagecoach {

Tensor ChunkedHead::Chunk::Rows(const Tensor& matrix) const {
  const int64_t width = matrix.shape().back();
  return matrix.Slice(first * width, {context.sequences, width});
}

ObjectiveRunner::Targets ChunkedHead::Chunk::Of(const ObjectiveRunner::Targets& whole) const {
  const auto part = [this](const Tensor& numbers) {
    return numbers.valid() ? numbers.Slice(first, {context.sequences}) : Tensor();
  };
  return {part(whole.values), part(whole.weights)};
}

absl::Status ChunkedHead::ForEach(const ForwardContext& context, int64_t rows,
                                  const std::function<absl::Status(const Chunk&)>& run) const {
  const int64_t chunks = (rows + chunk_rows_ - 1) / chunk_rows_;
  for (int64_t i = 0; i < chunks; ++i) {
    Chunk chunk{context, i * chunk_rows_, {i, chunks}};
    chunk.context.sequences = std::min(chunk_rows_, rows - chunk.first);
    RETURN_IF_ERROR(run(chunk));
    TickProgress();
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensors> ChunkedHead::Train(const ForwardContext& context, const Tensor& x,
                                           const ObjectiveRunner::Targets& targets,
                                           const LookAtLogits& look) {
  Tensors whole;
  if (gradient_) {
    ASSIGN_OR_RETURN(
        whole.emplace_back(),
        MakeTensor(backend_.allocator(), MemoryKind::kActivations, x.dtype(), x.shape()));
  }
  RETURN_IF_ERROR(ForEach(context, x.shape()[0], [&](const Chunk& chunk) -> absl::Status {
    Stash stash;
    ASSIGN_OR_RETURN(Tensors logits, head_.Forward({chunk.Rows(x)}, chunk.context, &stash));
    ObjectiveRunner::Targets of_rows = chunk.Of(targets);
    RETURN_IF_ERROR(look(logits.front(), of_rows.values));
    ASSIGN_OR_RETURN(Tensors gradients, objective_.Train(chunk.context, std::move(logits),
                                                         std::move(of_rows), chunk.part));
    Tensors into;
    if (gradient_) into.push_back(chunk.Rows(whole.front()));
    return head_.Backward(std::move(gradients), std::move(stash), std::move(into)).status();
  }));
  return whole;
}

absl::Status ChunkedHead::Evaluate(const ForwardContext& context, const Tensor& x,
                                   const ObjectiveRunner::Targets& targets,
                                   const LookAtLogits& look) {
  return ForEach(context, x.shape()[0], [&](const Chunk& chunk) -> absl::Status {
    ASSIGN_OR_RETURN(Tensors logits, head_.Forward({chunk.Rows(x)}, chunk.context, nullptr));
    ObjectiveRunner::Targets of_rows = chunk.Of(targets);
    RETURN_IF_ERROR(look(logits.front(), of_rows.values));
    return objective_.Evaluate(chunk.context, std::move(logits.front()), std::move(of_rows),
                               chunk.part);
  });
}

}  // namespace stagecoach
