// The one place where absl::Status becomes grpc::Status and back. Codes are the same numbers. An
// INVALID_ARGUMENT that begins with a field path ("training.steps=0: ...", "data: not set, ...")
// also carries google.rpc.BadRequest, so that clients need not parse the sentence. A message
// becomes text that a protobuf string and a terminal can hold (ShownText in base/utf8.h): it may
// have the name of a file. It is cut at kMostErrorBytes: if an answer's headers have more than 64
// KiB, gRPC drops code and words. A message stands there up to three times, and may take three
// times its bytes.
#ifndef STAGECOACH_SERVICES_COMMON_GRPC_GRPC_STATUS_H_
#define STAGECOACH_SERVICES_COMMON_GRPC_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include <cstddef>
#include <string>

#include "absl/status/status.h"

namespace stagecoach {

inline constexpr size_t kMostErrorBytes = 10 << 10;

grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

// For answers that leave the cluster: names fields and limits, but neither paths nor addresses nor
// memory. Details for operators are logged under an id that the answer names.
grpc::Status ToApiGrpc(const absl::Status& status);
// The id of such a log line: "e-0123abcd".
std::string NumberForTheLog();

// "training.steps" of "training.steps=0: want >= 1"; empty if the message begins otherwise.
std::string LeadingFieldPath(const std::string& message);

// The field path in a status' BadRequest detail; empty if there is none.
std::string FieldViolation(const grpc::Status& status);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_GRPC_GRPC_STATUS_H_
