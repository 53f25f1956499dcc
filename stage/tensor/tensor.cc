#include "stage/tensor/tensor.h"

#include <utility>

namespace stagecoach {
namespace {

class BufferView final : public Buffer {
 public:
  BufferView(std::shared_ptr<Buffer> whole, int64_t offset, int64_t bytes)
      : Buffer(whole->data() + offset, bytes, *whole), whole_(std::move(whole)) {}

 private:
  const std::shared_ptr<Buffer> whole_;
};

class UnownedBuffer final : public Buffer {
 public:
  UnownedBuffer(std::byte* data, int64_t bytes) : Buffer(data, bytes) {}
};

}  // namespace

Tensor::Tensor(std::shared_ptr<Buffer> buffer, DType dtype, Shape shape)
    : buffer_(std::move(buffer)), dtype_(dtype), shape_(std::move(shape)) {
  elements_ = shape_.elements();
  CHECK(buffer_ != nullptr) << "a tensor needs a buffer";
  CHECK_LE(bytes(), buffer_->bytes()) << "shape " << shape_.ToString();
}

Tensor Tensor::Reshaped(Shape shape) const {
  CheckDense();
  CHECK_EQ(shape.elements(), elements_) << shape_.ToString() << " to " << shape.ToString();
  return Tensor(buffer_, dtype_, std::move(shape));
}

Tensor Tensor::Slice(int64_t first, Shape shape) const {
  CHECK(valid()) << "an empty tensor has no slices";
  CheckDense();
  const int64_t count = shape.elements();
  CHECK(0 <= first && count <= elements_ - first)
      << shape.ToString() << " at " << first << " of " << shape_.ToString();
  const int64_t element = DTypeSize(dtype_);
  auto view = std::make_shared<BufferView>(buffer_, first * element, count * element);
  return Tensor(std::move(view), dtype_, std::move(shape));
}

void Tensor::CheckType(size_t element_size) const {
  CHECK(valid()) << "an empty tensor has no data";
  CHECK_EQ(static_cast<int64_t>(element_size), DTypeSize(dtype_)) << DTypeName(dtype_);
}

absl::StatusOr<Tensor> MakeTensor(Allocator& allocator, MemoryKind kind, DType dtype, Shape shape) {
  const int64_t bytes = shape.elements() * DTypeSize(dtype);
  absl::StatusOr<std::shared_ptr<Buffer>> buffer = allocator.Allocate(bytes, kind);
  if (!buffer.ok()) return buffer.status();
  return Tensor(*std::move(buffer), dtype, std::move(shape));
}

absl::StatusOr<Tensor> MakePaddedTensor(Allocator& allocator, MemoryKind kind, DType dtype,
                                        Shape shape, int64_t row_stride) {
  CHECK_EQ(shape.rank(), 2) << shape.ToString();
  CHECK_GE(row_stride, shape[1]) << shape.ToString();
  if (row_stride == shape[1]) return MakeTensor(allocator, kind, dtype, std::move(shape));
  absl::StatusOr<std::shared_ptr<Buffer>> buffer =
      allocator.Allocate(shape[0] * row_stride * DTypeSize(dtype), kind);
  if (!buffer.ok()) return buffer.status();
  Tensor tensor(*std::move(buffer), dtype, std::move(shape));
  tensor.row_stride_ = row_stride;
  return tensor;
}

Tensor UnownedTensor(std::byte* data, DType dtype, Shape shape, int64_t row_stride) {
  const int64_t elements = row_stride == 0 ? shape.elements() : shape[0] * row_stride;
  Tensor tensor(std::make_shared<UnownedBuffer>(data, elements * DTypeSize(dtype)), dtype,
                std::move(shape));
  tensor.row_stride_ = row_stride;
  return tensor;
}

}  // namespace stagecoach
