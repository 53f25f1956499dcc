#include "services/common/grpc/own_error.h"

#include "absl/strings/str_cat.h"
#include "services/common/grpc/grpc_status.h"

namespace stagecoach {
namespace {

constexpr char kKey[] = "stagecoach-own-error";

// Those that already say that it was time, or whoever called, need no other code.
bool GrpcMakesIt(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnauthenticated:
      return true;
    default:
      return false;
  }
}

}  // namespace

void MarkOwnError(grpc::ServerContextBase* context) { context->AddTrailingMetadata(kKey, "1"); }

bool IsOwnError(const grpc::ClientContext& context) {
  return context.GetServerTrailingMetadata().contains(kKey);
}

absl::Status FromMarkingServer(const grpc::Status& status, const grpc::ClientContext& context) {
  const absl::Status plain = FromGrpc(status);
  if (!GrpcMakesIt(plain.code()) || IsOwnError(context)) {
    return plain;
  }
  return absl::UnavailableError(
      absl::StrCat("not answered by the server itself: ", absl::StatusCodeToString(plain.code()),
                   ": ", plain.message()));
}

}  // namespace stagecoach
