// The reader of data.text (plan/data/text.h): the file is read once when it is opened, for what
// identifies it, and each sequence again when its turn comes, so it may be larger than memory.
#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/threads/progress.h"
#include "plan/data/text.h"
#include "plan/data/text_file.h"
#include "stage/data/formats/data_file.h"
#include "stage/data/open_source.h"
#include "stage/data/sample_order.h"
#include "stage/data/token_source.h"

namespace stagecoach {
namespace {

// What one look at the whole file tells of it, a piece at a time: it may be larger than memory.
class TextCheck {
 public:
  TextCheck(const TextData& text, int64_t vocabulary) : text_(text), vocabulary_(vocabulary) {}

  // Of a file with more than `most` bytes their beginning.
  absl::Status ReadAll(OpenedFile& file, int64_t most) {
    std::vector<uint8_t> piece(kProgressPieceBytes);
    for (int64_t offset = 0; file.left() > 0 && offset < most;) {
      ASSIGN_OR_RETURN(const size_t count, file.Read(piece));
      const std::span<const uint8_t> bytes = std::span(piece).first(count);
      if (offset == 0) RETURN_IF_ERROR(CheckHead(bytes));
      digest_.Update(std::as_bytes(bytes));
      Look(bytes, offset);
      offset += static_cast<int64_t>(count);
    }
    return file.size() > 0 ? absl::OkStatus() : CheckHead({});
  }

  absl::Status CheckTokens(const std::string& where, const JobSpec& spec) const {
    if (first_at_ < 0) return absl::OkStatus();
    const std::string field = absl::StrCat("model.", spec.network.kind, ".vocabulary");
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": the byte at offset ", first_at_, " is not below ", field, " = ",
                     vocabulary_, "; set ", field, " to at least ", int{largest_} + 1,
                     " (256 takes every text) or give another text"));
  }

  std::string Digest() { return digest_.Hex(); }
  int64_t different_bytes() const { return std::count(seen_.begin(), seen_.end(), true); }

 private:
  absl::Status CheckHead(std::span<const uint8_t> bytes) const {
    const std::string_view head(reinterpret_cast<const char*>(bytes.data()),
                                std::min(bytes.size(), kTextCheckBytes));
    return CheckIsText(text_, head);
  }

  void Look(std::span<const uint8_t> bytes, int64_t offset) {
    for (const uint8_t byte : bytes) seen_[byte] = true;
    if (vocabulary_ > std::numeric_limits<uint8_t>::max()) return;
    const auto at = std::find_if(bytes.begin(), bytes.end(),
                                 [this](uint8_t byte) { return int64_t{byte} >= vocabulary_; });
    if (at == bytes.end()) return;
    if (first_at_ < 0) first_at_ = offset + (at - bytes.begin());
    largest_ = std::max(largest_, *std::max_element(at, bytes.end()));
  }

  const TextData& text_;
  const int64_t vocabulary_;
  Sha256 digest_;
  int64_t first_at_ = -1;  // of a byte that is no token; -1: none is
  uint8_t largest_ = 0;
  std::array<bool, 256> seen_ = {};
};

class TextSource final : public TokenSource {
 public:
  TextSource(const JobSpec& spec, int64_t context, const TextSplit& split,
             std::unique_ptr<OpenedFile> file, std::string sha256, std::string found)
      : order_(spec, split.train_sequences, split.evaluation_sequences),
        context_(context),
        train_bytes_(split.train_bytes),
        file_(std::move(file)),
        found_(std::move(found)) {
    manifest_ = {.bytes = file_->size(),
                 .sha256 = std::move(sha256),
                 .train_samples = split.train_sequences,
                 .evaluation_samples = split.evaluation_sequences};
  }

  const DatasetManifest& manifest() const override { return manifest_; }
  int64_t evaluation_batches() const override { return order_.evaluation_batches(); }
  std::string Found() const override { return found_; }

 private:
  absl::StatusOr<TokenBatch> TrainTokens(uint64_t step, MicroBatchId micro_batch) const override {
    std::vector<int64_t> offsets = order_.Train(step, micro_batch);
    for (int64_t& offset : offsets) offset *= context_;
    return Read(offsets);
  }

  absl::StatusOr<TokenBatch> EvaluationTokens(uint64_t index,
                                              MicroBatchId micro_batch) const override {
    const SampleOrder::Range range = order_.Evaluation(index, micro_batch);
    std::vector<int64_t> offsets(static_cast<size_t>(range.count));
    for (int64_t i = 0; i < range.count; ++i) {
      offsets[static_cast<size_t>(i)] = train_bytes_ + (range.first + i) * context_;
    }
    return Read(offsets);
  }

  // The sequences that begin there.
  absl::StatusOr<TokenBatch> Read(std::span<const int64_t> offsets) const {
    TokenBatch batch{.sequences = std::ssize(offsets)};
    batch.inputs.reserve(static_cast<size_t>(batch.sequences * context_));
    batch.targets.reserve(static_cast<size_t>(batch.sequences * context_));
    std::vector<uint8_t> bytes(static_cast<size_t>(context_) + 1);
    for (const int64_t offset : offsets) {
      if (absl::Status read = file_->ReadAt(offset, bytes); !read.ok()) {
        RETURN_IF_ERROR(file_->CheckUnchanged());
        return read;
      }
      TickProgress();  // a cold disk is slow, and not stuck
      batch.inputs.insert(batch.inputs.end(), bytes.begin(), bytes.end() - 1);
      batch.targets.insert(batch.targets.end(), bytes.begin() + 1, bytes.end());
    }
    RETURN_IF_ERROR(file_->CheckUnchanged());
    return batch;
  }

  const SampleOrder order_;
  const int64_t context_, train_bytes_;
  const std::unique_ptr<OpenedFile> file_;
  const std::string found_;
  DatasetManifest manifest_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> TextDataSource(const JobSpec& spec,
                                                            const Network& network,
                                                            std::span<const std::string>,
                                                            const DataRoots& roots,
                                                            SourceLook look) {
  const WireId tokens = network.InputNamed("tokens");
  const int64_t context = network.wire(tokens).type.shape.elements();
  const auto text = spec.data.As<TextData>();
  ASSIGN_OR_RETURN(std::unique_ptr<OpenedFile> file,
                   OpenedFile::Open(roots, "data.text.path", text.path));
  const int64_t vocabulary = network.input(tokens).classes;
  TextCheck check(text, vocabulary);
  RETURN_IF_ERROR(
      check.ReadAll(*file, look == SourceLook::kSurvey ? kMostSurveyedBytes : file->size()));
  RETURN_IF_ERROR(check.CheckTokens(file->Where(), spec));
  RETURN_IF_ERROR(CheckTextLength(spec, context, file->size()));
  const TextSplit split = SplitText(file->size(), context);
  const std::string found = absl::StrCat(file->size(), " bytes, ", check.different_bytes(),
                                         " different ones of a vocabulary of ", vocabulary, ", in ",
                                         split.train_sequences, " sequences and ",
                                         split.evaluation_sequences, " held out");
  return std::make_unique<TextSource>(spec, context, split, std::move(file), check.Digest(), found);
}

}  // namespace stagecoach
