#include "services/coordinator/api/fleet_service.h"

#include <grpcpp/security/auth_context.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "services/common/convert/clean_texts.h"
#include "services/common/convert/convert_control.h"
#include "services/common/grpc/access/peer_identity.h"
#include "services/common/grpc/grpc_status.h"
#include "services/common/grpc/message_checksum.h"
#include "services/common/process/dial_address.h"
#include "services/coordinator/convert/convert_job.h"

namespace stagecoach {
namespace {

void SetGrant(const LeaseGrant& grant, v1::RegisterStageResponse* response) {
  response->set_term(grant.term);
  response->set_lease_seconds(grant.lease_seconds);
}

void SetGrant(const LeaseGrant& grant, v1::RenewLeaseResponse* response) {
  response->set_term(grant.term);
  response->set_lease_seconds(grant.lease_seconds);
  response->set_job_progress(grant.job_progress);
}

absl::Status OfOwnName(const absl::Status& status, const char* field, const std::string& name) {
  if (status.ok()) return status;
  return absl::PermissionDeniedError(
      absl::StrCat(field, "=", name, ": ", std::string(status.message()),
                   ": give it such a --name, or a certificate of its own "
                   "(stagecoach certs FOLDER stage:",
                   name, ")"));
}

absl::Status CheckShowable(const char* field, const std::string& value) {
  if (ShownName(value) == value) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, "=", ShownName(value.substr(0, 253)),
                   ": holds characters that a terminal obeys; give the stage another one"));
}

// The name of the caller's certificate, if that is one of a stage that may have this name at this
// address; empty where there is none, or one without a role, which has been let in as it is.
absl::StatusOr<std::string> CertificateFor(const grpc::CallbackServerContext& context,
                                           const v1::Stage& stage) {
  const absl::StatusOr<PeerIdentity> holder = PeerOf(*context.auth_context());
  if (!holder.ok()) return "";
  RETURN_IF_ERROR(OfOwnName(CheckRegisters(*holder, stage.name(), stage.address()), "stage.name",
                            stage.name()));
  return holder->name;
}

// Of a message that came whole: its texts go into lists, labels and logs.
template <typename Request>
absl::StatusOr<Request> Received(Request request) {
  RETURN_IF_ERROR(CheckChecksum(&request));
  CleanTexts(&request);
  return request;
}

template <typename Response>
auto ReplyGrant(grpc::ServerUnaryReactor* reactor, Response* response) {
  return [reactor, response](const absl::StatusOr<LeaseGrant>& grant) {
    if (grant.ok()) SetGrant(*grant, response);
    if (grant.ok()) SetChecksum(response);
    reactor->Finish(ToGrpc(grant.status()));
  };
}

}  // namespace

grpc::ServerUnaryReactor* FleetServiceAdapter::RegisterStage(
    grpc::CallbackServerContext* context, const v1::RegisterStageRequest* request,
    v1::RegisterStageResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const absl::StatusOr<v1::RegisterStageRequest> received = Received(*request);
  absl::Status status = received.status();
  // Under its name it is asked for again: one that cannot be shown as it is has to change.
  if (status.ok()) status = CheckShowable("stage.name", request->stage().name());
  if (status.ok()) status = CheckShowable("stage.address", request->stage().address());
  if (status.ok()) status = CheckPeerAddress("stage.address", request->stage().address());
  absl::StatusOr<std::string> certificate = status.ok() ? CertificateFor(*context, request->stage())
                                                        : absl::StatusOr<std::string>(status);
  if (!certificate.ok()) {
    reactor->Finish(ToGrpc(certificate.status()));
    return reactor;
  }
  // A stage that tells nonsense about its last end can work all the same.
  std::optional<StageDeath> death;
  if (received->has_last_death()) {
    const absl::StatusOr<StageDeath> told = FromProto(received->last_death());
    if (told.ok()) death = *told;
  }
  StageRegistration registration = FromProto(received->stage());
  registration.certificate = *std::move(certificate);
  manager_->RegisterStage(registration, ReplyGrant(reactor, response), death);
  return reactor;
}

grpc::ServerUnaryReactor* FleetServiceAdapter::RenewLease(grpc::CallbackServerContext* context,
                                                          const v1::RenewLeaseRequest* request,
                                                          v1::RenewLeaseResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const absl::StatusOr<v1::RenewLeaseRequest> received = Received(*request);
  absl::Status status = received.status();
  if (status.ok()) {
    status = OfOwnName(CheckMayBeStage(*context->auth_context(), request->name()), "name",
                       request->name());
  }
  if (!status.ok()) {
    reactor->Finish(ToGrpc(status));
    return reactor;
  }
  manager_->RenewLease(FromProto(*received), ReplyGrant(reactor, response));
  return reactor;
}

grpc::ServerUnaryReactor* FleetServiceAdapter::ListStages(grpc::CallbackServerContext* context,
                                                          const v1::ListStagesRequest*,
                                                          v1::ListStagesResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  manager_->ListStages([reactor, response](const std::vector<StageView>& stages) {
    for (const StageView& stage : stages) *response->add_stages() = ToProto(stage);
    reactor->Finish(grpc::Status::OK);
  });
  return reactor;
}

}  // namespace stagecoach
