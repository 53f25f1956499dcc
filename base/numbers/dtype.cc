#include "base/numbers/dtype.h"

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"

namespace stagecoach {
namespace {

struct Entry {
  DType dtype;
  const char* name;
  int64_t size;
};
constexpr Entry kEntries[] = {{DType::kF32, "F32", 4}, {DType::kBF16, "BF16", 2},
                              {DType::kI32, "I32", 4}, {DType::kU8, "U8", 1},
                              {DType::kF64, "F64", 8}, {DType::kI64, "I64", 8},
                              {DType::kF16, "F16", 2}};

const Entry& Find(DType dtype) {
  for (const Entry& entry : kEntries) {
    if (entry.dtype == dtype) return entry;
  }
  CHECK(false) << "unknown dtype " << static_cast<int>(dtype);
  return kEntries[0];
}

}  // namespace

int64_t DTypeSize(DType dtype) { return Find(dtype).size; }
const char* DTypeName(DType dtype) { return Find(dtype).name; }

absl::StatusOr<DType> ParseDType(const std::string& name) {
  for (const Entry& entry : kEntries) {
    if (name == entry.name) return entry.dtype;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("dtype \"", name, "\" is not one of F32, BF16, I32, U8, F64, I64, F16"));
}

}  // namespace stagecoach
