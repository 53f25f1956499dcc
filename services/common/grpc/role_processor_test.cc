// Roles as a caller meets them: real servers, real certificates, over loopback. The services of a
// stage, which are polled for by a queue, are in services/stage/stage_roles_test.cc; the
// coordinator's, with what a job and a registration are, in
// services/coordinator/api/fleet_service_test.cc.
#include "services/common/grpc/role_processor.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/manual_clock.h"
#include "base/threads/thread.h"
#include "services/common/grpc/access/method_roles.h"
#include "services/common/grpc/grpc_channel.h"
#include "services/common/grpc/grpc_server.h"
#include "services/common/observe/log.h"
#include "services/common/tls/certificates_testing.h"
#include "stagecoach/v1/job.grpc.pb.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kSubmitPath[] = "/stagecoach.v1.JobService/SubmitJob";
constexpr char kHealthPath[] = "/grpc.health.v1.Health/Check";

// A server of one callback service. What passes its door and is served by nobody is UNIMPLEMENTED.
class RoleProcessorTest : public ::testing::Test {
 protected:
  void TearDown() override {
    if (server_ == nullptr) return;
    server_->Shutdown(0);
    if (queue_ != nullptr) queue_->Shutdown();
    poller_.Join();
  }

  void Start(bool any_certificate, bool on_queue = false) {
    GrpcServerOptions options;
    options.listen = "127.0.0.1:0";
    options.tls = authority_.IssueRole("coordinator", "coordinator");
    options.tls.any_certificate_i_know = any_certificate;
    options.pace = pace_;
    if (on_queue) {
      options.take_queue = [this](std::unique_ptr<grpc::ServerCompletionQueue> queue) {
        queue_ = std::move(queue);
        poller_ = Thread("poller", [this] {
          void* tag = nullptr;
          bool ok = false;
          while (queue_->Next(&tag, &ok)) {
          }
        });
      };
    }
    std::vector<GrpcServer::NamedService> services;
    if (!on_queue) services.push_back({"stagecoach.v1.JobService", &jobs_});
    server_ = std::make_unique<GrpcServer>(options, services, &metrics_);
    ASSERT_TRUE(server_->Start().ok());
  }

  // Calls with an empty request, by one connection a certificate.
  grpc::Status Call(const std::string& path, const TlsFlags& by) {
    std::shared_ptr<grpc::Channel>& channel = channels_[by.server_cert];
    if (channel == nullptr) {
      channel = MakeControlChannel(absl::StrCat("127.0.0.1:", server_->port()),
                                   MakeChannelCredentials(by).value());
    }
    grpc::GenericStub stub(channel);
    grpc::ClientContext context;
    context.set_wait_for_ready(true);  // on a busy machine the first attempt may be too slow
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    grpc::CompletionQueue queue;
    const grpc::Slice nothing;
    const grpc::ByteBuffer request(&nothing, 1);
    grpc::ByteBuffer response;
    grpc::Status status;
    const auto call = stub.PrepareUnaryCall(&context, path, request, &queue);
    call->StartCall();
    call->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);  // ends by the context's deadline
    return status;
  }

  std::string Metrics() const {
    MetricWriter writer;
    metrics_.Write(writer);
    return writer.Text();
  }

  std::optional<CallPace::Limits> pace_;
  TestAuthority authority_;
  v1::JobService::CallbackService jobs_;  // answers UNIMPLEMENTED
  RpcMetrics metrics_{{"stagecoach.v1.JobService"}};
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  Thread poller_;
  std::unique_ptr<GrpcServer> server_;
  std::map<std::string, std::shared_ptr<grpc::Channel>> channels_;
};

bool Passed(const grpc::Status& status) {
  return status.ok() || status.error_code() == grpc::StatusCode::UNIMPLEMENTED;
}

TEST_F(RoleProcessorTest, EveryRowOfTheTableHoldsForEveryRole) {
  Start(/*any_certificate=*/false);
  for (const PeerRole role : kPeerRoles) {
    const TlsFlags certificate = authority_.IssueRole(PeerRoleName(role), "somebody");
    for (const MethodRoles& row : AllMethodRoles()) {
      if (row.method == "Watch") continue;  // whom it is for, which is everybody, it never ends
      const std::string path = row.path();
      const grpc::Status status = Call(path, certificate);
      const bool may = row.any_certificate || (row.roles & SetOf(role)) != 0;
      EXPECT_EQ(Passed(status), may)
          << path << " by a " << PeerRoleName(role) << ": " << status.error_message();
      if (may) continue;
      EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << path;
      EXPECT_THAT(status.error_message(),
                  AllOf(HasSubstr(absl::StrCat(row.method_name(), " of ", row.service_name())),
                        HasSubstr(absl::StrCat(PeerRoleName(role), " somebody")),
                        HasSubstr("stagecoach certs")));
    }
  }
}

