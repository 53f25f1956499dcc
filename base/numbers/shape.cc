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

Shape Shape::Of(std::initializer_list<Extent> extents) {
  Shape shape;
  for (const Extent& extent : extents) shape = shape.Plus(extent);
  return shape;
}

Shape Shape::With(int i, Extent extent) const {
  CHECK(i >= 0 && i < rank() && i < kMaxRank) << "extent " << i << " of " << ToString();
  Shape changed = *this;
  changed.extents_[static_cast<size_t>(i)] = extent.size;
  changed.lengths_[static_cast<size_t>(i)] = extent.length;
  return changed;
}

Shape Shape::Plus(Extent extent) const {
  Shape longer = *this;
  longer.extents_.push_back(0);
  return longer.With(rank(), extent);
}

Shape Shape::WithoutLast() const {
  CHECK(rank() > 0) << "a scalar";
  Shape shorter = With(rank() - 1, Extent{});
  shorter.extents_.pop_back();
  return shorter;
}

Shape Shape::Bound(const Lengths& lengths) const {
  Shape bound(extents_);
  for (size_t i = 0; i < extents_.size() && i < kMaxRank; ++i) {
    const int64_t value = lengths.of(lengths_[i]);
    if (value > 0) bound.extents_[i] = value;
  }
  return bound;
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
