// SequenceSource: sequences of the tokens of files, each file's opened once and each sequence read
// when its turn comes, so the files may be larger than memory.
// Ownership: owns the tokens.  Threads: as BatchSource.  Order: stage/data/sample_order.h.
#ifndef STAGECOACH_STAGE_DATA_SEQUENCE_SOURCE_H_
#define STAGECOACH_STAGE_DATA_SEQUENCE_SOURCE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "network/network.h"
#include "plan/data/token_split.h"
#include "stage/data/batch_source.h"
#include "stage/data/formats/token_file.h"
#include "stage/data/masked_tokens.h"
#include "stage/data/open_source.h"
#include "stage/data/sample_order.h"
#include "stage/data/token_source.h"

namespace stagecoach {

struct SequenceData {
  std::shared_ptr<const TextTokens> train, test;  // no test: the end of `train` is held out
  TokenSplit split;
  int64_t context = 0;
  std::optional<int32_t> document_end;  // gives document_starts
  std::optional<MaskedTokens> masked;   // of sequences of `context`, and one more if it says so
  int64_t bytes = 0;                    // of the files
  std::string sha256;                   // of the tokens, or of what makes them
  std::string found;                    // for a survey
};

class SequenceSource final : public TokenSource {
 public:
  SequenceSource(const JobSpec& spec, SequenceData data);
  const DatasetManifest& manifest() const override { return manifest_; }
  int64_t evaluation_batches() const override { return order_.evaluation_batches(); }
  std::string Found() const override { return data_.found; }

 private:
  absl::StatusOr<TokenBatch> TrainTokens(uint64_t step, MicroBatchId micro_batch) const override;
  absl::StatusOr<TokenBatch> EvaluationTokens(uint64_t batch,
                                              MicroBatchId micro_batch) const override;
  // The sequences that begin there. Places: of each, for its masks.
  absl::StatusOr<TokenBatch> Read(const TextTokens& file, std::span<const int64_t> firsts,
                                  std::span<const MaskPlace> places) const;

  const SequenceData data_;
  const SampleOrder order_;
  DatasetManifest manifest_;
};

// Files of documents, in the order of the job.
struct TokenFiles {
  std::string prefix;  // "data.token_file"
  std::vector<OpenedTokens> train, test;
  std::optional<int32_t> document_end;
  std::optional<MaskedTokens> masked;
  std::string digest_facts;  // lines of what else the tokens depend on
};
// Opens each with `open`, whose first argument is the field: "data.token_file.files[0]".
using OpenTokens = absl::FunctionRef<absl::StatusOr<OpenedTokens>(const std::string& field,
                                                                  const std::string& path)>;
absl::StatusOr<std::vector<OpenedTokens>> OpenEach(const std::string& field,
                                                   const std::vector<std::string>& paths,
                                                   OpenTokens open);
// INVALID_ARGUMENT: too few tokens.
absl::StatusOr<std::unique_ptr<BatchSource>> SourceOfFiles(const JobSpec& spec,
                                                           const Network& network,
                                                           TokenFiles files);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_SEQUENCE_SOURCE_H_
