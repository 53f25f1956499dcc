// The server set-up as clients meet it: status details, health, limits, HTTP, exposure.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "services/common/grpc/grpc_channel.h"
#include "services/common/grpc/grpc_server.h"
#include "services/common/grpc/grpc_status.h"
#include "services/common/http/http_server.h"
#include "services/common/process/server_flags.h"
#include "stage/link/grpc/channel_arguments.h"
#include "stagecoach/v1/job.grpc.pb.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class EchoJobs final : public v1::JobService::CallbackService {
 public:
  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* context,
                                   const v1::GetJobRequest* request,
                                   v1::GetJobResponse* response) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    response->mutable_job()->set_id(request->id());
    reactor->Finish(request->id().empty() ? ToGrpc(absl::InvalidArgumentError("id: empty"))
                                          : grpc::Status::OK);
    return reactor;
  }
};

class ServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    GrpcServerOptions options;
    options.listen = "127.0.0.1:0";
    server_ = std::make_unique<GrpcServer>(
        options, std::vector<GrpcServer::NamedService>{{"stagecoach.v1.JobService", &service_}},
        &metrics_);
    ASSERT_TRUE(server_->Start().ok());
    channel_ = MakeControlChannel(absl::StrCat("127.0.0.1:", server_->port()),
                                  grpc::InsecureChannelCredentials());
    // On a busy machine its first attempt may be too slow, and a call that came with it would fail.
    ASSERT_TRUE(
        channel_->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(20)));
    stub_ = v1::JobService::NewStub(channel_);
  }

  grpc::Status Get(const std::string& id) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    v1::GetJobRequest request;
    request.set_id(id);
    v1::GetJobResponse response;
    return stub_->GetJob(&context, request, &response);
  }

  // grpc.health.v1 by bytes: HealthCheckRequest{service=1}, HealthCheckResponse{status=1}.
  std::pair<grpc::Status, std::string> Health(const std::string& service) {
    std::string bytes;
    if (!service.empty()) {
      bytes.push_back(0x0a);
      bytes.push_back(static_cast<char>(service.size()));
      bytes += service;
    }
    const grpc::Slice slice(bytes);
    grpc::ByteBuffer request(&slice, 1), response;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    grpc::GenericStub stub(channel_);
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<grpc::Status> status;
    stub.UnaryCall(&context, "/grpc.health.v1.Health/Check", {}, &request, &response,
                   [&](grpc::Status result) {
                     std::lock_guard<std::mutex> lock(mutex);
                     status = std::move(result);
                     changed.notify_one();
                   });
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return status.has_value(); });
    grpc::Slice answer;
    if (status->ok()) {
      EXPECT_TRUE(response.DumpToSingleSlice(&answer).ok());
    }
    return {*status, std::string(reinterpret_cast<const char*>(answer.begin()), answer.size())};
  }

  EchoJobs service_;
  RpcMetrics metrics_{{"stagecoach.v1.JobService"}};
  std::unique_ptr<GrpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::JobService::Stub> stub_;
};

TEST_F(ServerTest, HealthFollowsServing) {
  const std::string serving = "\x08\x01", not_serving = "\x08\x02";
  for (const char* name : {"", "readiness", "stagecoach.v1.JobService"}) {
    EXPECT_EQ(Health(name).second, not_serving) << name;
  }
  EXPECT_EQ(Health("liveness").second, serving);
  server_->SetServing(true);
  for (const char* name : {"", "readiness", "liveness", "stagecoach.v1.JobService"}) {
    EXPECT_EQ(Health(name).second, serving) << name;
  }
  EXPECT_EQ(Health("nobody").first.error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ServerTest, RefusesTooLargeMessagesAndLivesOn) {
  const grpc::Status status = Get(std::string(100 << 20, 'x'));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_TRUE(Get("a").ok());
}

TEST_F(ServerTest, CountsCallsByCode) {
  EXPECT_TRUE(Get("a").ok());
  const grpc::Status refused = Get("");
  EXPECT_EQ(FieldViolation(refused), "id") << "the detail came over the wire";
  MetricWriter writer;
  metrics_.Write(writer);
  EXPECT_THAT(writer.Text(), HasSubstr("grpc_method=\"GetJob\",grpc_code=\"OK\"} 1"));
  EXPECT_THAT(writer.Text(), HasSubstr("grpc_method=\"GetJob\",grpc_code=\"INVALID_ARGUMENT\"} 1"));
}

TEST_F(ServerTest, NeverSharesAPort) {
  GrpcServerOptions options;
  options.listen = absl::StrCat("127.0.0.1:", server_->port());
  EchoJobs service;
  GrpcServer second(options, {{"stagecoach.v1.JobService", &service}}, nullptr);
  EXPECT_EQ(second.Start().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Get("a").ok());
}

TEST(GrpcStatus, GoesThereAndBack) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "why it failed");
    EXPECT_EQ(FromGrpc(ToGrpc(status)), status);
  }
  EXPECT_TRUE(ToGrpc(absl::OkStatus()).ok());
  // A file name in it need not be text that a protobuf string may hold.
  EXPECT_EQ(ToGrpc(absl::InternalError("a\xff\x1b")).error_message(), "a\\xff\\x1b");
  EXPECT_EQ(FromGrpc(grpc::Status(grpc::StatusCode::INTERNAL, "a\xff")).message(), "a\\xff");
}

