// Certificates that change while a server and its callers run.
#include "services/common/tls/tls_identity.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "services/common/grpc/grpc_channel.h"
#include "services/common/grpc/grpc_server.h"
#include "services/common/tls/certificates_testing.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

class TlsIdentityTest : public ::testing::Test {
 protected:
  void SetUp() override {
    here_ = old_.IssueRole("coordinator", "here");
    identity_ = TlsIdentity::Load(here_).value();
    GrpcServerOptions options;
    options.listen = "0.0.0.0:0";
    options.tls = here_;
    options.identity = identity_.get();
    server_ =
        std::make_unique<GrpcServer>(options, std::vector<GrpcServer::NamedService>{}, nullptr);
    ASSERT_TRUE(server_->Start().ok());
    server_->SetServing(true);
  }

  // What `from` names stands where `here_` names now, and somebody has looked.
  void Replace(const TlsFlags& at, const TlsFlags& from, TlsIdentity* identity) {
    const auto overwrite = std::filesystem::copy_options::overwrite_existing;
    std::filesystem::copy_file(from.server_cert, at.server_cert, overwrite);
    std::filesystem::copy_file(from.server_key, at.server_key, overwrite);
    std::filesystem::copy_file(from.root_cert, at.root_cert, overwrite);
    identity->Look();
  }

  std::shared_ptr<grpc::Channel> Dial(const std::shared_ptr<grpc::ChannelCredentials>& by,
                                      const std::string& host = "127.0.0.1") {
    return MakeControlChannel(absl::StrCat(host, ":", server_->port()), by);
  }
  // patient: goes on dialing until it is accepted.
  static grpc::Status Health(const std::shared_ptr<grpc::Channel>& channel, bool patient) {
    grpc::ClientContext context;
    context.set_wait_for_ready(patient);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    grpc::health::v1::HealthCheckResponse response;
    return grpc::health::v1::Health::NewStub(channel)->Check(&context, {}, &response);
  }

  TestAuthority old_{"old"}, fresh_{"fresh"};
  TlsFlags here_;
  std::unique_ptr<TlsIdentity> identity_;
  std::unique_ptr<GrpcServer> server_;
};

TEST_F(TlsIdentityTest, NewConnectionsGoByNewFilesAndThoseThatAreThereStay) {
  const TlsFlags stage = old_.IssueRole("stage", "stage-0");
  const auto stage_identity = TlsIdentity::Load(stage).value();
  const auto held = Dial(stage_identity->channel_credentials());
  ASSERT_TRUE(Health(held, /*patient=*/true).ok());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  const auto watch = grpc::health::v1::Health::NewStub(held)->Watch(&context, {});
  grpc::health::v1::HealthCheckResponse told;
  ASSERT_TRUE(watch->Read(&told));

  Replace(here_, fresh_.IssueRole("coordinator", "here"), identity_.get());
  EXPECT_EQ(identity_->pems().root, ReadPems(here_)->root);
  // A caller of the new authority alone: it accepts the server's new certificate only, and is
  // accepted by the new authority only.
  const TlsFlags fresh_caller = fresh_.IssueRole("user", "ann");
  const auto accepted = Health(Dial(MakeChannelCredentials(fresh_caller).value()), true);
  EXPECT_TRUE(accepted.ok()) << accepted.error_message();
  // The authority that was removed is refused, also by who accepts both.
  TlsFlags old_caller = old_.IssueRole("user", "bob");
  std::ofstream(old_caller.root_cert, std::ios::app)
      << std::ifstream(fresh_caller.root_cert).rdbuf();
  EXPECT_EQ(Health(Dial(MakeChannelCredentials(old_caller).value()), false).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  // A caller's side: the same channel credentials go by its new files.
  Replace(stage, fresh_.IssueRole("stage", "stage-0"), stage_identity.get());
  const auto again = Health(Dial(stage_identity->channel_credentials()), true);
  EXPECT_TRUE(again.ok()) << again.error_message();

  // The stream ends with its connection, so news on it show that the connection of before is still
  // there.
  server_->SetServing(false);
  EXPECT_TRUE(watch->Read(&told)) << watch->Finish().error_message();
  EXPECT_EQ(told.status(), grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  context.TryCancel();
}

TEST_F(TlsIdentityTest, BrokenFilesChangeNothingAndAreNamedOnce) {
  std::ostringstream log;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  const TlsPems pems = identity_->pems();
  const double expiry = identity_->expiry().identity_unix_seconds;
  // The certificate is there already, its key not yet.
  const TlsFlags next = old_.IssueRole("coordinator", "here");
  const std::string half = pems.cert.substr(0, pems.cert.size() / 2);
  std::filesystem::copy_file(next.server_cert, here_.server_cert,
                             std::filesystem::copy_options::overwrite_existing);
  identity_->Look();
  identity_->Look();
  std::ofstream(here_.server_cert) << half;
  identity_->Look();
  std::filesystem::remove(here_.server_cert);
  identity_->Look();
  spdlog::set_default_logger(before);
  EXPECT_EQ(identity_->pems(), pems);
  EXPECT_EQ(identity_->expiry().identity_unix_seconds, expiry);
  const std::string text = log.str();
  EXPECT_THAT(text, HasSubstr("does not belong to --grpc-server-cert"));
  EXPECT_EQ(text.find("does not belong"), text.rfind("does not belong")) << text;
  EXPECT_THAT(text, HasSubstr("is not a PEM certificate"));
  EXPECT_THAT(text, HasSubstr("cannot be read"));
  const TlsFlags caller = old_.IssueRole("user", "ann");
  EXPECT_TRUE(Health(Dial(MakeChannelCredentials(caller).value()), true).ok());
}

TEST_F(TlsIdentityTest, ACallerStillHoldsAServerToItsName) {
  const auto caller = TlsIdentity::Load(old_.IssueRole("stage", "stage-0")).value();
  // An address that is the same host and stands in no certificate. (Not localhost: c-ares 1.18
  // loses ten bytes each time it resolves that, and the leak check of the asan build sees it.)
  // Again where the dial took too long to come to that: it has two seconds.
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  grpc::Status refused;
  do {
    refused = Health(Dial(caller->channel_credentials(), "127.0.0.2"), false);
  } while (refused.error_code() == grpc::StatusCode::UNAVAILABLE &&
           refused.error_message().find("Peer name") == std::string::npos &&
           std::chrono::steady_clock::now() < patience);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(refused.error_message(), HasSubstr("Peer name 127.0.0.2 is not in peer certificate"));
  TestAuthority other("other");
  const auto stranger = TlsIdentity::Load(other.IssueRole("stage", "stage-0")).value();
  EXPECT_EQ(Health(Dial(stranger->channel_credentials()), false).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST(TlsIdentity, WithoutTlsThereIsNone) {
  EXPECT_EQ(TlsIdentity::Load({}).value(), nullptr);
  EXPECT_NE(ChannelCredentialsOf(nullptr), nullptr);
}

}  // namespace
}  // namespace stagecoach
