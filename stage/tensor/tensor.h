// Tensor: a dense row-major array on a stage's device; a handle to a shared buffer.
// Ownership: copies share the buffer; the last one returns it to the allocator. The creator of a
//            tensor may write it until it hands it on; after that it is read-only by agreement.
// Threads:   handles are thread-compatible, the buffer's life is thread-safe.
// Units and shapes: row-major, dense but for padded ones (MakePaddedTensor); activations are [rows,
//            width], rows = sequences * context.
// See:       docs/ARCHITECTURE.md, "Memory".
#ifndef STAGECOACH_STAGE_TENSOR_TENSOR_H_
#define STAGECOACH_STAGE_TENSOR_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/errors/check.h"
#include "base/numbers/dtype.h"
#include "base/numbers/shape.h"
#include "stage/tensor/allocator.h"

namespace stagecoach {

class Tensor {
 public:
  Tensor() = default;  // empty: valid() is false
  Tensor(std::shared_ptr<Buffer> buffer, DType dtype, Shape shape);

  bool valid() const { return buffer_ != nullptr; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t elements() const { return elements_; }
  int64_t bytes() const { return elements_ * DTypeSize(dtype_); }
  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }

  std::byte* raw() const {
    CheckDense();
    return buffer_->data();
  }
  // Device address; on CPU back ends the host may read it. CHECKs the element type.
  template <typename T>
  T* data() const {
    CheckType(sizeof(T));
    return reinterpret_cast<T*>(raw());
  }
  std::span<std::byte> span() const { return {raw(), static_cast<size_t>(bytes())}; }
  // row_stride: elements from one row to the next, more than the last extent if rows are padded.
  // The functions above CHECK that rows are dense. So only callers that know of strides, and use
  // these functions, get a padded tensor's address.
  bool padded() const { return row_stride_ != 0; }
  int64_t row_stride() const { return padded() ? row_stride_ : shape_.back(); }
  std::byte* rows_raw() const { return buffer_->data(); }
  template <typename T>
  T* rows() const {
    CheckType(sizeof(T));
    return reinterpret_cast<T*>(buffer_->data());
  }

  Tensor Reshaped(Shape shape) const;  // same buffer; CHECKs the number of elements
  // A view of the elements from `first` on, in this tensor's memory; CHECKs that they are there. It
  // has a buffer of its own, which keeps the whole.
  Tensor Slice(int64_t first, Shape shape) const;
  void Reset() { *this = Tensor(); }

 private:
  friend absl::StatusOr<Tensor> MakePaddedTensor(Allocator& allocator, MemoryKind kind, DType dtype,
                                                 Shape shape, int64_t row_stride);
  friend Tensor UnownedTensor(std::byte* data, DType dtype, Shape shape, int64_t row_stride);
  void CheckType(size_t element_size) const;
  void CheckDense() const { CHECK(!padded()) << shape_.ToString() << " has padded rows"; }

  std::shared_ptr<Buffer> buffer_;
  DType dtype_ = DType::kF32;
  Shape shape_;
  int64_t elements_ = 0;
  int64_t row_stride_ = 0;  // 0: dense
};

using Tensors = std::vector<Tensor>;

absl::StatusOr<Tensor> MakeTensor(Allocator& allocator, MemoryKind kind, DType dtype, Shape shape);
// [rows, columns] with rows that begin `row_stride` elements apart; the padding between them is
// never used. row_stride == columns: dense.
absl::StatusOr<Tensor> MakePaddedTensor(Allocator& allocator, MemoryKind kind, DType dtype,
                                        Shape shape, int64_t row_stride);
// A handle that keeps no memory: the caller guarantees the memory as long as the handle is used. No
// other tensor shares its buffer. row_stride 0: dense.
Tensor UnownedTensor(std::byte* data, DType dtype, Shape shape, int64_t row_stride);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TENSOR_TENSOR_H_
