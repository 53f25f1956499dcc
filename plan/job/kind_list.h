// KindList: the one list of the kinds of something, by name. A kind is an object without state.
// Ownership: owns nothing; kinds and lists live as long as the process.
// Threads:   any.
// Errors:    Find answers INVALID_ARGUMENT with the field, the name and the nearest known one.
#ifndef STAGECOACH_PLAN_JOB_KIND_LIST_H_
#define STAGECOACH_PLAN_JOB_KIND_LIST_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/named_list.h"
#include "operations/kind_spec.h"

namespace stagecoach {

// Interface of every kind with fields.
class FieldKind {
 public:
  virtual ~FieldKind() = default;
  virtual std::string_view name() const = 0;
  // Every field with its default value; also the list of the fields.
  virtual Attributes Defaults() const = 0;
  // INVALID_ARGUMENT naming the field with `prefix` before it ("data.text."), its value and what is
  // allowed.
  virtual absl::Status CheckFields(const Attributes& attributes,
                                   const std::string& prefix) const = 0;
};

// A kind whose fields are a struct; their ranges are in its visit. `Interface` derives from
// FieldKind.
template <typename Interface, KindFields Fields>
class FieldKindOf : public Interface {
 public:
  std::string_view name() const final { return Fields::kKind; }
  Attributes Defaults() const final { return ToAttributes(Fields()); }
  absl::Status CheckFields(const Attributes& attributes, const std::string& prefix) const final {
    return FromAttributes<Fields>(attributes, prefix).status();
  }
};

template <typename Kind>
class KindList {
 public:
  // field: the job's field for the kind, "data"; what: the noun for a kind, "data source". Names
  // are unique.
  KindList(std::string field, std::string what, std::vector<const Kind*> all)
      : field_(std::move(field)), list_(std::move(what), std::move(all)) {}

  const std::string& field() const { return field_; }
  const std::vector<const Kind*>& all() const { return list_.all(); }  // by name

  absl::StatusOr<const Kind*> Find(std::string_view name) const {
    const absl::StatusOr<const Kind*> kind = list_.Find(name);
    if (kind.ok()) return kind;
    return absl::InvalidArgumentError(absl::StrCat(field_, ": ", kind.status().message()));
  }

  // The kind of a validated job.
  const Kind& Named(std::string_view name) const {
    const absl::StatusOr<const Kind*> kind = Find(name);
    CHECK_OK(kind.status());
    return **kind;
  }

  // Checks name and fields; for kinds that have fields.
  absl::Status Check(const KindSpec& spec) const {
    ASSIGN_OR_RETURN(const Kind* kind, Find(spec.kind));
    return kind->CheckFields(spec.attributes, absl::StrCat(field_, ".", spec.kind, "."));
  }

 private:
  const std::string field_;
  const NamedList<Kind> list_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_JOB_KIND_LIST_H_
