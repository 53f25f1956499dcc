#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/status.h"
#include "plan/data/text.h"
#include "plan/data/text_check.h"
#include "plan/data/text_split.h"
#include "stage/data/data_file.h"
#include "stage/data/open_source.h"
#include "stage/data/sample_order.h"
#include "stage/data/token_source.h"

namespace stagecoach {
namespace {

absl::StatusOr<std::vector<uint8_t>> ReadAll(OpenedFile& file) {
  std::vector<uint8_t> bytes(static_cast<size_t>(file.size()));
  RETURN_IF_ERROR(file.Read(bytes).status());
  return bytes;
}

absl::Status CheckTokens(const std::vector<uint8_t>& bytes, const std::string& where,
                         const JobSpec& spec, int64_t vocabulary) {
  const auto at = std::find_if(bytes.begin(), bytes.end(),
                               [vocabulary](uint8_t byte) { return int64_t{byte} >= vocabulary; });
  if (at == bytes.end()) return absl::OkStatus();
  const uint8_t largest = *std::max_element(at, bytes.end());
  const std::string field = absl::StrCat("model.", spec.model.kind, ".vocabulary");
  return absl::InvalidArgumentError(
      absl::StrCat(where, ": byte ", int{*at}, " at offset ", at - bytes.begin(), " is not below ",
                   field, " = ", vocabulary, "; set ", field, " to at least ", int{largest} + 1,
                   " (256 takes every text) or give another text"));
}

class TextSource final : public TokenSource {
 public:
  TextSource(const JobSpec& spec, int64_t context, const TextSplit& split,
             std::vector<uint8_t> bytes)
      : order_(spec, split.train_sequences, split.evaluation_sequences),
        context_(context),
        train_bytes_(split.train_bytes),
        bytes_(std::move(bytes)) {
    Sha256 digest;
    digest.Update(std::as_bytes(std::span(bytes_)));
    manifest_ = {.bytes = static_cast<int64_t>(bytes_.size()),
                 .sha256 = digest.Hex(),
                 .train_samples = split.train_sequences,
                 .evaluation_samples = split.evaluation_sequences};
  }

  const DatasetManifest& manifest() const override { return manifest_; }
  int64_t evaluation_batches() const override { return order_.evaluation_batches(); }

 private:
  TokenBatch TrainTokens(uint64_t step, MicroBatchId micro_batch) const override {
    const std::vector<int64_t> sequences = order_.Train(step, micro_batch);
    TokenBatch batch = EmptyBatch(static_cast<int64_t>(sequences.size()));
    for (const int64_t sequence : sequences) AppendSequence(sequence * context_, &batch);
    return batch;
  }

  TokenBatch EvaluationTokens(uint64_t index, MicroBatchId micro_batch) const override {
    const SampleOrder::Range range = order_.Evaluation(index, micro_batch);
    TokenBatch batch = EmptyBatch(range.count);
    for (int64_t i = 0; i < range.count; ++i) {
      AppendSequence(train_bytes_ + (range.first + i) * context_, &batch);
    }
    return batch;
  }

  TokenBatch EmptyBatch(int64_t sequences) const {
    TokenBatch batch{.sequences = sequences};
    batch.inputs.reserve(static_cast<size_t>(sequences * context_));
    batch.targets.reserve(static_cast<size_t>(sequences * context_));
    return batch;
  }

  void AppendSequence(int64_t offset, TokenBatch* batch) const {
    const auto first = bytes_.begin() + offset;
    batch->inputs.insert(batch->inputs.end(), first, first + context_);
    batch->targets.insert(batch->targets.end(), first + 1, first + context_ + 1);
  }

  const SampleOrder order_;
  const int64_t context_, train_bytes_;
  const std::vector<uint8_t> bytes_;
  DatasetManifest manifest_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> OpenTextSource(const JobSpec& spec,
                                                            const Network& network,
                                                            std::span<const std::string>) {
  const WireId tokens = network.InputNamed("tokens");
  const int64_t context = network.wire(tokens).type.shape.elements();
  const auto text = spec.data.As<TextData>();
  ASSIGN_OR_RETURN(const std::unique_ptr<OpenedFile> file,
                   OpenedFile::Open("data.text.path", text.path));
  ASSIGN_OR_RETURN(std::vector<uint8_t> bytes, ReadAll(*file));
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()),
                              std::min(bytes.size(), kTextCheckBytes));
  RETURN_IF_ERROR(CheckIsText(text, head));
  RETURN_IF_ERROR(CheckTokens(bytes, file->Where(), spec, network.input(tokens).classes));
  RETURN_IF_ERROR(CheckTextLength(spec, context, file->size()));
  const TextSplit split = SplitText(file->size(), context);
  return std::make_unique<TextSource>(spec, context, split, std::move(bytes));
}

}  // namespace stagecoach
