// Precision: the number format that a job computes in.
// - float32: everything in float32, products too.
// - tensorfloat32: float32 everywhere, but a CUDA stage may round the arguments of matrix products
//   to 10 bits of mantissa (TF32). Other devices compute as in float32.
// - bfloat16: activations, boundary tensors and the copies of the weights that operations read are
//   bfloat16. Everything else stays float32 or better: master weights, gradients, optimizer state,
//   statistics, the loss and every sum inside of an operation.
// Checkpoints and exported weights hold the float32 masters in every precision. So a job may be
// resumed with another.
#ifndef STAGECOACH_BASE_NUMBERS_PRECISION_H_
#define STAGECOACH_BASE_NUMBERS_PRECISION_H_

#include "base/numbers/dtype.h"

namespace stagecoach {

enum class Precision { kFloat32, kTensorFloat32, kBfloat16 };

const char* PrecisionName(Precision precision);  // "float32", "tensorfloat32", "bfloat16"

// Type of activations, boundary tensors and the weights that operations read.
inline DType ComputeDType(Precision precision) {
  switch (precision) {
    case Precision::kFloat32:
    case Precision::kTensorFloat32:
      return DType::kF32;
    case Precision::kBfloat16:
      return DType::kBF16;
  }
  return DType::kF32;  // not reached: the switch is exhaustive
}

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_NUMBERS_PRECISION_H_
