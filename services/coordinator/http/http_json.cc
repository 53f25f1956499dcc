#include "services/coordinator/http/http_json.h"

#include <google/protobuf/util/json_util.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "services/common/grpc/grpc_status.h"
#include "services/coordinator/convert/convert_job.h"

namespace stagecoach {
namespace {

constexpr char kJsonType[] = "application/json";

int HttpStatusOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
      return 400;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kAlreadyExists:
      return 409;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kUnimplemented:
      return 501;
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

}  // namespace

std::string ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(message, &json, options);
  CHECK(status.ok()) << message.GetTypeName() << " has no JSON form: " << status.ToString();
  return json;
}

std::string RecordsJson(const std::vector<JobRecord>& records, uint64_t after, bool complete) {
  std::string json = "{\"records\":[";
  for (size_t i = 0; i < records.size(); ++i) {
    absl::StrAppend(&json, i == 0 ? "" : ",", ToJson(ToProto(records[i])));
  }
  absl::StrAppend(&json, "],\"next\":", records.empty() ? after : records.back().number,
                  ",\"complete\":", complete ? "true" : "false", "}");
  return json;
}

HttpResponse JsonResponse(std::string json) { return {200, kJsonType, std::move(json)}; }

HttpResponse ErrorResponse(const absl::Status& status, int http_status) {
  return OwnErrorResponse(absl::Status(status.code(), ToApiGrpc(status).error_message()),
                          http_status);
}

HttpResponse OwnErrorResponse(const absl::Status& status, int http_status) {
  const nlohmann::json error = {{"error",
                                 {{"code", absl::StatusCodeToString(status.code())},
                                  {"message", std::string(status.message())}}}};
  // The message may quote what the client sent, which need not be UTF-8.
  std::string json = error.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return {http_status != 0 ? http_status : HttpStatusOf(status.code()), kJsonType, std::move(json)};
}

}  // namespace stagecoach
