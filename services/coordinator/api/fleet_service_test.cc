// The coordinator's services behind mutual TLS: whose certificate may do what, up to the job and
// the registration that come of it.
#include "services/coordinator/api/fleet_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "services/common/convert/spec/convert_spec.h"
#include "services/common/grpc/grpc_channel.h"
#include "services/common/grpc/grpc_server.h"
#include "services/common/grpc/message_checksum.h"
#include "services/common/tls/certificates_testing.h"
#include "services/coordinator/api/job_service.h"
#include "services/coordinator/api/waiting_job_testing.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class FleetServiceTest : public WaitingJobTest {
 protected:
  FleetServiceTest() : jobs_(ServiceParts()), fleet_(manager_.get()) {}
  ~FleetServiceTest() override {
    manager_->Shutdown();
    if (server_ != nullptr) server_->Shutdown(0);
  }

  void Start(bool with_tls = true, bool any_certificate = false) {
    GrpcServerOptions options;
    options.listen = "127.0.0.1:0";
    if (with_tls) options.tls = authority_.IssueRole("coordinator", "coordinator");
    options.tls.any_certificate_i_know = any_certificate;
    server_ = std::make_unique<GrpcServer>(
        options,
        std::vector<GrpcServer::NamedService>{{"stagecoach.v1.JobService", &jobs_},
                                              {"stagecoach.v1.FleetService", &fleet_}},
        nullptr);
    ASSERT_TRUE(server_->Start().ok());
  }

  std::shared_ptr<grpc::Channel> Dial(const TlsFlags& by) {
    return MakeControlChannel(absl::StrCat("127.0.0.1:", server_->port()),
                              MakeChannelCredentials(by).value());
  }
  // Not before the connection is there: on a busy machine its first attempt may be too slow.
  static void SetDeadline(grpc::ClientContext* context) {
    context->set_wait_for_ready(true);
    context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  }

  grpc::Status Register(const TlsFlags& by, const std::string& name,
                        const std::string& address = "127.0.0.1:1") {
    v1::RegisterStageRequest request;
    request.mutable_stage()->set_name(name);
    request.mutable_stage()->set_incarnation("1");
    request.mutable_stage()->set_address(address);
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::RegisterStageResponse response;
    return v1::FleetService::NewStub(Dial(by))->RegisterStage(&context, WithChecksum(request),
                                                              &response);
  }
  grpc::Status Renew(const TlsFlags& by, const std::string& name,
                     const std::string& waiting_for = "") {
    v1::RenewLeaseRequest request;
    request.set_name(name);
    request.set_incarnation("1");
    request.set_state("idle");
    request.set_waiting_for(waiting_for);
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::RenewLeaseResponse response;
    return v1::FleetService::NewStub(Dial(by))->RenewLease(&context, WithChecksum(request),
                                                           &response);
  }
  // Names of the stages that the coordinator knows.
  std::string Stages(const TlsFlags& by) {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::ListStagesResponse response;
    const grpc::Status status =
        v1::FleetService::NewStub(Dial(by))->ListStages(&context, {}, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    std::string names;
    for (const auto& stage : response.stages()) {
      absl::StrAppend(&names, names.empty() ? "" : " ", stage.stage().name());
    }
    return names;
  }
  grpc::Status Cancel(const TlsFlags& by) {
    v1::CancelJobRequest request;
    request.set_id("job-a");
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::CancelJobResponse response;
    return v1::JobService::NewStub(Dial(by))->CancelJob(&context, request, &response);
  }
  grpc::Status Submit(const TlsFlags& by, const std::string& id) {
    v1::SubmitJobRequest request;
    request.set_id(id);
    *request.mutable_spec() = ToProto(SmallSpec());
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::SubmitJobResponse response;
    return v1::JobService::NewStub(Dial(by))->SubmitJob(&context, request, &response);
  }
  int Jobs(const TlsFlags& by) {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::ListJobsResponse response;
    const grpc::Status status =
        v1::JobService::NewStub(Dial(by))->ListJobs(&context, {}, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.jobs_size();
  }

  TestAuthority authority_;
  JobServiceAdapter jobs_;
  FleetServiceAdapter fleet_;
  std::unique_ptr<GrpcServer> server_;
};

// Any certificate of the cluster did: whoever took over one stage had every job.
TEST_F(FleetServiceTest, AStagesCertificateCanNeitherSubmitNorCancelAJob) {
  Start();
  const TlsFlags stage = authority_.IssueRole("stage", "stage-0");
  const TlsFlags user = authority_.IssueRole("user", "ann");
  const grpc::Status refused = Submit(stage, "job-b");
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(refused.error_message(), AllOf(HasSubstr("SubmitJob"), HasSubstr("stage stage-0")));
  EXPECT_EQ(Cancel(stage).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  const TlsFlags root = authority_.IssueRole("operator", "root");
  EXPECT_EQ(Jobs(root), 1) << "there is no second one";
  const grpc::Status submitted = Submit(user, "job-b");
  EXPECT_TRUE(submitted.ok()) << submitted.error_message();
  EXPECT_EQ(Jobs(root), 2);
  EXPECT_TRUE(Cancel(root).ok());
}

// Whoever had a certificate could take the name of a stage that lives, and with it its layers.
TEST_F(FleetServiceTest, AStageRegistersAndRenewsItsOwnNameOnly) {
  Start();
  const TlsFlags zero = authority_.IssueRole("stage", "stage-0");
  const TlsFlags one = authority_.IssueRole("stage", "stage-1");
  const TlsFlags user = authority_.IssueRole("user", "ann");
  ASSERT_TRUE(Register(zero, "stage-0").ok());
  const grpc::Status taken = Register(one, "stage-0");
  EXPECT_EQ(taken.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(taken.error_message(),
              AllOf(HasSubstr("stage.name=stage-0"), HasSubstr("that of stage stage-1"),
                    HasSubstr("stagecoach certs FOLDER stage:stage-0")));
  EXPECT_EQ(Renew(one, "stage-0").error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(Renew(zero, "stage-0").ok());
  EXPECT_EQ(Register(user, "stage-2").error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(Register(one, "stage-1").ok());
  EXPECT_EQ(Stages(user), "stage-0 stage-1");
}

// The pods of a StatefulSet share one certificate.
TEST_F(FleetServiceTest, ASharedCertificateIsForTheNumbersBehindItsName) {
  Start();
  const TlsFlags pods = authority_.IssueRole("stage", "stage");
  EXPECT_TRUE(Register(pods, "stage-0").ok());
  EXPECT_TRUE(Register(pods, "stage-11").ok());
  EXPECT_TRUE(Renew(pods, "stage-11").ok());
  EXPECT_EQ(Register(pods, "other-0").error_code(), grpc::StatusCode::PERMISSION_DENIED);
  const grpc::Status ghost = Register(pods, "stage-9998");
  EXPECT_EQ(ghost.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(ghost.error_message(),
              AllOf(HasSubstr("stage-0 to -1023 or, at an address with that port, stage-PORT"),
                    HasSubstr("address is 127.0.0.1:1")));
}

// The story: numbers ended at 1,023, so a stage that was started without --name was refused under
// its host's certificate.
TEST_F(FleetServiceTest, TheDefaultNameIsOneOfItsHostsCertificate) {
  Start();
  const TlsFlags box = authority_.IssueRole("stage", "box.example");
  EXPECT_TRUE(Register(box, "box.example-8101", "10.0.0.7:8101").ok());
  EXPECT_TRUE(Register(box, "box.example-8102", "10.0.0.7:8102").ok());
  EXPECT_TRUE(Renew(box, "box.example-8101").ok());
  EXPECT_EQ(Register(box, "box.example-8103", "10.0.0.7:9000").error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Stages(authority_.IssueRole("user", "ann")), "box.example-8101 box.example-8102");
}

// The story: with all ports for numbers the holder of one certificate could register 65,000 names.
TEST_F(FleetServiceTest, ACertificateHas1024StagesAtATime) {
  Start();
  const TlsFlags box = authority_.IssueRole("stage", "box");
  const auto stub = v1::FleetService::NewStub(Dial(box));
  const auto add = [&](int port) {
    v1::RegisterStageRequest request;
    request.mutable_stage()->set_name(absl::StrCat("box-", port));
    request.mutable_stage()->set_incarnation("1");
    request.mutable_stage()->set_address(absl::StrCat("127.0.0.1:", port));
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::RegisterStageResponse response;
    return stub->RegisterStage(&context, WithChecksum(request), &response);
  };
  for (int i = 0; i < 1024; ++i) ASSERT_TRUE(add(2000 + i).ok()) << i;
  EXPECT_EQ(add(9000).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::ListStagesResponse response;
  const auto user = v1::FleetService::NewStub(Dial(authority_.IssueRole("user", "ann")));
  ASSERT_TRUE(user->ListStages(&context, {}, &response).ok());
  EXPECT_EQ(response.stages_size(), 1024);
}

TEST_F(FleetServiceTest, AnAddressThatIsNoHostAndPortIsRefused) {
  Start();
  const grpc::Status refused =
      Register(authority_.IssueRole("stage", "stage-0"), "stage-0", "unix:/run/other.sock");
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(), HasSubstr("stage.address=unix:/run/other.sock"));
}

TEST_F(FleetServiceTest, WithTheFlagACertificateWithoutARoleMayHaveAnyName) {
  Start(/*with_tls=*/true, /*any_certificate=*/true);
  const TlsFlags old = authority_.Issue("stage", {});
  EXPECT_TRUE(Register(old, "stage-0").ok());
  EXPECT_TRUE(Renew(old, "stage-0").ok());
  EXPECT_EQ(Stages(old), "stage-0");
  EXPECT_EQ(Register(authority_.IssueRole("stage", "stage-1"), "stage-2").error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(FleetServiceTest, WithoutTlsThereAreNoRoles) {
  Start(/*with_tls=*/false);
  const TlsFlags plain;
  EXPECT_TRUE(Register(plain, "stage-0").ok());
  EXPECT_TRUE(Renew(plain, "stage-0").ok());
  EXPECT_EQ(Stages(plain), "stage-0");
  EXPECT_TRUE(Cancel(plain).ok());
}

// A stage's name went as it was into tables, logs and labels of metrics.
TEST_F(FleetServiceTest, AStageHasANameThatCanBeShown) {
  Start(/*with_tls=*/false);
  const grpc::Status refused = Register({}, "a\n\x1b[2J");
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(), HasSubstr("stage.name=a\\x0a\\x1b[2J: "));
  EXPECT_EQ(Stages({}), "");
  ASSERT_TRUE(Register({}, "stage-0").ok());
  ASSERT_TRUE(Renew({}, "stage-0", "peer \u202e\x1b[2J").ok());
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::ListStagesResponse response;
  ASSERT_TRUE(v1::FleetService::NewStub(Dial({}))->ListStages(&context, {}, &response).ok());
  ASSERT_EQ(response.stages_size(), 1);
  EXPECT_EQ(response.stages(0).waiting_for(), "peer \\xe2\\x80\\xae\\x1b[2J");
}

}  // namespace
}  // namespace stagecoach
