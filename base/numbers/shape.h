// Shape: extents of a dense row-major array, at most 8 of them.
// Units and shapes: elements; a shape without extents is a scalar; a zero extent is legal. Extents of
//            a type may have names (base/numbers/lengths.h); those of a tensor have none.
// Errors: Numbers from outside must go through CheckedElements (overflow, sign, rank). elements()
//         only CHECKs these.
#ifndef STAGECOACH_BASE_NUMBERS_SHAPE_H_
#define STAGECOACH_BASE_NUMBERS_SHAPE_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/numbers/lengths.h"

namespace stagecoach {

class Shape {
 public:
  static constexpr int kMaxRank = 8;

  Shape() = default;
  Shape(std::initializer_list<int64_t> extents) : extents_(extents) {}
  static Shape Of(std::initializer_list<Extent> extents);
  explicit Shape(std::vector<int64_t> extents) : extents_(std::move(extents)) {}

  int rank() const { return static_cast<int>(extents_.size()); }
  int64_t operator[](int i) const { return extents_[i]; }
  int64_t back() const { return extents_.back(); }
  Extent extent(int i) const { return {extents_[i], lengths_[i]}; }
  Shape With(int i, Extent extent) const;  // the same with another extent in that place
  Shape Plus(Extent extent) const;         // with one more behind the last
  Shape WithoutLast() const;
  bool has_lengths() const { return lengths_ != std::array<Length, kMaxRank>(); }
  Shape Bound(const Lengths& lengths) const;  // with values in place of the names
  const std::vector<int64_t>& extents() const { return extents_; }
  int64_t elements() const;
  std::string ToString() const;  // "[4, 256, 384]"

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::vector<int64_t> extents_;
  std::array<Length, kMaxRank> lengths_{};  // by extent
};

// Product of the extents; INVALID_ARGUMENT if negative, of too many extents, or over 2^62.
absl::StatusOr<int64_t> CheckedElements(const std::vector<int64_t>& extents);

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_NUMBERS_SHAPE_H_
