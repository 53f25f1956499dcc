// A stage server behind mutual TLS: only the coordinator tells it what to do, only stages open
// links. All of it is served by one thread from a queue, health included.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/testing/temporary_folder.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "services/common/grpc/grpc_channel.h"
#include "services/common/grpc/message_checksum.h"
#include "services/common/observe/log.h"
#include "services/common/tls/certificates_testing.h"
#include "services/stage/stage_server.h"
#include "stage/link/grpc/grpc_link_testing.h"
#include "stagecoach/v1/link.grpc.pb.h"
#include "stagecoach/v1/stage.grpc.pb.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class StageRolesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(SetUpLogging("stage", "text", false).ok());
    const TemporaryFolder folder;
    const std::string port_file = folder.File("port");
    StageFlags flags;
    flags.server = {.listen = "127.0.0.1:0",
                    .http = "127.0.0.1:0",
                    .port_file = port_file,
                    .tls = authority_.IssueRole("stage", "stage-0")};
    flags.coordinator = "127.0.0.1:1";  // nobody: it goes on asking
    flags.name = "stage-0";
    flags.device = "reference";
    server_ = std::make_unique<StageServer>(flags);
    ASSERT_TRUE(server_->Start().ok());
    int port = 0;
    std::ifstream(port_file) >> port;
    address_ = absl::StrCat("127.0.0.1:", port);
  }

  std::shared_ptr<grpc::Channel> Dial(const TlsFlags& by) {
    return MakeControlChannel(address_, MakeChannelCredentials(by).value());
  }
  // Not before the connection is there: on a busy machine its first attempt may be too slow.
  static void SetDeadline(grpc::ClientContext* context) {
    context->set_wait_for_ready(true);
    context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  }

  // The answer to a call with an empty request.
  template <typename Request, typename Response>
  grpc::Status Call(const TlsFlags& by,
                    grpc::Status (v1::StageService::Stub::*method)(grpc::ClientContext*,
                                                                   const Request&, Response*)) {
    grpc::ClientContext context;
    SetDeadline(&context);
    Request request;
    SetChecksum(&request);
    Response response;
    return ((*v1::StageService::NewStub(Dial(by))).*method)(&context, request, &response);
  }

  // The same with a name of the stage that it is meant for.
  template <typename Request, typename Response>
  grpc::Status CallFor(const std::string& stage,
                       grpc::Status (v1::StageService::Stub::*method)(grpc::ClientContext*,
                                                                      const Request&, Response*)) {
    grpc::ClientContext context;
    SetDeadline(&context);
    Request request;
    request.set_stage_name(stage);
    SetChecksum(&request);
    Response response;
    const TlsFlags by = authority_.IssueRole("coordinator", "somebody");
    return ((*v1::StageService::NewStub(Dial(by))).*method)(&context, request, &response);
  }

  // The end of a link that says a hello of another protocol.
  grpc::Status OpenLink(const TlsFlags& by) {
    grpc::ClientContext context;
    SetDeadline(&context);
    const auto stub = v1::LinkService::NewStub(Dial(by));
    const auto stream = stub->Exchange(&context);
    v1::ExchangeRequest request;
    request.mutable_hello()->mutable_fence()->set_job("a");
    request.mutable_hello()->set_protocol(999);
    request.mutable_hello()->set_capacity(1);
    stream->Write(request);
    v1::ExchangeResponse response;
    while (stream->Read(&response)) {
    }
    return stream->Finish();
  }

  grpc::Status Health(const TlsFlags& by) {
    grpc::ClientContext context;
    SetDeadline(&context);
    grpc::health::v1::HealthCheckResponse response;
    return grpc::health::v1::Health::NewStub(Dial(by))->Check(&context, {}, &response);
  }

  // Why a link that is dialled with these closed.
  absl::Status LinkEnds(const TlsFlags& by) {
    const std::unique_ptr<Allocator> allocator = MakeHostAllocator(0);
    GrpcLinkConnector::Options options;
    options.credentials = MakeChannelCredentials(by).value();
    GrpcLinkConnector dialler(options);
    Bell bell;
    const std::unique_ptr<Link> link =
        dialler.Dial(address_, {"job-a", 1, 2, CellId(0)}, *allocator, kAnyMessageBytes);
    link->SetReadyCallback(bell.Rope());
    bell.WaitFor([&] { return !link->status().ok(); });
    return link->status();
  }

  TestAuthority authority_;
  std::unique_ptr<StageServer> server_;
  std::string address_;
};

