// ObjectiveSpec: what a network is to be trained for, as a job gives it: the name of a kind and its fields. What a kind
// means is in network/objectives, one file a kind.
// Ownership: a plain value.
// Errors:    none here: SetObjective (network/objective_kind.h) checks kind and fields.
#ifndef STAGECOACH_NETWORK_OBJECTIVE_SPEC_H_
#define STAGECOACH_NETWORK_OBJECTIVE_SPEC_H_

#include <concepts>
#include <string>
#include <string_view>
#include <utility>

#include "operations/attributes.h"

namespace stagecoach {

// A kind's fields as a struct, in its header, as those of layers are (network/layer_spec.h).
template <typename Fields>
concept ObjectiveFields = requires {
  { Fields::kObjective } -> std::convertible_to<std::string_view>;
};

struct ObjectiveSpec {
  ObjectiveSpec() = default;
  template <ObjectiveFields Fields>
  ObjectiveSpec(Fields fields)  // NOLINT(google-explicit-constructor): reads as LayerSpec does
      : kind(Fields::kObjective), attributes(ToAttributes(std::move(fields))) {}

  std::string kind;  // "cross_entropy"; empty: the network's own
  Attributes attributes;
  friend bool operator==(const ObjectiveSpec&, const ObjectiveSpec&) = default;
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_OBJECTIVE_SPEC_H_
