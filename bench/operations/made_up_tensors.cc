#include "bench/operations/made_up_tensors.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "base/errors/status.h"
#include "base/numbers/random.h"

namespace stagecoach {
namespace {

constexpr int64_t kPattern = int64_t{1} << 20;

float UniformValue(uint64_t i) {
  return static_cast<float>(static_cast<int32_t>(RandomBits({.seed = 1, .operation = 1}, i))) *
         0x1p-31f;
}

}  // namespace

absl::StatusOr<Tensor> MadeUpTensors::New(DType dtype, const Shape& shape) {
  return MakeTensor(backend_.allocator(), MemoryKind::kActivations, dtype, shape);
}

absl::Status MadeUpTensors::FillWithPattern(const Tensor& tensor) {
  if (!pattern_.valid()) {
    std::vector<float> values(kPattern);
    for (size_t i = 0; i < values.size(); ++i) values[i] = UniformValue(i);
    ASSIGN_OR_RETURN(Tensor pattern, New(DType::kF32, {kPattern}));
    backend_.CopyFromHost(std::as_bytes(std::span(values)), pattern);
    RETURN_IF_ERROR(backend_.Synchronize());
    pattern_ = std::move(pattern);
  }
  const int64_t all = tensor.elements();
  for (int64_t first = 0; first < all; first += kPattern) {
    const Shape part{std::min(kPattern, all - first)};
    backend_.Convert(pattern_.Slice(0, part), tensor.Slice(first, part));
  }
  return backend_.Synchronize();
}

absl::StatusOr<Tensor> MadeUpTensors::Numbers(DType dtype, const Shape& shape) {
  ASSIGN_OR_RETURN(Tensor tensor, New(dtype, shape));
  RETURN_IF_ERROR(FillWithPattern(tensor));
  return tensor;
}

absl::StatusOr<Tensor> MadeUpTensors::Ids(const Shape& shape, int64_t classes) {
  std::vector<int32_t> ids(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < ids.size(); ++i) {
    const double u = std::abs(static_cast<double>(UniformValue(i)));
    const auto id = static_cast<int64_t>(static_cast<double>(classes) * u * u * u * u);
    ids[i] = static_cast<int32_t>(std::min(id, classes - 1));
  }
  ASSIGN_OR_RETURN(Tensor tensor, New(DType::kI32, shape));
  backend_.CopyFromHost(std::as_bytes(std::span(ids)), tensor);
  RETURN_IF_ERROR(backend_.Synchronize());
  return tensor;
}

absl::StatusOr<Tensor> MadeUpTensors::Operand(const ValueType& type, int64_t samples,
                                              DType activation, int64_t classes, bool padded) {
  const Shape shape = RuntimeShape(type, samples);
  switch (type.element) {
    case Element::kIds:
      return Ids(shape, classes);
    case Element::kFloat64:
      return New(DType::kF64, shape);
    case Element::kActivation:
    case Element::kFloat32:
      break;
  }
  const DType dtype = ElementDType(type.element, activation);
  if (!padded) return Numbers(dtype, shape);
  ASSIGN_OR_RETURN(Tensor tensor,
                   MakePaddedTensor(backend_.allocator(), MemoryKind::kActivations, dtype, shape,
                                    backend_.LogitsStride(shape.back(), dtype)));
  const int64_t whole = shape[0] * tensor.row_stride();
  RETURN_IF_ERROR(FillWithPattern(Tensor(tensor.buffer(), dtype, Shape{whole})));
  return tensor;
}

}  // namespace stagecoach
