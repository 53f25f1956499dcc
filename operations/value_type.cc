#include "operations/value_type.h"

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"

namespace stagecoach {

DType ElementDType(Element element, DType activation) {
  switch (element) {
    case Element::kActivation:
      return activation;
    case Element::kFloat32:
      return DType::kF32;
    case Element::kFloat64:
      return DType::kF64;
    case Element::kIds:
      return DType::kI32;
  }
  CHECK(false) << "element " << static_cast<int>(element);
  return activation;
}

Shape RuntimeShape(const ValueType& type, int64_t samples) {
  if (type.leading == Leading::kOne) return type.shape;
  const int64_t elements = TypeElements(type, samples);
  const bool rows =
      type.shape.rank() >= 2 || (type.shape.rank() == 1 && type.element == Element::kActivation);
  if (!rows) return Shape{elements};
  const int64_t width = type.shape.back();
  return {width == 0 ? 0 : elements / width, width};
}

int64_t TypeElements(const ValueType& type, int64_t samples) {
  return type.shape.elements() * (type.leading == Leading::kSamples ? samples : 1);
}

int64_t TypeBytes(const ValueType& type, int64_t samples, DType activation) {
  return TypeElements(type, samples) * DTypeSize(ElementDType(type.element, activation));
}

std::string FormatType(const ValueType& type) {
  std::string text;
  switch (type.element) {
    case Element::kActivation:
      text = "activation[";
      break;
    case Element::kFloat32:
      text = "float32[";
      break;
    case Element::kFloat64:
      text = "float64[";
      break;
    case Element::kIds:
      text = "ids[";
      break;
  }
  const char* separator = "";
  if (type.leading == Leading::kSamples) {
    text += "n";
    separator = ", ";
  }
  for (const int64_t extent : type.shape.extents()) {
    absl::StrAppend(&text, separator, extent);
    separator = ", ";
  }
  return text + "]";
}

}  // namespace stagecoach
