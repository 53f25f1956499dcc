// Tokens over gRPC as callers meet them, at a server of whose calls no certificate is asked.
#include "services/common/grpc/access/callers.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/files/hash.h"
#include "base/testing/file_text.h"
#include "base/testing/manual_clock.h"
#include "base/testing/temporary_folder.h"
#include "services/common/grpc/grpc_channel.h"
#include "services/common/grpc/grpc_server.h"
#include "services/common/http/http_gate.h"
#include "services/common/http2/read_watch.h"
#include "services/common/tls/certificates_testing.h"
#include "stagecoach/v1/job.grpc.pb.h"

namespace stagecoach {
namespace {

constexpr int kFullStock = static_cast<int>(TokenGuesses::kStock);

// Everybody is at one address, loopback. The token of each user is the name.
class CallersTest : public ::testing::Test {
 protected:
  CallersTest() : guesses_(std::make_shared<TokenGuesses>(&clock_)) {
    CHECK_EQ(chmod(path_.c_str(), 0600), 0);
    callers_ = Callers::Open(path_, guesses_).value();
    GrpcServerOptions options;
    options.listen = "127.0.0.1:0";
    options.tls = authority_.IssueRole("coordinator", "coordinator");
    options.callers = callers_.get();
    server_ = std::make_unique<GrpcServer>(
        options, std::vector<GrpcServer::NamedService>{{"stagecoach.v1.JobService", &jobs_}},
        nullptr);
    CHECK_OK(server_->Start());
  }
  ~CallersTest() override { server_->Shutdown(0); }

  // A connection of its own, without a certificate.
  std::shared_ptr<grpc::Channel> Dial() {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = FileText(authority_.IssueRole("user", "nobody").root_cert);
    return MakeControlChannel(absl::StrCat("127.0.0.1:", server_->port()),
                              grpc::SslCredentials(options));
  }
  // Whoever is let in gets UNIMPLEMENTED.
  static grpc::StatusCode Call(const std::shared_ptr<grpc::Channel>& channel,
                               const std::string& token) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    context.set_credentials(grpc::AccessTokenCredentials(token));
    v1::ListJobsResponse response;
    return v1::JobService::NewStub(channel)->ListJobs(&context, {}, &response).error_code();
  }
  // The counter's line.
  static std::string Ended() {
    MetricWriter writer;
    WriteReadFaults(writer);
    const std::string text = writer.Text();
    const size_t at = text.find("stagecoach_grpc_connections_ended_total{reason=\"guesses\"}");
    CHECK(at != text.npos) << text;
    return text.substr(at, text.find('\n', at) - at);
  }

  TestAuthority authority_;
  const TemporaryFolder folder_;
  const std::string path_ = folder_.Write(
      "tokens", absl::StrCat("ann ", Sha256Hex("ann"), "\nbob ", Sha256Hex("bob"), "\n"));
  ManualClock clock_{1'000'000'000};
  const std::shared_ptr<TokenGuesses> guesses_;
  std::unique_ptr<Callers> callers_;
  v1::JobService::CallbackService jobs_;
  std::unique_ptr<GrpcServer> server_;
};

// The story: at the HTTP port guesses were slowed to one a second of an address, over gRPC not at
// all.
TEST_F(CallersTest, WhoeverGuessesTokensIsEndedAndWhoIsConnectedIsNot) {
  const auto ann = Dial(), eve = Dial();
  const std::string before = Ended();
  ASSERT_EQ(Call(ann, "ann"), grpc::StatusCode::UNIMPLEMENTED);
  for (int i = 0; i < kFullStock; ++i) {
    ASSERT_EQ(Call(eve, absl::StrCat("guess-", i)), grpc::StatusCode::UNAUTHENTICATED) << i;
  }
  EXPECT_EQ(Call(eve, "one-more"), grpc::StatusCode::UNAVAILABLE);
  EXPECT_NE(Ended(), before) << "counted as guesses";
  // By another connection: her client may not have seen yet that hers has ended.
  EXPECT_EQ(Call(Dial(), "guess-0"), grpc::StatusCode::UNAUTHENTICATED) << "she knows that";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Call(ann, "ann"), grpc::StatusCode::UNIMPLEMENTED) << i;
  EXPECT_EQ(Call(Dial(), "bob"), grpc::StatusCode::UNAVAILABLE)
      << "or a guess on a new connection would be told";
  clock_.AdvanceNanos(1'100'000'000);
  EXPECT_EQ(Call(Dial(), "bob"), grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(CallersTest, AnOldTokenKeepsNobodyOfItsAddressOut) {
  const auto old = Dial();
  for (int i = 0; i < 3 * kFullStock; ++i) {
    ASSERT_EQ(Call(old, "old"), grpc::StatusCode::UNAUTHENTICATED) << i;
  }
  EXPECT_EQ(Call(Dial(), "ann"), grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(CallersTest, GuessesAtOnePortCountAtTheOther) {
  HttpGate::Options options;
  options.token_file = path_;
  options.guesses = guesses_;
  const auto gate = HttpGate::Make(options).value();
  const auto eve = Dial();
  for (int i = 0; i < kFullStock; ++i) Call(eve, absl::StrCat("guess-", i));
  const auto refused =
      gate->Check({"GET", "/", "", {{"host", "box"}, {"authorization", "Bearer ann"}}});
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->status, 429);
}

}  // namespace
}  // namespace stagecoach
