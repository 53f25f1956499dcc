// What a coordinator that refuses a stage is asked next, and by whom: a connection has the
// certificate it was made with.
#include "services/stage/lease.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/grpc/access/peer_identity.h"
#include "services/common/grpc/grpc_channel.h"
#include "services/common/grpc/grpc_server.h"
#include "services/common/grpc/grpc_status.h"
#include "services/common/grpc/message_checksum.h"
#include "services/common/tls/certificates_testing.h"
#include "services/common/tls/tls_identity.h"
#include "stage/testing/runtime_fleet.h"

namespace stagecoach {
namespace {

// Refuses as the coordinator does, by the certificate, and with `script`: what it answers to its
// first calls.
class LeaseGiver final : public v1::FleetService::Service {
 public:
  struct Heard {
    std::string call, from;  // from: host and port of the connection
  };
  explicit LeaseGiver(std::vector<grpc::StatusCode> script = {}) : script_(std::move(script)) {}

  grpc::Status RegisterStage(grpc::ServerContext* context, const v1::RegisterStageRequest* request,
                             v1::RegisterStageResponse* response) override {
    return Answer("register", *context, request->stage().name(), response);
  }
  grpc::Status RenewLease(grpc::ServerContext* context, const v1::RenewLeaseRequest* request,
                          v1::RenewLeaseResponse* response) override {
    return Answer("renew", *context, request->name(), response);
  }
  std::vector<Heard> AwaitCalls(size_t calls) {
    std::unique_lock<std::mutex> lock(mutex_);
    EXPECT_TRUE(
        changed_.wait_for(lock, std::chrono::seconds(60), [&] { return heard_.size() >= calls; }));
    return heard_;
  }

 private:
  template <typename Response>
  grpc::Status Answer(const char* call, const grpc::ServerContext& context, const std::string& name,
                      Response* response) {
    response->set_term(1);
    response->set_lease_seconds(3);
    SetChecksum(response);
    grpc::Status status = ToGrpc(CheckMayBeStage(*context.auth_context(), name));
    std::lock_guard<std::mutex> lock(mutex_);
    if (heard_.size() < script_.size()) status = grpc::Status(script_[heard_.size()], "scripted");
    heard_.push_back({call, context.peer()});
    changed_.notify_all();
    return status;
  }

  const std::vector<grpc::StatusCode> script_;
  std::mutex mutex_;  // guards heard_
  std::condition_variable changed_;
  std::vector<Heard> heard_;
};

class LeaseTest : public ::testing::Test {
 protected:
  void Start(const TlsFlags& coordinator = {}, std::vector<grpc::StatusCode> script = {}) {
    lease_.reset();
    server_.reset();
    coordinator_ = std::make_unique<LeaseGiver>(std::move(script));
    GrpcServerOptions options;
    options.listen = "127.0.0.1:0";
    options.tls = coordinator;
    server_ = std::make_unique<GrpcServer>(
        options,
        std::vector<GrpcServer::NamedService>{{"stagecoach.v1.FleetService", coordinator_.get()}},
        nullptr);
    ASSERT_TRUE(server_->Start().ok());
    server_->SetServing(true);
    Lease::Parts parts;
    parts.dial = [address = absl::StrCat("127.0.0.1:", server_->port()), this] {
      return MakeControlChannel(address, ChannelCredentialsOf(identity_.get()));
    };
    parts.stage.set_name("stage-0");
    parts.runtime = &fleet_.runtime(0);
    parts.telemetry = [] { return v1::StageTelemetry(); };
    parts.explain = [](const absl::Status& error) { return error; };
    lease_ = std::make_unique<Lease>(parts);
  }

  TestAuthority authority_;
  std::unique_ptr<TlsIdentity> identity_;  // the stage's; null: no TLS
  RuntimeFleet fleet_{RuntimeFleet::Options{}};
  std::unique_ptr<LeaseGiver> coordinator_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<Lease> lease_;
};

// Seen: a stage that was started with another's certificate got its own, said so, and went on being
// refused for minutes, over the connection that it had made with the other's.
TEST_F(LeaseTest, ACertificateThatIsPutRightIsTakenWithoutARestart) {
  const TlsFlags stage = authority_.IssueRole("stage", "stage-1");
  identity_ = TlsIdentity::Load(stage).value();
  Start(authority_.IssueRole("coordinator", "here"));
  coordinator_->AwaitCalls(2);
  EXPECT_FALSE(lease_->registered());
  const TlsFlags right = authority_.IssueRole("stage", "stage-0");
  const auto overwrite = std::filesystem::copy_options::overwrite_existing;
  std::filesystem::copy_file(right.server_cert, stage.server_cert, overwrite);
  std::filesystem::copy_file(right.server_key, stage.server_key, overwrite);
  identity_->Look();
  Await([this] { return lease_->registered(); });
}

// The coordinator that let it in was started anew, and asks for more.
TEST_F(LeaseTest, ARenewalThatIsRefusedIsFollowedByANewConnection) {
  for (const grpc::StatusCode refused :
       {grpc::StatusCode::PERMISSION_DENIED, grpc::StatusCode::UNAUTHENTICATED}) {
    Start({}, {grpc::StatusCode::OK, refused});
    const std::vector<LeaseGiver::Heard> heard = coordinator_->AwaitCalls(3);
    ASSERT_GE(heard.size(), 3u);
    EXPECT_EQ(heard[1].call, "renew");
    EXPECT_EQ(heard[1].from, heard[0].from) << "what it was taken over it keeps";
    EXPECT_EQ(heard[2].call, "register");
    EXPECT_NE(heard[2].from, heard[1].from);
  }
}

}  // namespace
}  // namespace stagecoach
