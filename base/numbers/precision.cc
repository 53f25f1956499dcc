#include "base/numbers/precision.h"

#include "base/errors/check.h"

namespace stagecoach {

const char* PrecisionName(Precision precision) {
  switch (precision) {
    case Precision::kFloat32:
      return "float32";
    case Precision::kTensorFloat32:
      return "tensorfloat32";
    case Precision::kBfloat16:
      return "bfloat16";
  }
  CHECK(false) << "precision " << static_cast<int>(precision);
  return "";
}

}  // namespace stagecoach
