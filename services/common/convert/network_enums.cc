#include "services/common/convert/network_enums.h"

#include "absl/strings/str_cat.h"

namespace stagecoach {
namespace {

absl::Status NotKnown(const char* what, int number) {
  return absl::InvalidArgumentError(
      absl::StrCat(what, " ", number, ": this version does not know that value"));
}

}  // namespace

v1::Network::Element ToProto(Element element) {
  switch (element) {
    case Element::kActivation:
      return v1::Network::ELEMENT_ACTIVATION;
    case Element::kFloat32:
      return v1::Network::ELEMENT_FLOAT32;
    case Element::kFloat64:
      return v1::Network::ELEMENT_FLOAT64;
    case Element::kIds:
      return v1::Network::ELEMENT_IDS;
  }
  return v1::Network::ELEMENT_UNSPECIFIED;
}

absl::StatusOr<Element> FromProto(v1::Network::Element proto) {
  switch (proto) {
    case v1::Network::ELEMENT_ACTIVATION:
      return Element::kActivation;
    case v1::Network::ELEMENT_FLOAT32:
      return Element::kFloat32;
    case v1::Network::ELEMENT_FLOAT64:
      return Element::kFloat64;
    case v1::Network::ELEMENT_IDS:
      return Element::kIds;
    default:
      return NotKnown("element", proto);
  }
}

v1::Network::Initial ToProto(ParameterSpec::Init init) {
  switch (init) {
    case ParameterSpec::Init::kZeros:
      return v1::Network::INITIAL_ZEROS;
    case ParameterSpec::Init::kOnes:
      return v1::Network::INITIAL_ONES;
    case ParameterSpec::Init::kNormal:
      return v1::Network::INITIAL_NORMAL;
  }
  return v1::Network::INITIAL_UNSPECIFIED;
}

absl::StatusOr<ParameterSpec::Init> FromProto(v1::Network::Initial proto) {
  switch (proto) {
    case v1::Network::INITIAL_ZEROS:
      return ParameterSpec::Init::kZeros;
    case v1::Network::INITIAL_ONES:
      return ParameterSpec::Init::kOnes;
    case v1::Network::INITIAL_NORMAL:
      return ParameterSpec::Init::kNormal;
    default:
      return NotKnown("initial value", proto);
  }
}

}  // namespace stagecoach
