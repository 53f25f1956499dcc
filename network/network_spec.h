// NetworkSpec: a network as a job asks for it: the name of its kind and the fields that a user
// gives. The meaning of a kind is in network/zoo, one file a kind; nothing else knows one.
// Ownership: a plain value.
// Errors:    none here: ExpandNetwork (network/network_kinds.h) checks kind and fields.
#ifndef STAGECOACH_NETWORK_NETWORK_SPEC_H_
#define STAGECOACH_NETWORK_NETWORK_SPEC_H_

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "network/layer_spec.h"
#include "operations/attributes.h"
#include "operations/kind_spec.h"

namespace stagecoach {

// A kind's fields as a struct, in the kind's header, as those of layers are (network/layer_spec.h).
// Its name is kNetwork, and it visits its fields once.
template <typename Fields>
concept NetworkFields = requires {
  { Fields::kNetwork } -> std::convertible_to<std::string_view>;
};

// Kinds that list layers of their own.
template <typename Fields>
concept ListsLayers = requires(Fields fields) {
  { fields.layers } -> std::same_as<std::vector<LayerSpec>&>;
};

// Those of them that list an encoder's layers too.
template <typename Fields>
concept ListsEncoder = requires(Fields fields) {
  { fields.encoder } -> std::same_as<std::vector<LayerSpec>&>;
};

struct NetworkSpec {
  NetworkSpec() = default;
  // NetworkSpec{GptSpec{.layers = 6, ...}}; `layers` are the struct's, if it lists some.
  template <NetworkFields Fields>
  NetworkSpec(
      Fields
          fields)  // NOLINT(google-explicit-constructor): a network is given where a spec is asked for
      : kind(Fields::kNetwork) {
    if constexpr (ListsLayers<Fields>) layers = std::move(fields.layers);
    if constexpr (ListsEncoder<Fields>) encoder = std::move(fields.encoder);
    attributes = ToAttributes(std::move(fields));
  }

  std::string kind;                // "gpt", as in YAML
  Attributes attributes;           // its fields, in the order of its struct
  std::vector<LayerSpec> layers;   // for kinds that list some
  std::vector<LayerSpec> encoder;  // for kinds that list an encoder's
  KindSpec objective;              // what it is trained for
  friend bool operator==(const NetworkSpec&, const NetworkSpec&) = default;
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_NETWORK_SPEC_H_
