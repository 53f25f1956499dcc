// The reader of data.text (plan/data/text.h): the files are read once when they are opened, for what
// identifies them, and each sequence again when its turn comes, so they may be larger than memory.
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/threads/progress.h"
#include "plan/data/text.h"
#include "plan/data/text_file.h"
#include "stage/data/formats/token_cache.h"
#include "stage/data/open_source.h"
#include "stage/data/opened_text.h"
#include "stage/data/sample_order.h"
#include "stage/data/token_source.h"

namespace stagecoach {
namespace {

struct Texts {
  OpenedText train;
  std::optional<OpenedText> test;
  std::unique_ptr<const Tokenizer> tokenizer;  // null: tokens are bytes
};

// Also of the tokenizer: with another one the same text is other tokens.
std::string DigestOf(const Texts& texts) {
  if (texts.tokenizer == nullptr && !texts.test.has_value()) return texts.train.sha256;
  return Sha256Hex(absl::StrCat("text ", texts.train.sha256, "\ntest ",
                                texts.test.has_value() ? texts.test->sha256 : "", "\ntokenizer ",
                                texts.tokenizer == nullptr ? "" : texts.tokenizer->digest(),
                                "\nversion ", kTokenCacheVersion, "\n"));
}

std::string FoundText(const Texts& texts, const TextSplit& split, int64_t vocabulary) {
  const OpenedText& train = texts.train;
  const bool all = train.seen_bytes == train.bytes;
  const std::string what =
      texts.tokenizer == nullptr
          ? absl::StrCat(train.different_bytes, " different ones of a vocabulary of ", vocabulary)
          : absl::StrCat(train.tokens->tokens(), " tokens of a vocabulary of ", vocabulary,
                         all ? "" : absl::StrCat(" in the first ", train.seen_bytes));
  // In a survey a tokenizer sees a part only.
  if (texts.tokenizer != nullptr && !all) return absl::StrCat(train.bytes, " bytes, ", what);
  return absl::StrCat(train.bytes, " bytes, ", what, ", in ", split.train_sequences,
                      " sequences and ", split.evaluation_sequences, " held out");
}

class TextSource final : public TokenSource {
 public:
  TextSource(const JobSpec& spec, int64_t context, const TextSplit& split, Texts texts,
             std::string found)
      : order_(spec, split.train_sequences, split.evaluation_sequences),
        context_(context),
        held_out_from_(texts.test.has_value() ? 0 : split.train_tokens),
        train_(texts.train.tokens),
        held_out_(texts.test.has_value() ? texts.test->tokens : train_),
        found_(std::move(found)) {
    manifest_ = {.bytes = texts.train.bytes + (texts.test.has_value() ? texts.test->bytes : 0),
                 .sha256 = DigestOf(texts),
                 .train_samples = split.train_sequences,
                 .evaluation_samples = split.evaluation_sequences};
  }

  const DatasetManifest& manifest() const override { return manifest_; }
  int64_t evaluation_batches() const override { return order_.evaluation_batches(); }
  std::string Found() const override { return found_; }

 private:
  absl::StatusOr<TokenBatch> TrainTokens(uint64_t step, MicroBatchId micro_batch) const override {
    std::vector<int64_t> firsts = order_.Train(step, micro_batch);
    for (int64_t& first : firsts) first *= context_;
    return Read(*train_, firsts);
  }

  absl::StatusOr<TokenBatch> EvaluationTokens(uint64_t index,
                                              MicroBatchId micro_batch) const override {
    const SampleOrder::Range range = order_.Evaluation(index, micro_batch);
    std::vector<int64_t> firsts(static_cast<size_t>(range.count));
    for (int64_t i = 0; i < range.count; ++i) {
      firsts[static_cast<size_t>(i)] = held_out_from_ + (range.first + i) * context_;
    }
    return Read(*held_out_, firsts);
  }

  // The sequences that begin there.
  absl::StatusOr<TokenBatch> Read(const TextTokens& file, std::span<const int64_t> firsts) const {
    TokenBatch batch{.sequences = std::ssize(firsts)};
    batch.inputs.reserve(static_cast<size_t>(batch.sequences * context_));
    batch.targets.reserve(static_cast<size_t>(batch.sequences * context_));
    std::vector<int32_t> tokens(static_cast<size_t>(context_) + 1);
    for (const int64_t first : firsts) {
      RETURN_IF_ERROR(file.Read(first, tokens));
      TickProgress();  // a cold disk is slow, and not stuck
      batch.inputs.insert(batch.inputs.end(), tokens.begin(), tokens.end() - 1);
      batch.targets.insert(batch.targets.end(), tokens.begin() + 1, tokens.end());
    }
    RETURN_IF_ERROR(file.CheckUnchanged());
    return batch;
  }

  const SampleOrder order_;
  const int64_t context_, held_out_from_;
  const std::shared_ptr<const TextTokens> train_, held_out_;
  const std::string found_;
  DatasetManifest manifest_;
};

// Tokens that were counted, or can be: all but those of a text of which a survey saw a part.
absl::Status CheckLengths(const JobSpec& spec, int64_t context, const Texts& texts) {
  const auto whole = [&](const OpenedText& text) {
    return texts.tokenizer == nullptr || text.seen_bytes == text.bytes;
  };
  if (whole(texts.train)) {
    RETURN_IF_ERROR(CheckTextLength(spec, context, texts.train.tokens->tokens()));
  }
  if (!texts.test.has_value() || !whole(*texts.test)) return absl::OkStatus();
  return CheckTestLength(spec, context, texts.test->tokens->tokens());
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> TextDataSource(const JobSpec& spec,
                                                            const Network& network,
                                                            std::span<const std::string>,
                                                            const DataRoots& roots,
                                                            SourceLook look) {
  const WireId tokens = network.InputNamed("tokens");
  const int64_t context = network.wire(tokens).type.shape.elements();
  const int64_t vocabulary = network.input(tokens).classes;
  const auto data = spec.data.As<TextData>();
  Texts texts;
  ASSIGN_OR_RETURN(texts.tokenizer, OpenTokenizer(spec, vocabulary, roots));
  const auto open = [&](const char* field, const std::string& path) {
    const TextToOpen text{.spec = &spec,
                          .field = field,
                          .path = path,
                          .roots = &roots,
                          .vocabulary = vocabulary,
                          .most_bytes = look == SourceLook::kSurvey ? kMostSurveyedBytes : 0};
    return texts.tokenizer == nullptr ? OpenBytesOfText(text)
                                      : OpenIdsOfText(text, *texts.tokenizer);
  };
  ASSIGN_OR_RETURN(texts.train, open("path", data.path));
  if (!data.test.empty()) {
    ASSIGN_OR_RETURN(texts.test, open("test", data.test));
  }
  RETURN_IF_ERROR(CheckLengths(spec, context, texts));
  const std::optional<int64_t> test =
      texts.test.has_value() ? std::optional(texts.test->tokens->tokens()) : std::nullopt;
  TextSplit split = SplitText(texts.train.tokens->tokens(), context, test);
  split.train_sequences = std::max<int64_t>(split.train_sequences, 1);  // of a part, in a survey
  const std::string found = FoundText(texts, split, vocabulary);
  return std::make_unique<TextSource>(spec, context, split, std::move(texts), found);
}

}  // namespace stagecoach
