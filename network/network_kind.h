// NetworkKind: a network that a job can name. One object a kind, without state; its file in
// network/zoo writes the network's layers, everything else follows from them.
// Ownership: the list of kinds (network/network_kinds.h) owns all kinds for the life of the
//            process.
// Threads:   any.
// Errors:    Expand answers INVALID_ARGUMENT with the field's path in the job, its value and the
//            remedy.
#ifndef STAGECOACH_NETWORK_NETWORK_KIND_H_
#define STAGECOACH_NETWORK_NETWORK_KIND_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "network/network.h"
#include "network/network_spec.h"

namespace stagecoach {

class NetworkKind {
 public:
  virtual ~NetworkKind() = default;
  virtual std::string_view name() const = 0;
  // Every field with its default value; also the list of the fields.
  virtual Attributes Defaults() const = 0;
  virtual bool HasLayers() const = 0;   // layers that a job lists
  virtual bool HasEncoder() const = 0;  // layers of an encoder, in a list of their own
  virtual absl::StatusOr<Network> Expand(const NetworkSpec& spec) const = 0;
};

// A kind with a struct of fields, whose ranges its visit states.
template <NetworkFields Fields>
class NetworkKindOf : public NetworkKind {
 public:
  std::string_view name() const final { return Fields::kNetwork; }
  Attributes Defaults() const final { return ToAttributes(Fields()); }
  bool HasLayers() const final { return ListsLayers<Fields>; }
  bool HasEncoder() const final { return ListsEncoder<Fields>; }
  absl::StatusOr<Network> Expand(const NetworkSpec& spec) const final {
    const std::string path = absl::StrCat("model.", Fields::kNetwork);
    ASSIGN_OR_RETURN(Fields fields, FromAttributes<Fields>(spec.attributes, path + "."));
    if constexpr (ListsLayers<Fields>) {
      fields.layers = spec.layers;
    } else if (!spec.layers.empty()) {
      return FieldError(path, absl::StrCat(spec.layers.size(), " layers"), "lists none");
    }
    if constexpr (ListsEncoder<Fields>) {
      fields.encoder = spec.encoder;
    } else if (!spec.encoder.empty()) {
      return FieldError(path, absl::StrCat(spec.encoder.size(), " layers of an encoder"),
                        "lists none");
    }
    return Write(fields, path);
  }

 private:
  // The fields are in their ranges. `path`: of the network in the job, for errors.
  virtual absl::StatusOr<Network> Write(const Fields& fields, const std::string& path) const = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_NETWORK_KIND_H_
