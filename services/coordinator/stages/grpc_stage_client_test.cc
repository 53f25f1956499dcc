// Symptom: after a stage server's restart its job recovered one to three times more than needed,
// each time with "connection refused" from a server that was up. Cause: the channel to that address
// was in back-off from the time when nobody listened there, and answers without trying meanwhile.
#include "services/coordinator/stages/grpc_stage_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <memory>
#include <span>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/testing/status_is.h"
#include "services/common/grpc/access/peer_identity.h"
#include "services/common/grpc/own_error.h"
#include "services/common/tls/certificates_testing.h"
#include "services/common/tls/tls_identity.h"

namespace stagecoach {
namespace {

class StatusOnly final : public v1::StageService::Service {
 public:
  grpc::Status GetStatus(grpc::ServerContext* context, const v1::GetStatusRequest*,
                         v1::GetStatusResponse* response) override {
    response->set_now_unix_nanos(1);
    response->set_state(state);
    if (marks) MarkOwnError(context);
    return error;
  }
  grpc::Status FindSnapshots(grpc::ServerContext* context, const v1::FindSnapshotsRequest*,
                             v1::FindSnapshotsResponse*) override {
    from = context->peer();
    return error;
  }
  grpc::Status error;
  bool marks = false;
  std::string state;
  std::string from;  // host and port of the last command's connection
};

// A port where nobody listens, and which nobody else is given meanwhile. gRPC's servers, which
// allow others beside them, can be put there.
class HeldPort {
 public:
  HeldPort() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    EXPECT_EQ(setsockopt(socket_, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)), 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length), 0);
    port_ = ntohs(address.sin_port);
  }
  ~HeldPort() { close(socket_); }
  HeldPort(const HeldPort&) = delete;
  HeldPort& operator=(const HeldPort&) = delete;
  int port() const { return port_; }

 private:
  const int socket_;
  int port_ = 0;
};

