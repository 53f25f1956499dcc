#include "services/common/listener/self_dial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "services/common/grpc/grpc_server.h"
#include "services/common/listener/grpc_listener.h"
#include "services/common/listener/listen_sockets.h"
#include "services/common/tls/certificates_testing.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

sockaddr_storage Loopback(int port) {
  sockaddr_storage storage{};
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&storage);
  v4->sin_family = AF_INET;
  v4->sin_port = htons(static_cast<uint16_t>(port));
  v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return storage;
}

absl::Status Dial(int port, const std::optional<TlsPems>& pems = std::nullopt) {
  signal(SIGPIPE, SIG_IGN);  // as PrepareProcess does
  int told = 0;
  const absl::Status answer = SelfDial(Loopback(port), pems, [&](const sockaddr_storage& from) {
    told = ntohs(reinterpret_cast<const sockaddr_in&>(from).sin_port);
  });
  EXPECT_GT(told, 0) << "where it comes from is known before";
  return answer;
}

std::unique_ptr<GrpcServer> Serve(const TlsFlags& tls) {
  GrpcServerOptions options;
  options.listen = "127.0.0.1:0";
  options.tls = tls;
  auto server =
      std::make_unique<GrpcServer>(options, std::vector<GrpcServer::NamedService>{}, nullptr);
  EXPECT_TRUE(server->Start().ok());
  return server;
}

TEST(SelfDial, AServerAnswersWithAndWithoutTls) {
  const auto plain = Serve({});
  EXPECT_EQ(Dial(plain->port()), absl::OkStatus());
  TestAuthority authority;
  const TlsFlags tls = authority.IssueRole("stage", "stage-0");
  const auto secure = Serve(tls);
  EXPECT_EQ(Dial(secure->port(), ReadPems(tls).value()), absl::OkStatus());
}

// Its own certificate may have expired: a new process would have the same one.
TEST(SelfDial, AServerThatRefusesTheCertificateHasAnswered) {
  TestAuthority authority;
  const TlsFlags tls = authority.IssueRole("stage", "stage-0");
  const auto secure = Serve(tls);
  TlsPems without = ReadPems(tls).value();
  without.cert.clear();
  without.key.clear();
  EXPECT_EQ(Dial(secure->port(), without), absl::OkStatus());
}

TEST(SelfDial, APortThatListensAndSaysNothingIsDead) {
  const absl::StatusOr<ListenSockets> mute = ListenSockets::Open("127.0.0.1:0", 10000);
  ASSERT_TRUE(mute.ok()) << mute.status();
  EXPECT_THAT(std::string(Dial(mute->port()).message()),
              HasSubstr("HTTP/2: nothing within two seconds"));
  EXPECT_THAT(std::string(Dial(mute->port(), TlsPems{}).message()),
              HasSubstr("TLS handshake: nothing within two seconds"));
}

TEST(SelfDial, APortOfNobodyIsDead) {
  // Bound, so that nobody is given it meanwhile, not even the socket that dials; and not listening.
  const int bound = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_storage at = Loopback(0);
  socklen_t length = sizeof(sockaddr_in);
  ASSERT_EQ(bind(bound, reinterpret_cast<const sockaddr*>(&at), length), 0);
  ASSERT_EQ(getsockname(bound, reinterpret_cast<sockaddr*>(&at), &length), 0);
  const int port = ntohs(reinterpret_cast<const sockaddr_in&>(at).sin_port);
  EXPECT_THAT(std::string(Dial(port).message()), HasSubstr("connect: Connection refused"));
  close(bound);
}

// The story: a process that had no descriptor left for half a minute took its port for dead, and
// ended.
TEST(SelfDial, WithoutADescriptorOfItsOwnItSaysNothingOfThePort) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  // Not one more, whatever gRPC gives back of the tests before this one.
  const rlimit none = {0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::Status answer = SelfDial(Loopback(1), std::nullopt, [](const sockaddr_storage&) {});
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(answer, absl::OkStatus()) << "nobody listens there, and nobody asked";
}

// Or strangers who hold all its places could end the server by having it hold itself for dead.
// Those who come all the time are grpc_listener_test.cc's.
TEST(SelfDial, AServerThatIsFullAnswersItself) {
  absl::StatusOr<ListenSockets> sockets = ListenSockets::Open("127.0.0.1:0", 10000);
  ASSERT_TRUE(sockets.ok()) << sockets.status();
  GrpcListener listener(*std::move(sockets), {.most = 1, .most_per_peer = 1});
  std::vector<int> held;
  listener.Start([&held](int descriptor, int) {
    const char first = '\0';
    EXPECT_EQ(send(descriptor, &first, 1, MSG_NOSIGNAL), 1);
    held.push_back(descriptor);
  });
  const auto ignore = [](const sockaddr_storage&) {};
  const auto expect = [&](const sockaddr_storage& from) { listener.Expect(from); };
  EXPECT_EQ(SelfDial(listener.reach(), std::nullopt, ignore), absl::OkStatus());
  EXPECT_FALSE(SelfDial(listener.reach(), std::nullopt, ignore).ok()) << "there is one";
  EXPECT_EQ(SelfDial(listener.reach(), std::nullopt, expect), absl::OkStatus());
  listener.Stop();
  for (const int one : held) close(one);
}

}  // namespace
}  // namespace stagecoach
