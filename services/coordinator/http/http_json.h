// The JSON form of messages on the HTTP side: protobuf's mapping with the .proto files' field names
// and every field printed, on one line.
// Errors:    {"error": {"code": "NOT_FOUND", "message": "..."}}.
// Threads: any.  See: docs/http_api.md.
#ifndef STAGECOACH_SERVICES_COORDINATOR_HTTP_HTTP_JSON_H_
#define STAGECOACH_SERVICES_COORDINATOR_HTTP_HTTP_JSON_H_

#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/job/view/job_view.h"
#include "services/common/http/http_server.h"

namespace stagecoach {

std::string ToJson(const google::protobuf::Message& message);

// {"records": [...], "next": N, "complete": ...}. next: the last number, or `after`.
std::string RecordsJson(const std::vector<JobRecord>& records, uint64_t after, bool complete);

HttpResponse JsonResponse(std::string json);

// An error with no more details than in the gRPC API (ToApiGrpc). It has the HTTP status of
// google.rpc.Code, or `http_status` if that is not 0.
HttpResponse ErrorResponse(const absl::Status& status, int http_status = 0);
// The same for errors of the HTTP side itself, which are shown in full.
HttpResponse OwnErrorResponse(const absl::Status& status, int http_status = 0);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_HTTP_HTTP_JSON_H_