// A stage's process: it listens as long as it lives.
class Process {
 public:
  explicit Process(int port) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(absl::StrCat("127.0.0.1:", port), grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~Process() { server_->Shutdown(std::chrono::system_clock::now()); }
  int port() const { return port_; }
  StatusOnly& service() { return service_; }

 private:
  StatusOnly service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

absl::Status Ask(GrpcStageClient& client, const StagePeer& stage) {
  std::promise<absl::Status> answer;
  client.GetStatus(stage, 30, [&answer](const absl::StatusOr<v1::GetStatusResponse>& response) {
    answer.set_value(response.status());
  });
  return answer.get_future().get();
}

constexpr std::chrono::seconds kCallPatience(30);

// Again where the dial took too long: it has two seconds, and a busy machine may need more. What
// the system refused is an answer.
absl::Status AskInTime(GrpcStageClient& client, const StagePeer& stage) {
  const auto until = std::chrono::steady_clock::now() + kCallPatience;
  while (true) {
    const absl::Status status = Ask(client, stage);
    const bool late =
        absl::IsUnavailable(status) && !absl::StrContains(status.message(), "refused");
    if (!late || std::chrono::steady_clock::now() > until) return status;
  }
}

TEST(GrpcStageClientTest, AProcessThatRegistersIsReachedAtOnce) {
  GrpcStageClient client([](const std::string&) { return grpc::InsecureChannelCredentials(); });
  const HeldPort held;
  auto process = std::make_unique<Process>(held.port());
  ASSERT_EQ(process->port(), held.port());
  const StagePeer stage{"stage-0", absl::StrCat("127.0.0.1:", held.port())};
  ASSERT_TRUE(AskInTime(client, stage).ok());
  for (int restart = 0; restart < 3; ++restart) {
    process.reset();
    EXPECT_TRUE(absl::IsUnavailable(AskInTime(client, stage))) << "nobody is there";
    process = std::make_unique<Process>(held.port());
    ASSERT_EQ(process->port(), held.port());
    client.Reconnect(stage);
    const absl::Status status = AskInTime(client, stage);
    EXPECT_TRUE(status.ok()) << "restart " << restart << ": " << status;
  }
}

// Symptom: a connection that was reset in the middle of an answer ended a job, for gRPC calls that
// INTERNAL, as a stage does a kernel that failed.
TEST(GrpcStageClientTest, WhatAStageDidNotSayItselfIsNoMoreThanUnavailable) {
  GrpcStageClient client([](const std::string&) { return grpc::InsecureChannelCredentials(); });
  Process process(0);
  const StagePeer stage{"stage-0", absl::StrCat("127.0.0.1:", process.port())};
  ASSERT_TRUE(AskInTime(client, stage).ok());
  for (const grpc::StatusCode code :
       {grpc::StatusCode::INTERNAL, grpc::StatusCode::UNKNOWN, grpc::StatusCode::UNIMPLEMENTED,
        grpc::StatusCode::RESOURCE_EXHAUSTED, grpc::StatusCode::PERMISSION_DENIED,
        grpc::StatusCode::UNAUTHENTICATED}) {
    process.service().error = grpc::Status(code, "the middle");
    process.service().marks = true;
    EXPECT_EQ(static_cast<int>(Ask(client, stage).code()), code);
    process.service().marks = false;
    EXPECT_THAT(Ask(client, stage),
                StatusIs(absl::StatusCode::kUnavailable, ::testing::HasSubstr("the middle")));
  }
  // An older stage marks nothing, and gRPC makes none of these.
  process.service().error = grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "a file");
  EXPECT_TRUE(absl::IsInvalidArgument(Ask(client, stage)));
}

TEST(GrpcStageClientTest, ReconnectingLeavesCallsUnderWayAlone) {
  GrpcStageClient client([](const std::string&) { return grpc::InsecureChannelCredentials(); });
  Process process(0);
  const StagePeer stage{"stage-0", absl::StrCat("127.0.0.1:", process.port())};
  std::vector<std::promise<absl::Status>> answers(50);
  for (std::promise<absl::Status>& answer : answers) {
    // Over a connection that is there: fifty dials at once take a busy machine longer than each of
    // them has.
    EXPECT_TRUE(AskInTime(client, stage).ok());
    client.GetStatus(stage, 30, [&answer](const absl::StatusOr<v1::GetStatusResponse>& response) {
      answer.set_value(response.status());
    });
    client.Reconnect(stage);
  }
  for (std::promise<absl::Status>& answer : answers) {
    const absl::Status status = answer.get_future().get();
    EXPECT_TRUE(status.ok()) << status;
  }
}

// A coordinator whose certificate was put right was refused by its stages until they registered
// again: the connection had been made with the wrong one.
TEST(GrpcStageClientTest, AStageThatRefusedIsCommandedOverANewConnection) {
  GrpcStageClient client([](const std::string&) { return grpc::InsecureChannelCredentials(); });
  Process process(0);
  const StagePeer stage{"stage-0", absl::StrCat("127.0.0.1:", process.port())};
  // Until it has come: a dial may take too long.
  const auto command = [&] {
    process.service().from.clear();
    const auto until = std::chrono::steady_clock::now() + kCallPatience;
    while (process.service().from.empty() && std::chrono::steady_clock::now() < until) {
      std::promise<absl::Status> answer;
      client.FindSnapshots(stage, "a", "key", 30,
                           [&answer](const auto& found) { answer.set_value(found.status()); });
      answer.get_future().get().IgnoreError();
    }
    return process.service().from;
  };
  const std::string first = command();
  EXPECT_EQ(command(), first);
  for (const grpc::StatusCode refused :
       {grpc::StatusCode::PERMISSION_DENIED, grpc::StatusCode::UNAUTHENTICATED}) {
    process.service().error = grpc::Status(refused, "stage stage-1 may not call LoadCell");
    const std::string before = command();
    process.service().error = grpc::Status::OK;
    const std::string after = command();
    EXPECT_NE(after, before);
    EXPECT_EQ(command(), after);
  }
}

// The story: a name that was registered with another stage's address was taken for that stage.
TEST(GrpcStageClientTest, AnotherStageAtTheAddressIsNotTalkedTo) {
  TestAuthority authority;
  const auto there = TlsIdentity::Load(authority.IssueRole("stage", "stage-0")).value();
  const auto here = TlsIdentity::Load(authority.IssueRole("coordinator", "here")).value();
  StatusOnly service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", there->MakeServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const std::string address = absl::StrCat("127.0.0.1:", port);
  GrpcStageClient client([&here](const std::string& stage) {
    return here->MakeChannelCredentials([stage](std::span<const std::string> uris) {
      return CheckIsStage(uris, stage, /*any_certificate=*/false);
    });
  });
  EXPECT_TRUE(AskInTime(client, {"stage-0", address}).ok());
  const auto until = std::chrono::steady_clock::now() + kCallPatience;
  absl::Status refused;
  do {  // a dial may take too long
    refused = Ask(client, {"stage-1", address});
  } while (!absl::StrContains(refused.message(), "not that of stage stage-1") &&
           std::chrono::steady_clock::now() < until);
  EXPECT_THAT(refused,
              StatusIs(absl::StatusCode::kUnavailable, ::testing::HasSubstr("the name stage-0")));
  EXPECT_TRUE(AskInTime(client, {"stage-0", address}).ok()) << "it stays reachable by its own name";
  server->Shutdown(std::chrono::system_clock::now());
}

// What a stage says went into lists, metrics and terminals as it was.
TEST(GrpcStageClientTest, TextsOfAStageAreShownAndNotObeyed) {
  GrpcStageClient client([](const std::string&) { return grpc::InsecureChannelCredentials(); });
  Process process(0);
  ASSERT_TRUE(AskInTime(client, {"stage-0", absl::StrCat("127.0.0.1:", process.port())}).ok());
  process.service().state = "ready\n\x1b[2J";
  std::promise<std::string> state;
  client.GetStatus({"stage-0", absl::StrCat("127.0.0.1:", process.port())}, 30,
                   [&state](const absl::StatusOr<v1::GetStatusResponse>& response) {
                     state.set_value(response.ok() ? response->state() : "");
                   });
  EXPECT_EQ(state.get_future().get(), "ready\\x0a\\x1b[2J");
  process.service().error = grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "/a/\xff\x1b[2J");
  EXPECT_EQ(Ask(client, {"stage-0", absl::StrCat("127.0.0.1:", process.port())}).message(),
            "/a/\\xff\\x1b[2J");
}

}  // namespace
}  // namespace stagecoach
