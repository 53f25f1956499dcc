// HeldOutWatch: an observer of a job's evaluations. It keeps the held-out pictures, and the answers
// and translations that people are shown. Nothing of the job depends on it.
// Ownership: a plain value; pictures and answers are shared, and replaced as a whole.
#ifndef STAGECOACH_COORDINATOR_JOB_VIEW_HELD_OUT_WATCH_H_
#define STAGECOACH_COORDINATOR_JOB_VIEW_HELD_OUT_WATCH_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "plan/control.h"
#include "plan/job/held_out.h"

namespace stagecoach {

struct HeldOutWatch {
  ShownPictures pictures;                       // of the stage that reads images; null: none
  std::shared_ptr<const ShownAnswers> answers;  // of the last evaluation; null: none
  std::vector<ShownAnswer> gathered;            // of the evaluation at hand
  std::vector<ShownTranslation> gathered_translations;

  void Loaded(const LoadResult& stage) {
    if (stage.shown != nullptr) pictures = stage.shown;
  }
  void Begin() {
    gathered.clear();
    gathered_translations.clear();
  }
  void Add(const StepReport& batch) {
    for (const ShownAnswer& answer : batch.shown) {
      if (std::ssize(gathered) < kShownPictures) gathered.push_back(answer);
    }
    for (const ShownTranslation& one : batch.shown_translations) {
      if (std::ssize(gathered_translations) == kShownTranslations) break;
      gathered_translations.push_back(one);
    }
  }
  void End(uint64_t step) {
    if (gathered.empty() && gathered_translations.empty()) return;
    // Mini-batches have sentences by their lengths.
    std::sort(gathered_translations.begin(), gathered_translations.end(),
              [](const auto& a, const auto& b) { return a.number < b.number; });
    answers = std::make_shared<const ShownAnswers>(
        ShownAnswers{step, std::move(gathered), std::move(gathered_translations)});
    Begin();
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOB_VIEW_HELD_OUT_WATCH_H_
