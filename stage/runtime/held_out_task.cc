// Translations of held-out sentences: counted for BLEU and chrF2, and the first ones shown.
#include <numeric>
#include <string>
#include <utility>

#include "base/errors/check.h"
#include "base/errors/status.h"
#include "plan/costs/decoding_memory.h"
#include "scores/corpus_counts.h"
#include "stage/decoding/translation_search.h"
#include "stage/runtime/loaded_cells.h"
#include "stage/runtime/text_task.h"

namespace stagecoach {
namespace {

class HeldOutTask final : public TextTask {
 public:
  HeldOutTask(const LoadedCells& loaded, int64_t pool_rows)
      : data_(*loaded.data),
        micro_batches_(static_cast<int>(loaded.command.spec.training.micro_batches)),
        groups_(
            SearchWith(*loaded.data->tokenizer(),
                       TranslationOf(*loaded.command.spec.evaluation.translate, loaded.network())),
            pool_rows) {}

  absl::StatusOr<std::vector<TokenSearch*>> Begin(uint64_t batch) override {
    sentences_.clear();
    std::vector<std::vector<int64_t>> numbers;
    for (int i = 0; i < micro_batches_; ++i) {
      const std::vector<HeldOutSentence> some = data_.Sentences(batch, MicroBatchId(i));
      numbers.emplace_back(some.size());
      std::iota(numbers.back().begin(), numbers.back().end(), std::ssize(sentences_));
      sentences_.insert(sentences_.end(), some.begin(), some.end());
    }
    return groups_.Begin(std::move(numbers));
  }

  StepChoice choice() const override { return groups_.choice(); }

  absl::Status Report(StepReport* report) override {
    CorpusCounts counts;
    const std::vector<TranslationGroup::Translation> done = groups_.TakeDone();
    CHECK_EQ(done.size(), sentences_.size()) << "translations of the mini-batch";
    for (const TranslationGroup::Translation& one : done) {
      const HeldOutSentence& sentence = sentences_[static_cast<size_t>(one.number)];
      ASSIGN_OR_RETURN(std::string text, data_.tokenizer()->Decode(one.best.tokens));
      counts += CountSegment(text, sentence.target);
      if (sentence.number >= kShownTranslations) continue;
      report->shown_translations.push_back({.number = sentence.number,
                                            .source = std::string(sentence.source),
                                            .reference = std::string(sentence.target),
                                            .translation = std::move(text)});
    }
    report->translation_counts = counts.Numbers();
    return absl::OkStatus();
  }

 private:
  const BatchSource& data_;
  const int micro_batches_;
  TranslationGroups groups_;
  std::vector<HeldOutSentence> sentences_;  // of the mini-batch
};

}  // namespace

std::unique_ptr<TextTask> TranslateHeldOut(const LoadedCells& loaded, int64_t pool_rows) {
  return std::make_unique<HeldOutTask>(loaded, pool_rows);
}

}  // namespace stagecoach
