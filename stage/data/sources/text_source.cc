// The reader of data.text (plan/data/text.h): the files are read once when they are opened, for what
// identifies them, and each sequence again when its turn comes, so they may be larger than memory.
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "plan/data/text.h"
#include "plan/data/text_file.h"
#include "plan/data/token_inputs.h"
#include "stage/data/cache/token_cache.h"
#include "stage/data/open_source.h"
#include "stage/data/opened_text.h"
#include "stage/data/sequence_source.h"

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

std::string FoundText(const Texts& texts, const TokenSplit& split, int64_t vocabulary) {
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
  const int64_t vocabulary = VocabularyOf(network);
  const auto data = spec.data.As<TextData>();
  Texts texts;
  ASSIGN_OR_RETURN(texts.tokenizer,
                   OpenTokenizer(spec, "data.text.tokenizer", data.tokenizer, vocabulary, roots));
  ASSIGN_OR_RETURN(const std::optional<MaskedTokens> masked,
                   MaskedTokensOf(spec, network, "data.text", data.masked, texts.tokenizer.get()));
  const int64_t context = ContextOf(network) - (masked.has_value() ? masked->added() : 0);
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
  TokenSplit split = SplitTokens(texts.train.tokens->tokens(), context, test);
  split.train_sequences = std::max<int64_t>(split.train_sequences, 1);  // of a part, in a survey
  const std::string found = FoundText(texts, split, vocabulary);
  return std::make_unique<SequenceSource>(
      spec, SequenceData{
                .train = texts.train.tokens,
                .test = texts.test.has_value() ? texts.test->tokens : nullptr,
                .split = split,
                .context = context,
                .masked = masked,
                .bytes = texts.train.bytes + (texts.test.has_value() ? texts.test->bytes : 0),
                .sha256 = masked.has_value() ? Sha256Hex(DigestOf(texts) + "\n" + masked->facts())
                                             : DigestOf(texts),
                .found = found});
}

}  // namespace stagecoach
