// Conversion of one of several kinds between a message with `oneof kind` and its value
// (operations/kind_spec.h). The member's name is the kind's, and its message has the kind's fields
// (convert_fields.h).
// Threads: any.
// Errors:  INVALID_ARGUMENT with the path of the field and the known kinds.
#ifndef STAGECOACH_SERVICES_COMMON_CONVERT_SPEC_CONVERT_KIND_H_
#define STAGECOACH_SERVICES_COMMON_CONVERT_SPEC_CONVERT_KIND_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/errors/status.h"
#include "google/protobuf/message.h"
#include "plan/job/kind_list.h"
#include "services/common/convert/fields/convert_fields.h"

namespace stagecoach {

// Sets the member of the kind's name, with all its fields, and returns it. CHECKs that it exists.
google::protobuf::Message* KindToProto(const std::string& kind, const Attributes& fields,
                                       google::protobuf::Message* message);
// The same; sets nothing for no kind.
void KindToProto(const KindSpec& spec, google::protobuf::Message* message);

// The member that is set; null if none is.
const google::protobuf::Message* KindMember(const google::protobuf::Message& message);
std::string KindName(const google::protobuf::Message& message);  // name of that member
// Error "data: not set, want idx or text".
absl::Status NoKindSet(const google::protobuf::Message& message, const std::string& path);
// Refuses a kind that a newer client has set and this version does not know.
absl::Status CheckKindKnown(const google::protobuf::Message& message, const std::string& path);

// Reads the kind that is set and its fields into `spec`. find: returns a kind by its name.
template <typename Spec, typename Find>
auto ReadKind(const google::protobuf::Message& message, const std::string& path, const Find& find,
              Spec* spec) -> decltype(find(path)) {
  const google::protobuf::Message* member = KindMember(message);
  if (member == nullptr) return NoKindSet(message, path);
  spec->kind = KindName(message);
  ASSIGN_OR_RETURN(const auto* kind, find(spec->kind));
  spec->attributes = FieldsOf(*member, kind->Defaults());
  return kind;
}

// Spec: DataSpec and so on. If no kind is set, returns `unset`.
template <typename Spec, typename Kind>
absl::StatusOr<Spec> KindFromProto(const google::protobuf::Message& message,
                                   const KindList<Kind>& kinds, absl::StatusOr<Spec> unset) {
  if (KindMember(message) == nullptr) {
    RETURN_IF_ERROR(CheckKindKnown(message, kinds.field()));
    return unset;
  }
  KindSpec spec;
  const auto find = [&kinds](const std::string& name) { return kinds.Find(name); };
  RETURN_IF_ERROR(ReadKind(message, kinds.field(), find, &spec).status());
  return Spec(std::move(spec));
}

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_CONVERT_SPEC_CONVERT_KIND_H_
