#include "stage/link/link.h"

#include "absl/strings/str_cat.h"

namespace stagecoach {

std::string BoundaryId::ToString() const {
  return absl::StrCat("job ", job, " term ", term, " generation ", generation, " boundary ",
                      upstream.value, " -> ", upstream.value + 1);
}

}  // namespace stagecoach
