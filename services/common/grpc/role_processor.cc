#include "services/common/grpc/role_processor.h"

#include <grpcpp/security/auth_context.h>
#include <spdlog/spdlog.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "services/common/grpc/access/method_roles.h"
#include "services/common/grpc/grpc_status.h"

namespace stagecoach {

absl::Status RoleProcessor::CheckPace(const Caller& caller) {
  const std::string who =
      caller.identity.ok()
          ? absl::StrCat(PeerRoleName(caller.identity->role), " ", caller.identity->name)
          : absl::StrCat("certificate (CN ", caller.common_name, ")");
  // Without a role it may be any server of a cluster whose certificates are from before there were
  // roles.
  const bool stage = !caller.identity.ok() || caller.identity->role == PeerRole::kStage;
  if (caller.identity.ok() && caller.identity->role == PeerRole::kCoordinator) {
    return absl::OkStatus();
  }
  if ((stage ? stage_pace_ : pace_).Take(who)) return absl::OkStatus();
  const double most = (stage ? options_.stage_pace : options_.pace).per_second;
  return absl::UnavailableError(  // RESOURCE_EXHAUSTED would be a job's own fault
      absl::StrCat(who, " begins more than ", most, " calls a second; call less often"));
}

grpc::Status RoleProcessor::Process(const InputMetadata& auth_metadata, grpc::AuthContext* context,
                                    OutputMetadata*, OutputMetadata*) {
  const auto found = auth_metadata.find(":path");
  const std::string_view path = found == auth_metadata.end()
                                    ? ""
                                    : std::string_view(found->second.data(), found->second.size());
  const Caller caller = callers_->Of(*context, auth_metadata);
  absl::Status checked = CheckCall(path, caller, options_.any_certificate);
  if (checked.ok()) checked = CheckPace(caller);
  if (checked.ok() || absl::IsUnimplemented(checked)) return ToGrpc(checked);
  const MethodRoles& method = *FindMethodRoles(path);
  if (options_.metrics != nullptr) {
    options_.metrics->Refused(method.service_name(), method.method_name(), RoleLabel(caller));
  }
  if (const std::optional<uint64_t> silent = turn_.Take(); silent.has_value()) {
    spdlog::warn("refused a call{}: {}",
                 *silent > 0 ? absl::StrCat(", and ", *silent, " since the last such line") : "",
                 std::string(checked.message()));
  }
  return ToGrpc(checked);
}

}  // namespace stagecoach
