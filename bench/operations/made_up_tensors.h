// Tensors for a call that is timed, of values of ordinary size: zeros are faster on a card, and
// denormals slower on a processor.
// Ownership: borrows the back end; the tensors belong to the caller.
// Threads:   one at a time.
// Errors:    RESOURCE_EXHAUSTED where the device has no room for them.
#ifndef STAGECOACH_BENCH_OPERATIONS_MADE_UP_TENSORS_H_
#define STAGECOACH_BENCH_OPERATIONS_MADE_UP_TENSORS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "operations/value_type.h"
#include "stage/backends/backend.h"

namespace stagecoach {

class MadeUpTensors {
 public:
  explicit MadeUpTensors(Backend& backend) : backend_(backend) {}

  // Uniform in (-1, 1), from a pattern that repeats after 2^20 values.
  absl::StatusOr<Tensor> Numbers(DType dtype, const Shape& shape);
  // Below `classes`, few of them often, as the bytes and words of a text: classes * u^4 of a
  // uniform u.
  absl::StatusOr<Tensor> Ids(const Shape& shape, int64_t classes);
  // An operand of a call. classes: of ids. padded: with rows as far apart as the back end wants
  // those of logits.
  absl::StatusOr<Tensor> Operand(const ValueType& type, int64_t samples, DType activation,
                                 int64_t classes, bool padded = false);

 private:
  absl::StatusOr<Tensor> New(DType dtype, const Shape& shape);
  absl::Status FillWithPattern(const Tensor& tensor);

  Backend& backend_;
  Tensor pattern_;  // on the device
};

}  // namespace stagecoach

#endif  // STAGECOACH_BENCH_OPERATIONS_MADE_UP_TENSORS_H_