// The story: a name was registered with another stage's address, and the coordinator loaded a job
// over the one that ran there.
TEST_F(StageRolesTest, ACommandThatIsMeantForAnotherStageIsRefused) {
  using Stub = v1::StageService::Stub;
  for (const grpc::Status& refused :
       {CallFor("stage-7", &Stub::LoadCell), CallFor("stage-7", &Stub::ProfileModel)}) {
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_THAT(refused.error_message(),
                AllOf(HasSubstr("this is stage stage-0"), HasSubstr("meant for stage stage-7")));
  }
  const grpc::Status own = CallFor("stage-0", &Stub::LoadCell);
  EXPECT_EQ(own.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << "its own, and of no job";
}

// A client's certificate loaded cells, wrote shards into any folder it named, and ended steps of
// others.
TEST_F(StageRolesTest, AUsersCertificateTellsAStageNothing) {
  using Stub = v1::StageService::Stub;
  for (const char* role : {"user", "stage"}) {
    const TlsFlags by = authority_.IssueRole(role, "somebody");
    const grpc::Status load = Call(by, &Stub::LoadCell);
    EXPECT_EQ(load.error_code(), grpc::StatusCode::PERMISSION_DENIED) << role;
    EXPECT_THAT(load.error_message(),
                AllOf(HasSubstr("LoadCell"), HasSubstr("coordinator or operator"),
                      HasSubstr(absl::StrCat(role, " somebody"))));
    EXPECT_EQ(Call(by, &Stub::WriteShard).error_code(), grpc::StatusCode::PERMISSION_DENIED)
        << role;
    EXPECT_EQ(Call(by, &Stub::Abort).error_code(), grpc::StatusCode::PERMISSION_DENIED) << role;
    EXPECT_EQ(Call(by, &Stub::GetStatus).error_code(), grpc::StatusCode::PERMISSION_DENIED) << role;
    EXPECT_TRUE(Health(by).ok()) << role;
  }
  for (const char* role : {"coordinator", "operator"}) {
    const TlsFlags by = authority_.IssueRole(role, "somebody");
    EXPECT_TRUE(Call(by, &Stub::GetStatus).ok()) << role;
    const grpc::Status load = Call(by, &Stub::LoadCell);
    EXPECT_FALSE(load.ok()) << "of no job";
    EXPECT_NE(load.error_code(), grpc::StatusCode::PERMISSION_DENIED) << load.error_message();
  }
}

TEST_F(StageRolesTest, OnlyStagesOpenLinks) {
  for (const char* role : {"user", "operator", "coordinator"}) {
    const grpc::Status refused = OpenLink(authority_.IssueRole(role, "somebody"));
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED) << role;
    EXPECT_THAT(refused.error_message(), HasSubstr("Exchange of stagecoach.v1.LinkService"))
        << role;
  }
  const grpc::Status heard = OpenLink(authority_.IssueRole("stage", "stage-1"));
  EXPECT_EQ(heard.error_code(), grpc::StatusCode::FAILED_PRECONDITION) << heard.error_message();
  EXPECT_THAT(heard.error_message(), HasSubstr("link protocol 999"));
}

// A stage whose certificate was made for another role by mistake: PERMISSION_DENIED of a step was
// that stage's own fault, and of a load the job's, which ended for good.
TEST_F(StageRolesTest, ANeighbourThatIsRefusedHasABrokenLink) {
  const absl::Status ended = LinkEnds(authority_.IssueRole("user", "stage-1"));
  EXPECT_TRUE(absl::IsUnavailable(ended)) << ended;
  EXPECT_THAT(std::string(ended.message()),
              AllOf(HasSubstr("is for the role stage, and the caller is user stage-1"),
                    HasSubstr("(PERMISSION_DENIED)")));
}

}  // namespace
}  // namespace stagecoach
