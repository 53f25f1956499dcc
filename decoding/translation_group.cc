#include "decoding/translation_group.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/errors/check.h"
#include "base/errors/status.h"

namespace stagecoach {

TranslationGroup::TranslationGroup(const TranslationOptions& options, std::vector<int64_t> numbers,
                                   RowPool* pool)
    : options_(options), pool_(pool) {
  for (const int64_t number : numbers) sentences_.push_back({number, BeamSearch(options.beam), {}});
}

TranslationGroup::~TranslationGroup() {
  for (const Sentence& sentence : sentences_) {
    for (const Live& live : sentence.live) pool_->Release(live.id);
  }
}

// While a step is taken, the parents' last rows are there beside those of the children.
int64_t TranslationGroup::MostRows(const TranslationOptions& options, int64_t sentences) {
  return sentences * options.beam.beam * (options.beam.most_tokens + 1);
}

absl::StatusOr<RowBatch> TranslationGroup::Rows() {
  CHECK(!over() && asked_ == 0) << "candidates of the last rows are due";
  if (steps_ == 0) {
    for (Sentence& sentence : sentences_) {
      ASSIGN_OR_RETURN(const HypothesisId id, pool_->Extend(std::nullopt));
      sentence.live = {{id, options_.begin}};
    }
  }
  RowBatch batch;
  batch.samples = std::ssize(sentences_);
  // Few shapes, so that few kernels are prepared.
  batch.rows = steps_ == 0 ? 1 : options_.beam.beam;
  batch.context = options_.context;
  asked_ = batch.samples * batch.rows;
  for (const Sentence& sentence : sentences_) {
    for (int64_t i = 0; i < batch.rows; ++i) {
      if (i < std::ssize(sentence.live)) {
        const Live& live = sentence.live[static_cast<size_t>(i)];
        batch.Add(live.token, pool_->rows(live.id), /*want=*/true);
      } else {
        batch.AddNone();
      }
    }
  }
  return batch;
}

absl::Status TranslationGroup::Take(const CandidatesOfRows& candidates) {
  CHECK(asked_ > 0 && std::ssize(candidates) == asked_) << "rows with candidates";
  const int64_t rows = asked_ / std::ssize(sentences_);
  asked_ = 0;
  ++steps_;
  for (size_t i = 0; i < sentences_.size(); ++i) {
    Sentence& sentence = sentences_[i];
    if (sentence.live.empty()) continue;
    RETURN_IF_ERROR(Advance(
        &sentence,
        std::span(candidates).subspan(i * static_cast<size_t>(rows), sentence.live.size())));
  }
  const bool all = std::all_of(sentences_.begin(), sentences_.end(),
                               [](const Sentence& sentence) { return sentence.live.empty(); });
  if (all) sentences_.clear();
  return absl::OkStatus();
}

absl::Status TranslationGroup::Advance(Sentence* sentence,
                                       std::span<const std::vector<Candidate>> candidates) {
  const std::vector<Live> before = std::move(sentence->live);
  sentence->live.clear();
  absl::Status status;
  for (const BeamSearch::Next& one : sentence->search.Advance(candidates)) {
    const auto id = pool_->Extend(before[static_cast<size_t>(one.parent)].id);
    status = id.status();
    if (!status.ok()) break;
    sentence->live.push_back({*id, one.token});
  }
  for (const Live& live : before) pool_->Release(live.id);
  RETURN_IF_ERROR(status);
  if (!sentence->search.over()) return absl::OkStatus();
  const std::vector<BeamSearch::Hypothesis> best = sentence->search.Best();
  done_.push_back({sentence->number, best.empty() ? BeamSearch::Hypothesis() : best.front()});
  return absl::OkStatus();
}

// An eighth less is worth a copy of what is held.
std::optional<std::vector<int64_t>> TranslationGroup::Shrink() {
  std::vector<int64_t> kept;
  for (size_t i = 0; i < sentences_.size(); ++i) {
    if (!sentences_[i].live.empty()) kept.push_back(static_cast<int64_t>(i));
  }
  if (over() || 8 * std::ssize(kept) > 7 * std::ssize(sentences_)) return std::nullopt;
  std::erase_if(sentences_, [](const Sentence& sentence) { return sentence.live.empty(); });
  return kept;
}

std::vector<TranslationGroup::Translation> TranslationGroup::TakeDone() {
  return std::exchange(done_, {});
}

}  // namespace stagecoach
