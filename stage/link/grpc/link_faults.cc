#include "stage/link/grpc/link_faults.h"

#include "absl/strings/str_cat.h"

namespace stagecoach {

absl::Status AsLinksFault(const absl::Status& status) {
  if (!absl::IsInvalidArgument(status)) return status;
  return absl::DataLossError(status.message());
}

// The coordinator would take some codes for the fault of the job or of this stage:
// - UNIMPLEMENTED, INTERNAL, UNKNOWN, RESOURCE_EXHAUSTED: no stage refuses with them. gRPC makes
//   them up where a bit was flipped on the way, the first for a damaged name of the method, the
//   last for a damaged length of the hello.
// - PERMISSION_DENIED, UNAUTHENTICATED: the certificate that this stage had just then; the next
//   stream has the newest.
absl::Status RefusedLinksFault(const grpc::Status& status, const std::string& text) {
  const absl::Status plain(static_cast<absl::StatusCode>(status.error_code()), text);
  switch (plain.code()) {
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kResourceExhausted:
      return absl::UnavailableError(
          absl::StrCat(text, " (", absl::StatusCodeToString(plain.code()), ")"));
    default:
      return AsLinksFault(plain);
  }
}

}  // namespace stagecoach
