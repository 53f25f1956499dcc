// TokenSource: a source of token sequences, which gives the inputs "tokens", "targets" and "segments",
// and "document_starts" if it packs documents, each [context], I32 (plan/data/token_inputs.h).
// Ownership, threads: as BatchSource.
#ifndef STAGECOACH_STAGE_DATA_TOKEN_SOURCE_H_
#define STAGECOACH_STAGE_DATA_TOKEN_SOURCE_H_

#include <cstdint>
#include <vector>

#include "base/errors/status.h"
#include "stage/data/batch_source.h"

namespace stagecoach {

struct TokenBatch {
  int64_t sequences = 0;
  std::vector<int32_t> inputs, targets;  // [sequences * context]
  std::vector<int32_t> document_starts;  // the same size; empty: documents are not told apart
};

class TokenSource : public BatchSource {
 public:
  absl::StatusOr<HostBatch> Train(uint64_t step, MicroBatchId micro_batch,
                                  std::span<const std::string> names) const final {
    ASSIGN_OR_RETURN(const TokenBatch tokens, TrainTokens(step, micro_batch));
    return Named(tokens, names);
  }
  absl::StatusOr<HostBatch> Evaluation(uint64_t batch, MicroBatchId micro_batch,
                                       std::span<const std::string> names) const final {
    ASSIGN_OR_RETURN(const TokenBatch tokens, EvaluationTokens(batch, micro_batch));
    return Named(tokens, names);
  }

 private:
  virtual absl::StatusOr<TokenBatch> TrainTokens(uint64_t step, MicroBatchId micro_batch) const = 0;
  virtual absl::StatusOr<TokenBatch> EvaluationTokens(uint64_t batch,
                                                      MicroBatchId micro_batch) const = 0;
  static HostBatch Named(const TokenBatch& tokens, std::span<const std::string> names);
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_TOKEN_SOURCE_H_
