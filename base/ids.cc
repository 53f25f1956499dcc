#include "base/ids.h"

#include <tuple>

#include "absl/strings/str_cat.h"

namespace stagecoach {

std::string Fence::ToString() const {
  return absl::StrCat("job ", job, " term ", term, " generation ", generation, " step ", step,
                      " attempt ", attempt);
}

std::strong_ordering CompareIncarnation(const Fence& a, const Fence& b) {
  return std::tie(a.term, a.generation) <=> std::tie(b.term, b.generation);
}

}  // namespace stagecoach
