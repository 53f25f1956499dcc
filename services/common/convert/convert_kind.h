// Conversion of one of several kinds between a message with `oneof kind` and its value
// (operations/kind_spec.h). The member's name is the kind's, and its message has the kind's fields
// (convert_fields.h).
// Threads: any.
// Errors:  INVALID_ARGUMENT with the path of the field and the kinds there are.
#ifndef STAGECOACH_SERVICES_COMMON_CONVERT_CONVERT_KIND_H_
#define STAGECOACH_SERVICES_COMMON_CONVERT_CONVERT_KIND_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/status.h"
#include "google/protobuf/message.h"
#include "plan/job/kind_list.h"
#include "services/common/convert/convert_fields.h"

namespace stagecoach {

// Sets the member of the kind's name, with all its fields; nothing for no kind. CHECKs that there
// is one.
void KindToProto(const KindSpec& spec, google::protobuf::Message* message);

// What is set; null if nothing is. What a newer client has set and this version does not know is an
// error.
absl::StatusOr<const google::protobuf::Message*> SetMember(const google::protobuf::Message& message,
                                                           const std::string& path);
// "data: not set, want idx or text"
absl::Status NoKindSet(const google::protobuf::Message& message, const std::string& path);
// The name of the member that `message` is in `of`.
std::string MemberName(const google::protobuf::Message& of);

// Spec: DataSpec and so on. Nothing set: `unset`.
template <typename Spec, typename Kind>
absl::StatusOr<Spec> KindFromProto(const google::protobuf::Message& message,
                                   const KindList<Kind>& kinds, absl::StatusOr<Spec> unset) {
  ASSIGN_OR_RETURN(const google::protobuf::Message* member, SetMember(message, kinds.field()));
  if (member == nullptr) return unset;
  KindSpec spec;
  spec.kind = MemberName(message);
  ASSIGN_OR_RETURN(const Kind* kind, kinds.Find(spec.kind));
  spec.attributes = FieldsOf(*member, kind->Defaults());
  return Spec(std::move(spec));
}

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_CONVERT_CONVERT_KIND_H_
