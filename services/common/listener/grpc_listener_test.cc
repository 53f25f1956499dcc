// The listener as strangers meet it: too many of them, and no descriptors.
#include "services/common/listener/grpc_listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/testing/manual_clock.h"
#include "services/common/listener/self_dial.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

// Takes connections, greets them and holds them, as a server would.
class HeldConnections {
 public:
  ~HeldConnections() {
    for (const int one : held_) close(one);
  }
  void Take(int descriptor) {
    const char greeting = '\0';
    EXPECT_EQ(send(descriptor, &greeting, 1, MSG_NOSIGNAL), 1);
    std::lock_guard<std::mutex> lock(mutex_);
    held_.push_back(descriptor);
    changed_.notify_all();
  }
  bool Await(size_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return held_.size() >= count; });
  }
  void CloseOne() {
    std::lock_guard<std::mutex> lock(mutex_);
    close(held_.back());
    held_.pop_back();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> held_;
};

// A socket of a stranger.
class Stranger {
 public:
  Stranger() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    CHECK(socket_ >= 0) << "no socket";
    const timeval patience = {20, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }
  ~Stranger() { close(socket_); }
  Stranger(const Stranger&) = delete;
  void Connect(const GrpcListener& listener) {
    CHECK_EQ(
        connect(socket_, reinterpret_cast<const sockaddr*>(&listener.reach()), sizeof(sockaddr_in)),
        0);
  }
  // Or greeted; waits for it. A reset is a close too.
  bool IsSentAway() {
    char byte;
    const ssize_t count = recv(socket_, &byte, 1, 0);
    return count == 0 || (count < 0 && errno == ECONNRESET);
  }

 private:
  const int socket_;
};

class GrpcListenerTest : public ::testing::Test {
 protected:
  void Start(const ConnectionLimits& limits, const std::string& listen = "127.0.0.1:0") {
    absl::StatusOr<ListenSockets> sockets = ListenSockets::Open(listen, 10000);
    ASSERT_TRUE(sockets.ok()) << sockets.status();
    listener_ = std::make_unique<GrpcListener>(*std::move(sockets), limits, &clock_);
    listener_->Start([this](int descriptor, int) { held_.Take(descriptor); });
  }
  std::string Metrics() {
    MetricWriter writer;
    listener_->Write(writer);
    return writer.Text();
  }

