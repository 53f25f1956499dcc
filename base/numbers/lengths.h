// Lengths: named extents of types, which each micro-batch sets anew. A type holds the largest value
// that the network allows (PIPELINES: sizes are bound, not counted).
// Units:  elements along an extent; 0: the largest.
// Errors: none; plain values.
#ifndef STAGECOACH_BASE_NUMBERS_LENGTHS_H_
#define STAGECOACH_BASE_NUMBERS_LENGTHS_H_

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>

namespace stagecoach {

// The names. kSource and kTarget are the two sides of a translation.
enum class Length : uint8_t { kNone, kSource, kTarget };
inline constexpr std::array kNamedLengths = {Length::kSource, Length::kTarget};

constexpr const char* LengthName(Length length) {
  constexpr std::array names = {"none", "source", "target"};
  return names[static_cast<size_t>(length)];
}

class Lengths {
 public:
  constexpr int64_t of(Length length) const { return values_[static_cast<size_t>(length)]; }
  constexpr void Set(Length length, int64_t value) { values_[static_cast<size_t>(length)] = value; }
  friend bool operator==(const Lengths&, const Lengths&) = default;
  friend auto operator<=>(const Lengths&, const Lengths&) = default;

 private:
  std::array<int64_t, kNamedLengths.size() + 1> values_{};  // that of kNone stays 0
};

// An extent of a type: its size, the largest if it has a name.
struct Extent {
  int64_t size = 0;
  Length length = Length::kNone;
};

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_NUMBERS_LENGTHS_H_