TEST(GrpcStatus, CarriesTheFieldOfASpecError) {
  EXPECT_EQ(LeadingFieldPath("training.steps=0: want >= 1"), "training.steps");
  EXPECT_EQ(LeadingFieldPath("model.sequence.layers[3].mlp: hidden"),
            "model.sequence.layers[3].mlp");
  EXPECT_EQ(LeadingFieldPath("Something else: here"), "");
  EXPECT_EQ(LeadingFieldPath("no path in here"), "");
  const grpc::Status status = ToGrpc(absl::InvalidArgumentError("training.steps=0: want >= 1"));
  EXPECT_EQ(FieldViolation(status), "training.steps");
  EXPECT_EQ(FieldViolation(ToGrpc(absl::InternalError("training.steps=0: x"))), "");
}

// The story: of an error with a field, whose text stands in three places, 18 KiB were more than an
// answer may have, and its code and words were lost.
TEST(GrpcStatus, ATextThatNoAnswerHasRoomForIsCut) {
  const std::string most(kMostErrorBytes, 'a');
  EXPECT_EQ(ToGrpc(absl::NotFoundError(most)).error_message(), most);
  EXPECT_EQ(ToGrpc(absl::NotFoundError(most + "bc")).error_message(), most + "... (2 bytes more)");
  const std::string before = most.substr(1);
  EXPECT_EQ(ToGrpc(absl::NotFoundError(before + "\u00e4b")).error_message(),
            before + "... (3 bytes more)")
      << "no half of a character";
  // As gRPC writes it: what is no ASCII as three characters for a byte, the details in base 64.
  std::string path(kMostErrorBytes / 2, 'a'), rest;
  for (size_t i = 0; i < kMostErrorBytes; ++i) rest += "\u00e4";
  const grpc::Status longest = ToGrpc(absl::InvalidArgumentError(path + ": " + rest));
  EXPECT_EQ(FieldViolation(longest), path);
  EXPECT_LT(3 * longest.error_message().size() + 4 * (longest.error_details().size() / 3 + 1),
            static_cast<size_t>(kMostAnswerFieldBytes));
}

TEST(GrpcStatus, KeepsInternalsOffTheApi) {
  const grpc::Status status = ToApiGrpc(absl::DataLossError("/srv/secret/shard: bad digest"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_THAT(status.error_message(), Not(HasSubstr("secret")));
  EXPECT_THAT(status.error_message(), HasSubstr("e-"));
  EXPECT_EQ(ToApiGrpc(absl::NotFoundError("job a: unknown")).error_message(), "job a: unknown");
}

// What the server says to that until it closes the connection, which it has to do within a minute.
std::string SayTo(int port, const std::string& text) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const timeval patience = {.tv_sec = 60, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  std::string answer;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = read(fd, buffer, sizeof(buffer))) > 0) answer.append(buffer, got);
  EXPECT_EQ(got, 0) << "closed by the server";
  close(fd);
  return answer;
}

