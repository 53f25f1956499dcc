#include "services/common/grpc/grpc_status.h"

#include <google/protobuf/any.pb.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include <cctype>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/errors/caller_error.h"
#include "base/numbers/machine_random.h"
#include "base/utf8.h"
#include "spdlog/spdlog.h"

namespace stagecoach {
namespace {

using google::protobuf::internal::WireFormatLite;

constexpr char kBadRequestUrl[] = "type.googleapis.com/google.rpc.BadRequest";

// google.rpc.Status and google.rpc.BadRequest are three small messages that the distribution ships
// no generated classes for; their fields are numbered here.
//   Status        { int32 code = 1; string message = 2; repeated Any details = 3; }
//   BadRequest    { repeated FieldViolation field_violations = 1; }
//   FieldViolation{ string field = 1; string description = 2; }
void AppendBytes(int field, const std::string& value, std::string* target) {
  google::protobuf::io::StringOutputStream stream(target);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.WriteTag(WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED));
  coded.WriteVarint32(static_cast<uint32_t>(value.size()));
  coded.WriteString(value);
}

void AppendVarint(int field, uint32_t value, std::string* target) {
  google::protobuf::io::StringOutputStream stream(target);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.WriteTag(WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_VARINT));
  coded.WriteVarint32(value);
}

// The first length-delimited value with that number; empty if there is none.
std::string FindBytes(int field, const std::string& message) {
  google::protobuf::io::CodedInputStream coded(reinterpret_cast<const uint8_t*>(message.data()),
                                               static_cast<int>(message.size()));
  while (const uint32_t tag = coded.ReadTag()) {
    std::string value;
    uint32_t size = 0;
    if (WireFormatLite::GetTagFieldNumber(tag) == field &&
        WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      if (coded.ReadVarint32(&size) && coded.ReadString(&value, static_cast<int>(size)))
        return value;
      return "";
    }
    if (!WireFormatLite::SkipField(&coded, tag)) return "";
  }
  return "";
}

std::string BadRequestDetails(grpc::StatusCode code, const std::string& message,
                              const std::string& field) {
  std::string violation;
  AppendBytes(1, field, &violation);
  AppendBytes(2, message, &violation);
  google::protobuf::Any any;
  any.set_type_url(kBadRequestUrl);
  AppendBytes(1, violation, any.mutable_value());
  std::string details;
  AppendVarint(1, static_cast<uint32_t>(code), &details);
  AppendBytes(2, message, &details);
  AppendBytes(3, any.SerializeAsString(), &details);
  return details;
}

// At a character's end.
std::string Cut(std::string text) {
  if (text.size() <= kMostErrorBytes) return text;
  size_t end = kMostErrorBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  const size_t more = text.size() - end;
  text.resize(end);
  return absl::StrCat(text, "... (", more, " bytes more)");
}

bool MayLeaveTheCluster(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kUnavailable:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string LeadingFieldPath(const std::string& message) {
  size_t end = 0;
  while (end < message.size()) {
    const char c = message[end];
    const bool in_path = std::islower(static_cast<unsigned char>(c)) ||
                         std::isdigit(static_cast<unsigned char>(c)) || c == '_' || c == '.' ||
                         c == '[' || c == ']';
    if (!in_path) break;
    ++end;
  }
  if (end == 0 || end == message.size()) return "";
  const char next = message[end];
  return next == '=' || next == ':' ? message.substr(0, end) : "";
}

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const auto code = static_cast<grpc::StatusCode>(status.code());
  const std::string message = Cut(ShownText(std::string(status.message())));
  if (status.code() == absl::StatusCode::kInvalidArgument) {
    const std::string field = LeadingFieldPath(message);
    if (!field.empty()) return grpc::Status(code, message, BadRequestDetails(code, message, field));
  }
  return grpc::Status(code, message);
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      ShownText(status.error_message()));
}

std::string NumberForTheLog() {
  return absl::StrFormat("e-%08x", static_cast<uint32_t>(MachineRandom()));
}

grpc::Status ToApiGrpc(const absl::Status& status) {
  if (status.ok() || MayLeaveTheCluster(status.code()) || IsForCaller(status)) {
    return ToGrpc(status);
  }
  const std::string id = NumberForTheLog();
  spdlog::error("{}: {}", id, status.ToString());
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      absl::StrCat("the coordinator's log has the details under ", id));
}

std::string FieldViolation(const grpc::Status& status) {
  const std::string any_bytes = FindBytes(3, status.error_details());
  google::protobuf::Any any;
  if (any_bytes.empty() || !any.ParseFromString(any_bytes) || any.type_url() != kBadRequestUrl) {
    return "";
  }
  return FindBytes(1, FindBytes(1, any.value()));
}

}  // namespace stagecoach