// On the queue health is a synchronous service, and there is no callback service at all.
TEST_F(RoleProcessorTest, ServersOnAQueueAskAsWell) {
  Start(/*any_certificate=*/false, /*on_queue=*/true);
  const TlsFlags stage = authority_.IssueRole("stage", "stage-0");
  const TlsFlags user = authority_.IssueRole("user", "ann");
  EXPECT_TRUE(Call(kHealthPath, stage).ok());
  EXPECT_EQ(Call(kSubmitPath, stage).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Call(kSubmitPath, user).error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(RoleProcessorTest, ACertificateWithoutARoleIsGoodForHealthOnly) {
  Start(/*any_certificate=*/false);
  const TlsFlags old = authority_.Issue("stage-0", {});
  EXPECT_TRUE(Call(kHealthPath, old).ok());
  for (const MethodRoles& row : AllMethodRoles()) {
    if (row.any_certificate) continue;
    const std::string path = row.path();
    const grpc::Status status = Call(path, old);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << path;
    EXPECT_THAT(status.error_message(), AllOf(HasSubstr("(CN stage-0) names no role"),
                                              HasSubstr("--any-certificate-i-know")));
  }
}

TEST_F(RoleProcessorTest, TwoUrisAndOddOnesAreRefusedEvenWithTheFlag) {
  Start(/*any_certificate=*/true);
  for (const std::vector<std::string>& uris :
       {std::vector<std::string>{"spiffe://stagecoach/user/ann",
                                 "spiffe://stagecoach/operator/ann"},
        std::vector<std::string>{"spiffe://stagecoach/root/ann"},
        std::vector<std::string>{"spiffe://stagecoach/operator"}}) {
    const TlsFlags certificate = authority_.Issue("ann", uris);
    const grpc::Status status = Call(kSubmitPath, certificate);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << uris.front();
    EXPECT_THAT(status.error_message(),
                AllOf(HasSubstr("cannot be read"), HasSubstr(uris.front())));
    EXPECT_TRUE(Call(kHealthPath, certificate).ok());
  }
}

TEST_F(RoleProcessorTest, WithTheFlagACertificateWithoutARoleDoesAsBefore) {
  Start(/*any_certificate=*/true);
  const TlsFlags old = authority_.Issue("client", {"https://example.org/client"});
  EXPECT_TRUE(Passed(Call(kSubmitPath, old)));
  EXPECT_TRUE(Passed(Call("/stagecoach.v1.StageService/LoadCell", old)));
  const TlsFlags stage = authority_.IssueRole("stage", "stage-0");
  EXPECT_EQ(Call(kSubmitPath, stage).error_code(), grpc::StatusCode::PERMISSION_DENIED)
      << "a role is held to even then";
}

TEST_F(RoleProcessorTest, RefusalsAreCountedByMethodAndRole) {
  Start(/*any_certificate=*/false);
  const TlsFlags stage = authority_.IssueRole("stage", "stage-0");
  Call(kSubmitPath, stage);
  Call(kSubmitPath, stage);
  Call(kSubmitPath, authority_.Issue("old", {}));
  Call(kSubmitPath, authority_.IssueRole("user", "ann"));
  Call("/stagecoach.v1.JobService/NoSuchMethod", stage);  // no series for what callers make up
  const std::string text = Metrics();
  const std::string series =
      "stagecoach_rpc_refused_total{grpc_service=\"stagecoach.v1.JobService\",grpc_method="
      "\"SubmitJob\"";
  EXPECT_THAT(text, AllOf(HasSubstr(series + ",role=\"stage\"} 2"),
                          HasSubstr(series + ",role=\"none\"} 1")));
  EXPECT_EQ(text.find("NoSuchMethod"), std::string::npos);
  EXPECT_EQ(text.find("role=\"user\""), std::string::npos);
}

// 106,000 streams that a user reset at once took 2 GB of the coordinator, for good, and a job its
// lease.
TEST_F(RoleProcessorTest, AFloodOfCallsIsRefusedAndOthersAreServed) {
  pace_ = CallPace::Limits{.per_second = 0.001, .stock = 5};
  Start(/*any_certificate=*/false);
  const TlsFlags ann = authority_.IssueRole("user", "ann");
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Passed(Call(kSubmitPath, ann))) << i;
  const grpc::Status status = Call(kSubmitPath, ann);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("user ann begins more than 0.001 calls a second"));
  EXPECT_TRUE(Passed(Call(kSubmitPath, authority_.IssueRole("user", "bob"))));
  const TlsFlags coordinator = authority_.IssueRole("coordinator", "coordinator");
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(Call(kHealthPath, coordinator).ok()) << i;
}

TEST(RoleProcessor, AFloodOfRefusalsIsOneLineInTenSeconds) {
  ManualClock clock(5);
  LogTurn turn(kSecondsBetweenRefusals, &clock);
  EXPECT_EQ(turn.Take(), 0u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(turn.Take(), std::nullopt);
  clock.AdvanceNanos(9'999'999'999);
  EXPECT_EQ(turn.Take(), std::nullopt);
  clock.AdvanceNanos(1);
  EXPECT_EQ(turn.Take(), 1001u);
  EXPECT_EQ(turn.Take(), std::nullopt);
}

}  // namespace
}  // namespace stagecoach
