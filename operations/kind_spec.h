// KindSpec: one of several kinds by its name, with the fields that a user gives: an objective, a
// data source, an optimizer, a form of the learning rate. Each kind is defined in a file of its
// own; no other code knows it.
// Ownership: a plain value.
// Errors:    none here: who has the list of the kinds (base/named_list.h) checks name and fields.
#ifndef STAGECOACH_OPERATIONS_KIND_SPEC_H_
#define STAGECOACH_OPERATIONS_KIND_SPEC_H_

#include <concepts>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "base/errors/check.h"
#include "operations/attributes.h"

namespace stagecoach {

// A kind's fields as a struct, in the kind's header. Its name is kKind, and it visits its fields
// once (operations/attributes.h). Names, types and defaults are those of its message.
template <typename Fields>
concept KindFields = requires {
  { Fields::kKind } -> std::convertible_to<std::string_view>;
};

struct KindSpec {
  KindSpec() = default;
  template <KindFields Fields>
  KindSpec(
      Fields fields)  // NOLINT(google-explicit-constructor): `spec.data = TextData{...}` reads well
      : kind(Fields::kKind), attributes(ToAttributes(std::move(fields))) {}

  // The struct again. CHECKs that it is of this kind and in its ranges: the job was validated.
  template <KindFields Fields>
  Fields As() const {
    CHECK_EQ(kind, std::string(Fields::kKind)) << "kind";
    absl::StatusOr<Fields> fields = FromAttributes<Fields>(attributes, kind + ".");
    CHECK_OK(fields.status());
    return *std::move(fields);
  }

  std::string kind;       // "adamw", as in YAML; empty: none was given
  Attributes attributes;  // its fields, in the order of its struct
  friend bool operator==(const KindSpec&, const KindSpec&) = default;
};

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_KIND_SPEC_H_
