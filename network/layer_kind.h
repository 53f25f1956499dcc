// LayerKind: a kind of layer that a job can list. One object a kind, without state; its file in
// network/layers writes the layer's operations, everything else follows from them.
// Ownership: the list of kinds (network/layer_kinds.h) owns all kinds for the life of the process.
// Threads:   any.
// Errors:    Build answers INVALID_ARGUMENT with the field's path in the job, its value and the
//            remedy. The other functions may only be called for layers that were built.
#ifndef STAGECOACH_NETWORK_LAYER_KIND_H_
#define STAGECOACH_NETWORK_LAYER_KIND_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "network/layer_builder.h"
#include "network/layer_spec.h"

namespace stagecoach {

// The shortest text that reads back as the same number: "1e-05".
std::string ExactText(double value);

class LayerKind {
 public:
  virtual ~LayerKind() = default;
  virtual std::string_view name() const = 0;
  // Every field with its default value; also the list of the fields.
  virtual Attributes Defaults() const = 0;
  virtual bool HasLayers() const { return false; }  // inner ones
  // Whether it stands in front of the others and reads token ids.
  virtual bool ReadsIds() const { return false; }
  // Whether it adds branches to a trunk. Initial values of the branches' last projections depend on
  // the number of such layers (BranchStddev).
  virtual bool AddsToTrunk() const { return false; }
  // Writes the layer: its operations, and its parameters with their names and initial values.
  virtual absl::StatusOr<ValueId> Build(const LayerSpec& layer, ValueId x, const LayerPlace& place,
                                        LayerBuilder& builder) const = 0;
  // The layer's function in one word, for the text of network/names/network_text.h. It has what neither
  // widths nor parameters tell, as "attention:8". Empty: the identity, as dropout is. Manifests
  // hold a digest of this text. So it stays as it is, and a new field adds to it only if used.
  virtual std::string Function(const LayerSpec& layer) const = 0;
};

// A kind with a struct of fields, whose ranges its visit states, and no inner layers.
template <LayerFields Fields>
class LayerKindOf : public LayerKind {
 public:
  std::string_view name() const final { return Fields::kKind; }
  Attributes Defaults() const final { return ToAttributes(Fields()); }
  absl::StatusOr<ValueId> Build(const LayerSpec& layer, ValueId x, const LayerPlace& place,
                                LayerBuilder& builder) const final {
    ASSIGN_OR_RETURN(const Fields fields,
                     FromAttributes<Fields>(layer.attributes, FieldPath(place, name(), "")));
    return Write(fields, x, place, builder);
  }
  std::string Function(const LayerSpec& layer) const final {
    const absl::StatusOr<Fields> fields = FromAttributes<Fields>(layer.attributes);
    CHECK_OK(fields.status());
    return FunctionOf(*fields);
  }

 private:
  // The fields are in their ranges.
  virtual absl::StatusOr<ValueId> Write(const Fields& fields, ValueId x, const LayerPlace& place,
                                        LayerBuilder& builder) const = 0;
  virtual std::string FunctionOf(const Fields&) const { return std::string(Fields::kKind); }
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYER_KIND_H_