std::string Fetch(int port, const std::string& request) {
  return SayTo(port,
               absl::StrCat(request, " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
}

// They kept their descriptors for two minutes, and 1,100 of them kept a server from listening for
// good.
TEST(GrpcServer, ClosesConnectionsThatSayNothing) {
  GrpcServerOptions options;
  options.listen = "127.0.0.1:0";
  options.handshake_timeout_ms = 100;
  GrpcServer server(options, {}, nullptr);
  ASSERT_TRUE(server.Start().ok());
  SayTo(server.port(), "");
}

TEST(HttpServer, ServesMetricsAndProbes) {
  bool ready = false;
  HttpServer server;
  HandleStandardPaths(
      server, [] { return std::string("up 1\n"); }, [] { return true; }, [&] { return ready; });
  ASSERT_TRUE(server.Start("127.0.0.1:0").ok());
  ASSERT_GT(server.port(), 0);
  EXPECT_THAT(Fetch(server.port(), "GET /metrics"), HasSubstr("\r\n\r\nup 1\n"));
  EXPECT_THAT(Fetch(server.port(), "GET /livez"), HasSubstr("200 OK"));
  EXPECT_THAT(Fetch(server.port(), "GET /readyz"), HasSubstr("503"));
  ready = true;
  EXPECT_THAT(Fetch(server.port(), "GET /readyz"), HasSubstr("200 OK"));
  EXPECT_THAT(Fetch(server.port(), "HEAD /metrics"), Not(HasSubstr("up 1")));
  EXPECT_THAT(Fetch(server.port(), "GET /etc/passwd"), HasSubstr("404"));
  EXPECT_THAT(Fetch(server.port(), "POST /metrics"), HasSubstr("405"));
  HttpServer second;
  EXPECT_EQ(second.Start(absl::StrCat("127.0.0.1:", server.port())).code(),
            absl::StatusCode::kUnavailable);
}

TEST(ServerFlags, RefusesToListenToTheNetworkWithoutTls) {
  ServerFlags flags{.listen = "127.0.0.1:0", .http = "localhost:0"};
  EXPECT_TRUE(CheckExposure(flags).ok());
  flags.listen = "0.0.0.0:8001";
  const absl::Status refused = CheckExposure(flags);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("--insecure-i-know"));
  flags.insecure_i_know = true;
  EXPECT_TRUE(CheckExposure(flags).ok());
  flags.insecure_i_know = false;
  flags.tls.use_ssl = true;
  EXPECT_THAT(std::string(CheckExposure(flags).message()), HasSubstr("--grpc-root-cert"));
  flags.tls = {true, "cert", "key", "root"};
  EXPECT_TRUE(CheckExposure(flags).ok());
  flags.http = "0.0.0.0:8000";
  EXPECT_FALSE(CheckExposure(flags).ok()) << "HTTP has no TLS of its own";
  flags.http_token_file = "tokens";
  EXPECT_TRUE(CheckExposure(flags).ok()) << "with a login it may be";
  flags.http_token_file.clear();
  flags.probes = "0.0.0.0:8002";
  EXPECT_THAT(std::string(CheckExposure(flags).message()), HasSubstr("--http-token-file"))
      << "probes elsewhere make no difference";
  flags.insecure_http_i_know = true;
  EXPECT_TRUE(CheckExposure(flags).ok());
  flags.probes = "8002";
  EXPECT_THAT(std::string(CheckExposure(flags).message()), HasSubstr("--probes=8002"));
  flags.probes.clear();
  flags.tls.use_ssl = false;
  EXPECT_FALSE(CheckExposure(flags).ok()) << "it says nothing about gRPC";
}

TEST(ServerFlags, TellsLoopbackFromTheRest) {
  for (const char* address : {"127.0.0.1:1", "127.0.0.2:0", "localhost:1", "[::1]:1"}) {
    EXPECT_TRUE(IsLoopback(address)) << address;
  }
  // Names that begin like an address passed for loopback, and were served to the network without
  // TLS.
  for (const char* address : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "example.org:1",
                              "127.evil.example:1", "127.0.0.1.evil.example:1", "127.:1"}) {
    EXPECT_FALSE(IsLoopback(address)) << address;
  }
  std::string host;
  int port = 0;
  for (const char* address : {"", "host", ":1", "host:", "host:x", "host:65536", "host:-1"}) {
    EXPECT_FALSE(ParseAddress("--listen", address, &host, &port).ok()) << address;
  }
}

}  // namespace
}  // namespace stagecoach
