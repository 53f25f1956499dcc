#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/slice.h>

#include <chrono>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "services/cli/client/job_client.h"
#include "services/common/grpc/grpc_channel.h"
#include "services/common/grpc/grpc_status.h"
#include "services/common/process/dial_address.h"
#include "services/common/tls/tls_check.h"

namespace stagecoach {
namespace {

// grpc.health.v1.HealthCheckResponse { ServingStatus status = 1; } with SERVING = 1. The
// distribution ships no generated class for it.
const char kServing[] = "\x08\x01";

// An empty HealthCheckRequest asks for the whole server.
grpc::Status CallHealth(grpc::GenericStub* stub, grpc::ClientContext* context, std::string* reply) {
  grpc::CompletionQueue queue;
  grpc::ByteBuffer request, response;
  {
    const grpc::Slice empty;
    request = grpc::ByteBuffer(&empty, 1);
  }
  grpc::Status status;
  const auto call =
      stub->PrepareUnaryCall(context, "/grpc.health.v1.Health/Check", request, &queue);
  call->StartCall();
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);  // ends by the context's deadline
  std::vector<grpc::Slice> slices;
  if (status.ok() && response.Dump(&slices).ok()) {
    for (const grpc::Slice& slice : slices) {
      reply->append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
  }
  return status;
}

}  // namespace

absl::Status CheckHealth(const ClientOptions& options) {
  RETURN_IF_ERROR(options.problem);
  RETURN_IF_ERROR(CheckDialAddress("address", options.address));
  auto made = MakeChannelCredentials(options.tls);
  if (!options.cluster.empty()) made = Annotate(std::move(made), options.cluster);
  ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ChannelCredentials> credentials, std::move(made));
  grpc::GenericStub stub(grpc::CreateChannel(options.address, credentials));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::duration_cast<std::chrono::system_clock::duration>(
                           std::chrono::duration<double>(options.timeout_seconds)));
  std::string reply;
  const grpc::Status status = CallHealth(&stub, &context, &reply);
  if (!status.ok()) {
    return Annotate(WithTlsReason(FromGrpc(status), options.address, options.tls), options.address);
  }
  if (reply != kServing) {
    return absl::UnavailableError(absl::StrCat(options.address, ": not serving"));
  }
  return absl::OkStatus();
}

}  // namespace stagecoach
