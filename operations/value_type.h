// ValueType: the type of a value between the operations of a network.
// Units and shapes: `shape` is of one sample and of any rank (0: one number a sample), or of the
//            whole where `leading` is kOne. The samples of a micro-batch lie one after the other.
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

using ValueId = Id<struct ValueTag>;  // a place in the table of values of a graph or its lists

DType ElementDType(Element element, DType activation);

// Shape of the tensor for this many samples, as operations by rows take it: rows of the last
// extent, [samples * all others, last]. Ids, and statistics of one extent or none, are [samples *
// extent]. Kernels that need the extents apart take them from the type.
Shape RuntimeShape(const ValueType& type, int64_t samples);
int64_t TypeElements(const ValueType& type, int64_t samples);
int64_t TypeBytes(const ValueType& type, int64_t samples, DType activation);

// "activation[n, 8, 16]", "float32[16]", "ids[n, 8]".
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
