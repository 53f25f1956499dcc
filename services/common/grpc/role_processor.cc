#include "services/common/grpc/role_processor.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>
#include <spdlog/spdlog.h>

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/grpc/grpc_status.h"
#include "services/common/grpc/method_roles.h"
#include "services/common/grpc/peer_identity.h"

namespace stagecoach {
namespace {

Caller CallerOf(const grpc::AuthContext& context) {
  Caller caller{PeerOf(context), ""};
  for (const grpc::string_ref& name : context.FindPropertyValues(GRPC_X509_CN_PROPERTY_NAME)) {
    caller.common_name.assign(name.data(), name.size());
  }
  return caller;
}

}  // namespace

std::optional<uint64_t> RoleProcessor::TakeTurnToLog() {
  const int64_t now = options_.clock->MonotonicNanos();
  std::lock_guard<std::mutex> lock(mutex_);
  const bool early = last_line_nanos_.has_value() &&
                     static_cast<double>(now - *last_line_nanos_) < kSecondsBetweenRefusals * 1e9;
  if (early) {
    ++silent_;
    return std::nullopt;
  }
  last_line_nanos_ = now;
  return std::exchange(silent_, 0);
}

grpc::Status RoleProcessor::Process(const InputMetadata& auth_metadata, grpc::AuthContext* context,
                                    OutputMetadata*, OutputMetadata*) {
  const auto found = auth_metadata.find(":path");
  const std::string_view path = found == auth_metadata.end()
                                    ? ""
                                    : std::string_view(found->second.data(), found->second.size());
  const Caller caller = CallerOf(*context);
  const absl::Status checked = CheckCall(path, caller, options_.any_certificate);
  if (checked.ok() || absl::IsUnimplemented(checked)) return ToGrpc(checked);
  const MethodRoles& method = *FindMethodRoles(path);
  if (options_.metrics != nullptr) {
    options_.metrics->Refused(method.service_name(), method.method_name(), RoleLabel(caller));
  }
  if (const std::optional<uint64_t> silent = TakeTurnToLog(); silent.has_value()) {
    spdlog::warn("refused a call{}: {}",
                 *silent > 0 ? absl::StrCat(", and ", *silent, " since the last such line") : "",
                 std::string(checked.message()));
  }
  return ToGrpc(checked);
}

}  // namespace stagecoach
