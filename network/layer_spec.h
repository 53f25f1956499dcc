// LayerSpec: a layer as a job lists it: the name of its kind and the fields that a user gives. What
// a kind means is in network/layers, one file a kind; nothing else knows one.
// Ownership: a plain value.
// Errors:    none here: BuildLayer (network/layer_builder.h) checks kind and fields.
#ifndef STAGECOACH_NETWORK_LAYER_SPEC_H_
#define STAGECOACH_NETWORK_LAYER_SPEC_H_

#include <concepts>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operations/attributes.h"

namespace stagecoach {

// A kind's fields as a struct, in the kind's header: for tests and the zoo. Its name is kKind, and
// it visits its fields once, as an operation's struct does (operations/attributes.h).
template <typename Fields>
concept LayerFields = requires {
  { Fields::kKind } -> std::convertible_to<std::string_view>;
};

struct LayerSpec {
  LayerSpec() = default;
  // LayerSpec{LinearSpec{.out = 10}}; `layers` are the struct's, if it has any.
  template <LayerFields Fields>
  LayerSpec(
      Fields fields)  // NOLINT(google-explicit-constructor): so that lists of layers read well
      : kind(Fields::kKind) {
    if constexpr (requires { fields.layers; }) layers = std::move(fields.layers);
    attributes = ToAttributes(std::move(fields));
  }

  std::string kind;               // "layer_norm", as in YAML and parameter names
  Attributes attributes;          // its fields, in the order of its struct
  std::vector<LayerSpec> layers;  // inner ones, for kinds that have them
  friend bool operator==(const LayerSpec&, const LayerSpec&) = default;
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYER_SPEC_H_
