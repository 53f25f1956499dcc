#include "services/cli/output/state_notes.h"

#include "absl/strings/str_cat.h"

namespace stagecoach {

void StateNotes::Show(const v1::StateRecord& state) {
  const std::string& why = state.message();
  const std::string text =
      absl::StrCat("job is ", state.detail(), why.empty() ? "" : absl::StrCat(": ", why));
  if (text == shown_) return;
  shown_ = text;
  console_->Note(text);
}

}  // namespace stagecoach
