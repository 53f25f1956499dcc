#include "decoding/text_group.h"

#include <algorithm>
#include <utility>

#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/numbers/random.h"

namespace stagecoach {

TextGroup::TextGroup(const TextOptions& options, std::span<const std::vector<int32_t>> prompts,
                     RowPool* pool)
    : options_(options), pool_(pool) {
  for (const std::vector<int32_t>& prompt : prompts) {
    CHECK(!prompt.empty()) << "a prompt without tokens";
    Text text{.number = static_cast<int>(texts_.size()),
              .continuation = Continuation(options.stops, options.most_tokens),
              .tokens = prompt};
    text.read = prompt.size() - std::min(prompt.size(), static_cast<size_t>(options.context));
    texts_.push_back(std::move(text));
  }
}

TextGroup::~TextGroup() {
  for (Text& text : texts_) Release(&text);
}

int64_t TextGroup::MostRows(const TextOptions& options,
                            std::span<const std::vector<int32_t>> prompts) {
  int64_t rows = 0;
  for (const std::vector<int32_t>& prompt : prompts) {
    // While a row is taken, the one before it is held too.
    rows += 1 + std::min(options.context, std::ssize(prompt) + options.most_tokens);
  }
  return rows;
}

bool TextGroup::over() const {
  return std::none_of(texts_.begin(), texts_.end(), [](const Text& text) { return text.live; });
}

absl::StatusOr<RowBatch> TextGroup::Rows() {
  CHECK(!over());
  RowBatch batch;
  batch.context = options_.context;
  CHECK(of_rows_.empty()) << "candidates of the last rows are due";
  for (Text& text : texts_) {
    if (!text.live) continue;
    // There is no room for the next token.
    if (text.id.has_value() && std::ssize(pool_->rows(*text.id)) == options_.context) {
      Release(&text);
      text.read =
          text.tokens.size() - static_cast<size_t>(std::max<int64_t>(1, options_.context / 2));
    }
    const auto unread = static_cast<int64_t>(text.tokens.size() - text.read);
    if (unread == 1) continue;
    batch.samples = 1;
    batch.rows = std::min(unread, kPieceRows);
    RETURN_IF_ERROR(Read(&text, batch.rows, &batch));
    return batch;
  }
  batch.rows = 1;
  for (Text& text : texts_) {
    if (!text.live) continue;
    ++batch.samples;
    RETURN_IF_ERROR(Read(&text, 1, &batch));
  }
  return batch;
}

absl::Status TextGroup::Read(Text* text, int64_t rows, RowBatch* batch) {
  for (int64_t i = 0; i < rows; ++i) RETURN_IF_ERROR(ReadToken(text, batch));
  return absl::OkStatus();
}

absl::Status TextGroup::ReadToken(Text* text, RowBatch* batch) {
  ASSIGN_OR_RETURN(const HypothesisId id, pool_->Extend(text->id));
  Release(text);
  text->id = id;
  const int32_t token = text->tokens[text->read++];
  const bool last = text->read == text->tokens.size();
  batch->Add(token, pool_->rows(id), last);
  of_rows_.push_back(last ? text->number : -1);
  if (!options_.sample) return absl::OkStatus();
  const RandomStream stream{.seed = options_.seed,
                            .step = static_cast<uint32_t>(options_.first_text + text->number)};
  const auto written = static_cast<uint64_t>(text->continuation.tokens().size());
  batch->uniforms.push_back(RandomBits(stream, written) / 4294967296.0);
  return absl::OkStatus();
}

absl::Status TextGroup::Take(const CandidatesOfRows& candidates) {
  const std::vector<int> of_rows = std::exchange(of_rows_, {});
  CHECK(!of_rows.empty() && candidates.size() == of_rows.size()) << "rows with candidates";
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (of_rows[i] < 0) continue;
    Text& text = texts_[static_cast<size_t>(of_rows[i])];
    const Candidate& chosen = candidates[i].front();
    const bool goes_on = text.continuation.Add(chosen);
    if (!text.continuation.ended()) new_.push_back({text.number, chosen.token});
    text.tokens.push_back(chosen.token);
    if (!goes_on) End(&text);
  }
  return absl::OkStatus();
}

void TextGroup::End(Text* text) {
  text->live = false;
  Release(text);
}

std::vector<TextGroup::Token> TextGroup::TakeNew() { return std::exchange(new_, {}); }

void TextGroup::Release(Text* text) {
  if (text->id.has_value()) pool_->Release(*std::exchange(text->id, std::nullopt));
}

}  // namespace stagecoach
