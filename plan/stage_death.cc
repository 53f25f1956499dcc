#include "plan/stage_death.h"

#include "absl/strings/str_cat.h"

namespace stagecoach {

std::string DeathText(const StageDeath& death) {
  if (death.fence.job.empty()) return absl::StrCat(death.signal, " with no work at hand");
  std::string text = absl::StrCat(death.signal, " at step ", death.fence.step);
  if (death.micro_batch.valid()) {
    absl::StrAppend(&text, ", micro-batch ", death.micro_batch.value);
  }
  absl::StrAppend(&text, ", ", death.instruction);
  if (!death.operation.empty()) absl::StrAppend(&text, " (", death.operation, ")");
  return text;
}

}  // namespace stagecoach
