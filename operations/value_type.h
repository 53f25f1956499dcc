// ValueType: the type of a value between the operations of a network.
// Units and shapes: `shape` is of one sample and of any rank (0: one number a sample), or of the
//            whole where `leading` is kOne. The samples of a micro-batch lie one after the other.
//            Extents with names have their largest value; a binding gives those of a micro-batch.
//            Images are [height, width, channels].
// Errors:    none.
#ifndef STAGECOACH_OPERATIONS_VALUE_TYPE_H_
#define STAGECOACH_OPERATIONS_VALUE_TYPE_H_

#include <cstdint>
#include <string>

#include "base/ids.h"
#include "base/numbers/dtype.h"
#include "base/numbers/shape.h"

namespace stagecoach {

// kActivation is the type that the job's precision computes in. Activations, their gradients and
// the copies of weights that products read have it. kFloat64 is for sums that are reported. kIds is
// for indexes, without a gradient.
enum class Element { kActivation, kFloat32, kFloat64, kIds };

enum class Leading { kSamples, kOne };

struct ValueType {
  Element element = Element::kActivation;
  Leading leading = Leading::kSamples;
  Shape shape;
  friend bool operator==(const ValueType&, const ValueType&) = default;
};

// Sizes of a micro-batch.
struct Binding {
  int64_t samples = 0;
  Lengths lengths;
  Binding(int64_t count = 0, const Lengths& named = {})  // NOLINT: a count is enough for most
      : samples(count), lengths(named) {}
  friend bool operator==(const Binding&, const Binding&) = default;
};

using ValueId = Id<struct ValueTag>;  // a place in the table of values of a graph or its lists

DType ElementDType(Element element, DType activation);

// The type with values in place of the names.
ValueType Bound(const ValueType& type, const Lengths& lengths);

// Shape of the tensor of a micro-batch, as operations by rows take it: rows of the last
// extent, [samples * all others, last]. Ids, and statistics of one extent or none, are [samples *
// extent]. Kernels that need the extents apart take them from the type.
Shape RuntimeShape(const ValueType& type, const Binding& binding);
// Shape of the same tensor on its way to another stage: with all extents if some have names, so
// that the receiver can tell them.
Shape SentShape(const ValueType& type, const Binding& binding);
// What a sent shape tells: samples, and the lengths that the type names; others are left alone.
// Returns false if it is no shape of the type, or contradicts what `binding` has already: a number
// of samples that is not negative, lengths that are not 0.
bool ReadSentShape(const ValueType& type, const Shape& shape, Binding* binding);
int64_t TypeElements(const ValueType& type, const Binding& binding);
int64_t TypeBytes(const ValueType& type, const Binding& binding, DType activation);

// "activation[n, 8, 16]", "float32[16]", "ids[n, source 8]": up to 8 ids.
std::string FormatType(const ValueType& type);

inline ValueType ActivationType(Shape shape) {
  return {Element::kActivation, Leading::kSamples, std::move(shape)};
}
// Type of values that exist once: parameters and their gradients.
inline ValueType WeightType(Element element, Shape shape) {
  return {element, Leading::kOne, std::move(shape)};
}

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_VALUE_TYPE_H_
