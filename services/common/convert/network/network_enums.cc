#include "services/common/convert/network/network_enums.h"

#include "absl/strings/str_cat.h"

namespace stagecoach {
namespace {

absl::Status NotKnown(const char* what, int number) {
  return absl::InvalidArgumentError(
      absl::StrCat(what, " ", number, ": this version does not know that value"));
}

// Values stand in one order on both sides; 0 of a message is none.
static_assert(static_cast<int>(Element::kIds) + 1 == v1::Network::ELEMENT_IDS);
static_assert(static_cast<int>(ParameterSpec::Init::kNormal) + 1 == v1::Network::INITIAL_NORMAL);

}  // namespace

v1::Network::Element ToProto(Element element) {
  return static_cast<v1::Network::Element>(static_cast<int>(element) + 1);
}

absl::StatusOr<Element> FromProto(v1::Network::Element proto) {
  if (proto == 0 || !v1::Network::Element_IsValid(proto)) return NotKnown("element", proto);
  return static_cast<Element>(proto - 1);
}

v1::Network::Initial ToProto(ParameterSpec::Init init) {
  return static_cast<v1::Network::Initial>(static_cast<int>(init) + 1);
}

absl::StatusOr<ParameterSpec::Init> FromProto(v1::Network::Initial proto) {
  if (proto == 0 || !v1::Network::Initial_IsValid(proto)) return NotKnown("initial value", proto);
  return static_cast<ParameterSpec::Init>(proto - 1);
}

}  // namespace stagecoach