  ManualClock clock_{1'000'000'000};
  HeldConnections held_;
  std::unique_ptr<GrpcListener> listener_;
};

TEST_F(GrpcListenerTest, WhoIsOneTooManyIsSentAwayUntilThereIsRoom) {
  Start({.most = 2, .most_per_peer = 1});
  Stranger first, second, third, fourth;
  first.Connect(*listener_);
  second.Connect(*listener_);
  ASSERT_TRUE(held_.Await(2));
  third.Connect(*listener_);
  EXPECT_TRUE(third.IsSentAway());
  EXPECT_THAT(Metrics(), HasSubstr("stagecoach_grpc_connections 2"));
  EXPECT_THAT(Metrics(), HasSubstr("connections_refused_total{reason=\"total\"} 1"));
  held_.CloseOne();
  clock_.AdvanceNanos(200'000'000);  // the place is noticed with the next look
  fourth.Connect(*listener_);
  EXPECT_TRUE(held_.Await(2));
}

// A flood of strangers fills the line before the server, and its own dial has to wait there.
TEST_F(GrpcListenerTest, WhoRefusesOthersAllTheTimeIsNotDead) {
  Start({.most = 1});
  EXPECT_FALSE(listener_->BusyWithOthers());
  Stranger only;
  only.Connect(*listener_);
  ASSERT_TRUE(held_.Await(1));
  sockaddr_storage own{};
  own.ss_family = AF_INET;
  listener_->Expect(own);  // and does not come
  clock_.AdvanceNanos(2'000'000'000);
  EXPECT_FALSE(listener_->BusyWithOthers()) << "nobody came lately";
  Stranger refused;
  refused.Connect(*listener_);
  EXPECT_TRUE(refused.IsSentAway());
  EXPECT_TRUE(listener_->BusyWithOthers());
  EXPECT_EQ(SelfDial(listener_->reach(), std::nullopt,
                     [&](const sockaddr_storage& from) { listener_->Expect(from); }),
            absl::OkStatus());
  EXPECT_FALSE(listener_->BusyWithOthers()) << "it has met its own";
}

// In a container, whose loopback had no ::1, a server on all addresses took itself for dead and
// ended.
TEST_F(GrpcListenerTest, OnAllAddressesAServerReachesItselfByIpv4AlsoWhenItIsFull) {
  for (const char* listen : {"0.0.0.0:0", "[::]:0"}) {
    Start({.most = 1}, listen);
    EXPECT_EQ(listener_->reach().ss_family, AF_INET) << listen;
    Stranger only;
    only.Connect(*listener_);
    ASSERT_TRUE(held_.Await(1));
    EXPECT_EQ(SelfDial(listener_->reach(), std::nullopt,
                       [&](const sockaddr_storage& from) { listener_->Expect(from); }),
              absl::OkStatus())
        << listen;
    listener_->Stop();
    held_.CloseOne();
    held_.CloseOne();
  }
}

// gRPC's own listener stopped for ever then (upstream issue 20418).
TEST_F(GrpcListenerTest, WithoutADescriptorItSendsAwayAndGoesOn) {
  Start({});
  std::vector<std::unique_ptr<Stranger>> strangers;
  for (int i = 0; i < 100; ++i) strangers.push_back(std::make_unique<Stranger>());
  Stranger later;
  // All numbers below the first free one are in use: the process may open nothing more.
  const int first_free = dup(STDIN_FILENO);
  ASSERT_GE(first_free, 0);
  close(first_free);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low = {static_cast<rlim_t>(first_free), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  int sent_away = 0;
  for (const auto& stranger : strangers) {
    stranger->Connect(*listener_);
    sent_away += stranger->IsSentAway() ? 1 : 0;
  }
  // What tests before this one left to gRPC may still give some back.
  EXPECT_GT(sent_away, 50);
  EXPECT_THAT(Metrics(), HasSubstr(absl::StrCat(
                             "connections_refused_total{reason=\"descriptors\"} ", sent_away)));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  later.Connect(*listener_);
  EXPECT_FALSE(later.IsSentAway());
}

TEST_F(GrpcListenerTest, AfterStopNobodyListens) {
  Start({});
  listener_->Stop();
  const int late = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_NE(
      connect(late, reinterpret_cast<const sockaddr*>(&listener_->reach()), sizeof(sockaddr_in)),
      0);
  close(late);
}

TEST(ListenSockets, APortOfAnotherIsRefusedByNameOnAnyOfTheAddresses) {
  const absl::StatusOr<ListenSockets> first = ListenSockets::Open("localhost:0", 10000);
  ASSERT_TRUE(first.ok()) << first.status();
  for (const char* host : {"127.0.0.1", "localhost", "0.0.0.0", "[::]"}) {
    const std::string address = std::string(host) + ":" + std::to_string(first->port());
    const auto second = ListenSockets::Open(address, 10000);
    EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable) << address;
    EXPECT_THAT(std::string(second.status().message()),
                ::testing::AllOf(HasSubstr(address), HasSubstr("is the port taken?")));
  }
  EXPECT_FALSE(ListenSockets::Open("no.such.host.invalid:0", 10000).ok());
}

TEST(ListenSockets, EveryAddressOfTheMachineIsReachedThroughLoopback) {
  const absl::StatusOr<ListenSockets> sockets = ListenSockets::Open("0.0.0.0:0", 10000);
  ASSERT_TRUE(sockets.ok()) << sockets.status();
  const sockaddr_storage reach = sockets->Reach();
  const int dialed = socket(reach.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(connect(dialed, reinterpret_cast<const sockaddr*>(&reach), sizeof(reach)), 0);
  close(dialed);
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(static_cast<uint16_t>(sockets->port()));
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int plain = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(connect(plain, reinterpret_cast<const sockaddr*>(&v4), sizeof(v4)), 0);
  close(plain);
}

}  // namespace
}  // namespace stagecoach
