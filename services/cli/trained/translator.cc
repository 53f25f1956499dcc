#include "services/cli/trained/translator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "plan/costs/decoding_memory.h"
#include "plan/data/parallel_text.h"
#include "stage/data/parallel/job_tokenizer.h"
#include "stage/decoding/translation_search.h"

namespace stagecoach {

absl::StatusOr<std::unique_ptr<Translator>> Translator::Create(DecodingNetwork network,
                                                               const TranslatingOptions& options) {
  CHECK(network.tokenizer != nullptr) << "pairs are made of pieces";
  auto translator = std::unique_ptr<Translator>(new Translator(std::move(network), options));
  const DecodingNetwork& loaded = translator->network_;
  const Tokenizer& tokenizer = *loaded.tokenizer;
  translator->source_context_ = PairLimitsOf(loaded.trained.network).source;
  if (!options.tag.empty()) {
    ASSIGN_OR_RETURN(translator->tag_, TagId(tokenizer, "--tag", options.tag));
  }
  const TranslateSpec translate{.beam = options.beam,
                                .length_penalty = options.length_penalty,
                                .tokens = options.most_tokens};
  TranslationSearch search =
      SearchWith(tokenizer, TranslationOf(translate, loaded.trained.network));
  translator->search_ = std::move(search.options);
  translator->choice_ = std::move(search.choice);
  const int64_t rows = TranslationGroup::MostRows(translator->search_, options.batch);
  ASSIGN_OR_RETURN(translator->model_, loaded.Model(rows, options.batch * options.beam));
  translator->pool_ = std::make_unique<RowPool>(static_cast<int32_t>(rows));
  return translator;
}

absl::StatusOr<std::vector<int32_t>> Translator::Encode(const std::string& sentence) const {
  ASSIGN_OR_RETURN(std::vector<int32_t> ids, network_.tokenizer->Encode(sentence));
  if (ids.empty()) return ids;
  if (tag_ >= 0) ids.insert(ids.begin(), tag_);
  ids.push_back(network_.tokenizer->end());
  if (std::ssize(ids) <= source_context_) return ids;
  return absl::InvalidArgumentError(absl::StrCat("has ", ids.size(),
                                                 " tokens, and the network reads ", source_context_,
                                                 "; divide the sentence"));
}

absl::Status Translator::Translate(const std::vector<std::string>& sentences,
                                   const std::vector<int64_t>& lines,
                                   const std::function<bool()>& goes_on,
                                   const std::function<void(const Translation&)>& on_done) {
  CHECK_EQ(sentences.size(), lines.size()) << "a line of each sentence";
  std::vector<std::vector<int32_t>> sources;
  for (size_t i = 0; i < sentences.size(); ++i) {
    ASSIGN_OR_RETURN(sources.emplace_back(),
                     Annotate(Encode(sentences[i]), absl::StrCat("line ", lines[i])));
  }
  // Sentences of one length need no padding, and end together.
  std::vector<int64_t> order;
  for (int64_t i = 0; i < std::ssize(sources); ++i) {
    if (!sources[static_cast<size_t>(i)].empty()) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return sources[static_cast<size_t>(a)].size() < sources[static_cast<size_t>(b)].size();
  });
  std::vector<std::optional<Translation>> done(sources.size());
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].empty()) done[i] = Translation{.ended = true};
  }
  size_t told = 0;
  const auto tell = [&] {
    for (; told < done.size() && done[told].has_value(); ++told) on_done(*done[told]);
  };
  const auto on_one = [&](int64_t number, Translation one) {
    done[static_cast<size_t>(number)] = std::move(one);
    tell();
  };
  tell();
  for (size_t first = 0; first < order.size() && goes_on();
       first += static_cast<size_t>(options_.batch)) {
    const size_t last = std::min(order.size(), first + static_cast<size_t>(options_.batch));
    RETURN_IF_ERROR(TranslateGroup(sources,
                                   {order.begin() + static_cast<ptrdiff_t>(first),
                                    order.begin() + static_cast<ptrdiff_t>(last)},
                                   goes_on, on_one));
  }
  return absl::OkStatus();
}

namespace {

SourceBatch BatchOf(const std::vector<std::vector<int32_t>>& sources,
                    const std::vector<int64_t>& numbers) {
  SourceBatch batch{.samples = std::ssize(numbers)};
  size_t longest = 0;
  for (const int64_t i : numbers)
    longest = std::max(longest, sources[static_cast<size_t>(i)].size());
  batch.lengths.Set(Length::kSource, static_cast<int64_t>(longest));
  std::vector<int32_t>&ids = batch.ids["source"], &lengths = batch.ids["source_length"];
  for (const int64_t i : numbers) {
    const std::vector<int32_t>& source = sources[static_cast<size_t>(i)];
    ids.insert(ids.end(), source.begin(), source.end());
    ids.resize(ids.size() + longest - source.size(), 0);
    lengths.push_back(static_cast<int32_t>(source.size()));
  }
  return batch;
}

}  // namespace

absl::Status Translator::TranslateGroup(
    const std::vector<std::vector<int32_t>>& sources, std::vector<int64_t> numbers,
    const std::function<bool()>& goes_on,
    const std::function<void(int64_t number, Translation)>& on_one) {
  constexpr int kGroup = 0;
  RETURN_IF_ERROR(model_->Begin(kGroup, BatchOf(sources, numbers)));
  TranslationGroup group(search_, std::move(numbers), pool_.get());
  absl::Status status;
  const auto step = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const RowBatch rows, group.Rows());
    ASSIGN_OR_RETURN(const CandidatesOfRows candidates, model_->Step(kGroup, rows, choice_));
    RETURN_IF_ERROR(group.Take(candidates));
    for (const TranslationGroup::Translation& one : group.TakeDone()) {
      ASSIGN_OR_RETURN(std::string text, network_.tokenizer->Decode(one.best.tokens));
      on_one(one.number,
             {std::move(text), std::ssize(one.best.tokens), one.best.score, one.best.ended});
    }
    const std::optional<std::vector<int64_t>> kept = group.Shrink();
    return kept.has_value() ? model_->Keep(kGroup, *kept) : absl::OkStatus();
  };
  while (status.ok() && !group.over() && goes_on()) status = step();
  model_->Drop(kGroup);
  return status;
}

}  // namespace stagecoach
