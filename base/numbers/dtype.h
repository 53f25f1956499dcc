// DType: element types, named as safetensors names them.
#ifndef STAGECOACH_BASE_NUMBERS_DTYPE_H_
#define STAGECOACH_BASE_NUMBERS_DTYPE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace stagecoach {

enum class DType : uint8_t {
  kF32 = 1,
  kBF16 = 2,
  kI32 = 3,
  kU8 = 4,
  kF64 = 5,
  kI64 = 6,
  kF16 = 7  // only in files of other programs
};

int64_t DTypeSize(DType dtype);      // bytes of one element
const char* DTypeName(DType dtype);  // "F32", "BF16", "I32", "U8", "F64", "I64", "F16"
absl::StatusOr<DType> ParseDType(const std::string& name);

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_NUMBERS_DTYPE_H_
