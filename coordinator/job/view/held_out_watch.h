// HeldOutWatch: an observer of a job's evaluations. It keeps the held-out pictures and the answers
// that people are shown. Nothing of the job depends on it.
// Ownership: a plain value; pictures and answers are shared, and replaced as a whole.
#ifndef STAGECOACH_COORDINATOR_JOB_VIEW_HELD_OUT_WATCH_H_
#define STAGECOACH_COORDINATOR_JOB_VIEW_HELD_OUT_WATCH_H_

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

  void Loaded(const LoadResult& stage) {
    if (stage.shown != nullptr) pictures = stage.shown;
  }
  void Begin() { gathered.clear(); }
  void Add(const StepReport& batch) {
    for (const ShownAnswer& answer : batch.shown) {
      if (std::ssize(gathered) < kShownPictures) gathered.push_back(answer);
    }
  }
  void End(uint64_t step) {
    if (gathered.empty()) return;
    answers = std::make_shared<const ShownAnswers>(ShownAnswers{step, std::move(gathered)});
    gathered.clear();
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOB_VIEW_HELD_OUT_WATCH_H_
