// grpc.health.v1 of a server that is polled for by a queue, where gRPC's own service is not used.
#include "services/common/grpc/health_service.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/threads/thread.h"
#include "services/common/grpc/grpc_channel.h"
#include "services/common/grpc/grpc_server.h"

namespace stagecoach {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

HealthCheckRequest Ask(const std::string& service) {
  HealthCheckRequest request;
  request.set_service(service);
  return request;
}

class HealthServiceTest : public ::testing::Test {
 protected:
  // A stream of Watch, as a client sees it.
  struct Watcher {
    Watcher(Health::Stub& stub, const std::string& service) {
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
      reader = stub.Watch(&context, Ask(service));
    }
    // -1: no more.
    int Next() {
      HealthCheckResponse response;
      return reader->Read(&response) ? static_cast<int>(response.status()) : -1;
    }
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<HealthCheckResponse>> reader;
  };

  void SetUp() override {
    GrpcServerOptions options;
    options.listen = "127.0.0.1:0";
    options.take_queue = [this](std::unique_ptr<grpc::ServerCompletionQueue> queue) {
      queue_ = std::move(queue);
      poller_ = Thread("poller", [this] {
        void* tag = nullptr;
        bool ok = false;
        while (queue_->Next(&tag, &ok)) {
        }
      });
    };
    server_ =
        std::make_unique<GrpcServer>(options, std::vector<GrpcServer::NamedService>{}, nullptr);
    ASSERT_TRUE(server_->Start().ok());
    const auto channel = MakeControlChannel(absl::StrCat("127.0.0.1:", server_->port()),
                                            grpc::InsecureChannelCredentials());
    // On a busy machine its first attempt may be too slow, and a call that came with it would fail.
    ASSERT_TRUE(
        channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(20)));
    stub_ = Health::NewStub(channel);
  }

  void TearDown() override {
    server_->Shutdown(0);
    queue_->Shutdown();
    poller_.Join();
  }

  std::pair<grpc::StatusCode, int> Check(const std::string& service) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    HealthCheckResponse response;
    const grpc::Status status = stub_->Check(&context, Ask(service), &response);
    return {status.error_code(), response.status()};
  }

  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  Thread poller_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<Health::Stub> stub_;
};

TEST_F(HealthServiceTest, ChecksFollowServing) {
  using Answer = std::pair<grpc::StatusCode, int>;
  const Answer serving{grpc::StatusCode::OK, HealthCheckResponse::SERVING};
  const Answer not_serving{grpc::StatusCode::OK, HealthCheckResponse::NOT_SERVING};
  EXPECT_EQ(Check(""), not_serving);
  EXPECT_EQ(Check("liveness"), serving);
  server_->SetServing(true);
  EXPECT_EQ(Check(""), serving);
  EXPECT_EQ(Check("readiness"), serving);
  EXPECT_EQ(Check("nobody").first, grpc::StatusCode::NOT_FOUND);
}

TEST_F(HealthServiceTest, WatchersHearOfEveryChangeAndOfTheEnd) {
  Watcher all(*stub_, ""), nobody(*stub_, "nobody");
  EXPECT_EQ(all.Next(), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(nobody.Next(), HealthCheckResponse::SERVICE_UNKNOWN);
  server_->SetServing(true);
  EXPECT_EQ(all.Next(), HealthCheckResponse::SERVING);
  server_->SetServing(false);
  EXPECT_EQ(all.Next(), HealthCheckResponse::NOT_SERVING);
  server_->Shutdown(20);
  EXPECT_EQ(all.Next(), -1);
  EXPECT_EQ(all.reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(HealthServiceTest, WatchersAreLimitedAndLeaveTheirPlace) {
  std::vector<std::unique_ptr<Watcher>> watchers;
  for (int i = 0; i < HealthService::kMaxWatchers; ++i) {
    watchers.push_back(std::make_unique<Watcher>(*stub_, ""));
    EXPECT_EQ(watchers.back()->Next(), HealthCheckResponse::NOT_SERVING);
  }
  Watcher more(*stub_, "");
  EXPECT_EQ(more.Next(), -1);
  EXPECT_EQ(more.reader->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Check("liveness").first, grpc::StatusCode::OK);
  watchers.front()->context.TryCancel();
  watchers.front()->reader->Finish();
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  int first = -1;
  while (first == -1 && std::chrono::steady_clock::now() < patience) {
    first = Watcher(*stub_, "").Next();
  }
  EXPECT_EQ(first, HealthCheckResponse::NOT_SERVING) << "the place of one that went is free";
}

}  // namespace
}  // namespace stagecoach
