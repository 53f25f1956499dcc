// Fixture for tests of links over loopback: a server with the connector's service, and a second
// connector that dials it.
#ifndef STAGECOACH_STAGE_LINK_GRPC_GRPC_LINK_TESTING_H_
#define STAGECOACH_STAGE_LINK_GRPC_GRPC_LINK_TESTING_H_

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "stage/link/grpc/grpc_link_connector.h"
#include "stage/link/grpc/rpc_loop.h"

namespace stagecoach {

inline constexpr auto kPatience = std::chrono::seconds(20);

// Waits for a condition on links, woken by their ready callbacks.
class Bell {
 public:
  std::function<void()> Rope() {
    return [this] {
      {
        std::lock_guard<std::mutex> lock(mutex_);
        ++rings_;
      }
      rung_.notify_all();
    };
  }

  template <typename Condition>
  bool WaitFor(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (true) {
      uint64_t seen = 0;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        seen = rings_;
      }
      if (condition()) return true;
      std::unique_lock<std::mutex> lock(mutex_);
      if (!rung_.wait_until(lock, deadline, [&] { return rings_ != seen; })) return false;
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable rung_;
  uint64_t rings_ = 0;
};

struct LinkServer {
  explicit LinkServer(const GrpcLinkConnector::Options& options,
                      const std::shared_ptr<grpc::ServerCredentials>& credentials =
                          grpc::InsecureServerCredentials())
      : connector(options) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", credentials, &port);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.RegisterService(connector.service());
    loop = std::make_unique<RpcLoop>(builder.AddCompletionQueue());
    server = builder.BuildAndStart();
    connector.Serve(loop.get());
  }
  ~LinkServer() {
    connector.Shutdown();
    server->Shutdown(std::chrono::system_clock::now() + kPatience);
    server->Wait();
    loop->Stop();
  }
  std::string address() const { return absl::StrCat("127.0.0.1:", port); }

  GrpcLinkConnector connector;
  std::unique_ptr<RpcLoop> loop;
  std::unique_ptr<grpc::Server> server;
  int port = 0;
};

class GrpcLinkTest : public ::testing::Test {
 protected:
  // More room than stages give, so that several messages are on their way.
  GrpcLinkTest() { options_.link = {.capacity_messages = 4, .chunk_bytes = 256 << 10}; }
  // Links are destroyed before the objects that they borrow.
  ~GrpcLinkTest() override {
    up_.reset();
    down_.reset();
  }

  void Start() {
    server_ = std::make_unique<LinkServer>(options_);
    dialler_ = std::make_unique<GrpcLinkConnector>(options_);
  }

  void Connect() {
    Start();
    down_ = server_->connector.Accept(boundary_, "", *allocator_, kAnyMessageBytes);
    up_ = dialler_->Dial(server_->address(), boundary_, *allocator_, kAnyMessageBytes);
    Hear();
  }

  void Hear() {
    if (up_ != nullptr) up_->SetReadyCallback(bell_.Rope());
    if (down_ != nullptr) down_->SetReadyCallback(bell_.Rope());
  }

  TensorMessage Message(MessageKind kind, int micro_batch, int64_t elements) {
    TensorMessage message;
    message.kind = kind;
    message.fence = {boundary_.job, boundary_.term, boundary_.generation, 7, 1};
    message.micro_batch = MicroBatchId(micro_batch);
    Tensor tensor =
        *MakeTensor(*allocator_, MemoryKind::kActivations, DType::kF32, Shape{elements});
    for (int64_t i = 0; i < elements; ++i) {
      tensor.data<float>()[i] = static_cast<float>(i % 1009 + micro_batch);
    }
    message.tensors.push_back(std::move(tensor));
    return message;
  }

  std::optional<TensorMessage> Receive(Link& link) {
    std::optional<TensorMessage> message;
    bell_.WaitFor([&] {
      message = link.TryReceive();
      return message.has_value() || !link.status().ok();
    });
    return message;
  }

  static bool Holds(const TensorMessage& message, int64_t elements) {
    const float* const data = message.tensors.at(0).data<float>();
    for (int64_t i = 0; i < elements; ++i) {
      if (data[i] != static_cast<float>(i % 1009 + message.micro_batch.value)) return false;
    }
    return message.tensors[0].elements() == elements;
  }

  absl::Status WaitClosed(Link& link) {
    bell_.WaitFor([&] { return !link.status().ok(); });
    return link.status();
  }

  // Whether gRPC has released every slice of our tensors. It ends calls and connections on threads
  // of its own too, which nobody can join. Such a thread may end a moment after all our own
  // objects.
  bool AllMemoryComesBack() {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (allocator_->Use().total_current != 0) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }

  const std::unique_ptr<Allocator> allocator_ = MakeHostAllocator(0);
  GrpcLinkConnector::Options options_;
  BoundaryId boundary_{"job-a", 1, 2, CellId(0)};
  Bell bell_;
  std::unique_ptr<LinkServer> server_;
  std::unique_ptr<GrpcLinkConnector> dialler_;
  std::unique_ptr<Link> up_, down_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LINK_GRPC_GRPC_LINK_TESTING_H_
