#include "base/numbers/shape.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/errors/check.h"

namespace stagecoach {

int64_t Shape::elements() const {
  absl::StatusOr<int64_t> count = CheckedElements(extents_);
  CHECK(count.ok()) << count.status().ToString();
  return *count;
}

std::string Shape::ToString() const {
  return absl::StrCat("[", absl::StrJoin(extents_, ", "), "]");
}

absl::StatusOr<int64_t> CheckedElements(const std::vector<int64_t>& extents) {
  if (extents.size() > static_cast<size_t>(Shape::kMaxRank)) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", extents.size(), " is over ", Shape::kMaxRank));
  }
  int64_t count = 1;
  bool zero = false;
  for (int64_t extent : extents) {
    if (extent < 0) return absl::InvalidArgumentError(absl::StrCat("extent ", extent, " < 0"));
    if (extent == 0) {
      zero = true;
      continue;
    }
    if (count > (int64_t{1} << 62) / extent) {
      return absl::InvalidArgumentError("number of elements is over 2^62");
    }
    count *= extent;
  }
  return zero ? 0 : count;
}

}  // namespace stagecoach
