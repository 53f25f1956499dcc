// ShownJson: the held-out pictures and sentences that people are shown, and what the network says of
// them, as texts for the journal.
// Threads: pure functions.
// Errors:  DATA_LOSS: not a text of these functions. An empty text means nothing to show.
#ifndef STAGECOACH_COORDINATOR_JOB_VIEW_SHOWN_JSON_H_
#define STAGECOACH_COORDINATOR_JOB_VIEW_SHOWN_JSON_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/job/view/held_out_watch.h"
#include "coordinator/job/view/job_view.h"
#include "plan/job/held_out.h"

namespace stagecoach {

std::string EncodeShownPictures(const std::vector<std::string>& files);
absl::StatusOr<std::vector<std::string>> DecodeShownPictures(const std::string& text);

// An answer with the names of its classes; empty: they have none.
struct NamedAnswer {
  ShownAnswer shown;
  std::string label_name, answer_name;
};
struct NamedAnswers {
  uint64_t step = 0;
  std::vector<NamedAnswer> answers;
  std::vector<ShownTranslation> translations;
};
// classes: names by number; there may be fewer.
std::string EncodeShownAnswers(const ShownAnswers& shown, const std::vector<std::string>& classes);
absl::StatusOr<NamedAnswers> DecodeShownAnswers(const std::string& text);

// The texts of pictures and answers that are new since `written`.
ShownTexts EncodeNews(const HeldOutWatch& now, const HeldOutWatch& written,
                      const std::vector<std::string>& classes);

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOB_VIEW_SHOWN_JSON_H_
