// Lists of things with one file each, as the kinds of layers. A list has their names in order;
// things register in no other way. No constructor of a thing runs before main, so no linker drops
// one. A file without its function does not link.
#ifndef STAGECOACH_BASE_LISTED_H_
#define STAGECOACH_BASE_LISTED_H_

#include <cstddef>
#include <vector>

// STAGECOACH_LISTED(Function, Suffix, First, Second, ...), at most 64 names: declares the functions
// FirstSuffix, SecondSuffix and so on, of the type Function, and an array of pointers to them,
// kListedSuffix.
#define STAGECOACH_LISTED(Function, Suffix, ...)                           \
  STAGECOACH_EACH(STAGECOACH_EACH_FUNCTION, Function, Suffix, __VA_ARGS__) \
  inline constexpr Function* kListed##Suffix[] = {                         \
      STAGECOACH_EACH(STAGECOACH_EACH_POINTER, Function, Suffix, __VA_ARGS__)};
#define STAGECOACH_EACH_FUNCTION(Function, Suffix, Name) Function Name##Suffix;
#define STAGECOACH_EACH_POINTER(Function, Suffix, Name) &Name##Suffix,

// Expands to macro(a, b, name) for each name. A macro cannot call itself, so each scan of the text
// expands one name and leaves the next.
#define STAGECOACH_EACH(macro, a, b, ...) \
  STAGECOACH_SCAN64(STAGECOACH_ONE(macro, a, b, __VA_ARGS__))
#define STAGECOACH_ONE(macro, a, b, name, ...) \
  macro(a, b, name) __VA_OPT__(STAGECOACH_NEXT STAGECOACH_NOTHING(macro, a, b, __VA_ARGS__))
#define STAGECOACH_NEXT() STAGECOACH_ONE
#define STAGECOACH_NOTHING ()
#define STAGECOACH_SCAN64(...) \
  STAGECOACH_SCAN16(STAGECOACH_SCAN16(STAGECOACH_SCAN16(STAGECOACH_SCAN16(__VA_ARGS__))))
#define STAGECOACH_SCAN16(...) \
  STAGECOACH_SCAN4(STAGECOACH_SCAN4(STAGECOACH_SCAN4(STAGECOACH_SCAN4(__VA_ARGS__))))
#define STAGECOACH_SCAN4(...) STAGECOACH_SCAN(STAGECOACH_SCAN(STAGECOACH_SCAN(__VA_ARGS__)))
#define STAGECOACH_SCAN(...) __VA_ARGS__

namespace stagecoach {

template <typename Thing>
using Giver = Thing();

// The things in the order of the list.
template <typename Thing, size_t kCount>
std::vector<Thing> CallEach(Giver<Thing>* const (&listed)[kCount]) {
  std::vector<Thing> things;
  for (Giver<Thing>* const give : listed) things.push_back(give());
  return things;
}

// For two lists of the same names: the function in `parts` at the place of `thing` in `listed`.
template <typename Thing, typename Part, size_t kCount>
Part& PartOf(const Thing& thing, Giver<const Thing*>* const (&listed)[kCount],
             Part* const (&parts)[kCount]) {
  size_t i = 0;
  while (listed[i]() != &thing) ++i;
  return *parts[i];
}

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_LISTED_H_
