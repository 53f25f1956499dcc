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

ValueType Bound(const ValueType& type, const Lengths& lengths) {
  return {type.element, type.leading, type.shape.Bound(lengths)};
}

Shape RuntimeShape(const ValueType& type, const Binding& binding) {
  if (type.leading == Leading::kOne) return type.shape;
  if (type.shape.has_lengths()) return RuntimeShape(Bound(type, binding.lengths), binding.samples);
  const int64_t elements = TypeElements(type, binding);
  const bool rows =
      type.shape.rank() >= 2 || (type.shape.rank() == 1 && type.element == Element::kActivation);
  if (!rows) return Shape{elements};
  const int64_t width = type.shape.back();
  return {width == 0 ? 0 : elements / width, width};
}

Shape SentShape(const ValueType& type, const Binding& binding) {
  if (!type.shape.has_lengths()) return RuntimeShape(type, binding);
  Shape shape{binding.samples};
  const Shape bound = type.shape.Bound(binding.lengths);
  for (const int64_t extent : bound.extents()) shape = shape.Plus({extent});
  return shape;
}

namespace {

// -1: no whole number of samples.
int64_t SamplesOf(const ValueType& type, const Shape& shape) {
  const int64_t each = TypeElements(type, 1), elements = shape.elements();
  return each > 0 && elements % each == 0 ? elements / each : -1;
}

}  // namespace

bool ReadSentShape(const ValueType& type, const Shape& shape, Binding* binding) {
  if (type.leading == Leading::kOne) return shape == type.shape;
  Binding found = *binding;
  if (!type.shape.has_lengths()) {
    if (found.samples < 0) found.samples = SamplesOf(type, shape);
  } else {
    if (shape.rank() != type.shape.rank() + 1) return false;
    if (found.samples < 0) found.samples = shape[0];
    for (int i = 0; i < type.shape.rank(); ++i) {
      const auto [largest, length] = type.shape.extent(i);
      if (length == Length::kNone || found.lengths.of(length) > 0) continue;
      if (shape[i + 1] < 1 || shape[i + 1] > largest) return false;
      found.lengths.Set(length, shape[i + 1]);
    }
  }
  if (found.samples < 0 || shape != SentShape(type, found)) return false;
  *binding = found;
  return true;
}

int64_t TypeElements(const ValueType& type, const Binding& binding) {
  const int64_t each = type.shape.has_lengths() ? type.shape.Bound(binding.lengths).elements()
                                                : type.shape.elements();
  return each * (type.leading == Leading::kSamples ? binding.samples : 1);
}

int64_t TypeBytes(const ValueType& type, const Binding& binding, DType activation) {
  return TypeElements(type, binding) * DTypeSize(ElementDType(type.element, activation));
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
  for (int i = 0; i < type.shape.rank(); ++i) {
    const auto [size, length] = type.shape.extent(i);
    absl::StrAppend(&text, separator);
    if (length != Length::kNone) absl::StrAppend(&text, LengthName(length), " ");
    absl::StrAppend(&text, size);
    separator = ", ";
  }
  return text + "]";
}

}  // namespace stagecoach
