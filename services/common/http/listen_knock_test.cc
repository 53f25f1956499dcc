// The story: every program took two seconds to end, since civetweb's thread slept in a poll.
// Whoever polls a listening socket is woken, however the address was written.
#include "services/common/http/listen_knock.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "gtest/gtest.h"

namespace stagecoach {
namespace {

constexpr int kDeadlineMillis = 20000;

class Listener {
 public:
  explicit Listener(bool v6)
      : socket_(::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  ~Listener() {
    if (socket_ >= 0) ::close(socket_);
  }
  // The bound port; nothing where the machine has no such addresses.
  template <typename Address>
  std::optional<int> Bind(Address address) {
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    socklen_t length = sizeof(address);
    if (socket_ < 0 || ::bind(socket_, any, length) != 0 || ::listen(socket_, 8) != 0 ||
        ::getsockname(socket_, any, &length) != 0) {
      return std::nullopt;
    }
    if constexpr (std::is_same_v<Address, sockaddr_in6>) return ntohs(address.sin6_port);
    if constexpr (std::is_same_v<Address, sockaddr_in>) return ntohs(address.sin_port);
  }
  // As the thread that is to be woken does.
  bool Wakes() const {
    pollfd polled{socket_, POLLIN, 0};
    return ::poll(&polled, 1, kDeadlineMillis) == 1;
  }

 private:
  const int socket_;
};

TEST(ListenKnock, WakesWhoPollsALoopbackAddress) {
  Listener listener(false);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::optional<int> port = listener.Bind(address);
  ASSERT_TRUE(port.has_value());
  const ListenKnock knock("127.0.0.1:0", *port);
  EXPECT_TRUE(listener.Wakes());
}

TEST(ListenKnock, WakesWhoPollsEveryAddress) {
  Listener listener(false);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  const std::optional<int> port = listener.Bind(address);
  ASSERT_TRUE(port.has_value());
  const ListenKnock knock("0.0.0.0:8000", *port);
  EXPECT_TRUE(listener.Wakes());
}

TEST(ListenKnock, WakesWhoPollsEveryIpv6Address) {
  Listener listener(true);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  const std::optional<int> port = listener.Bind(address);
  if (!port.has_value()) GTEST_SKIP() << "no IPv6 on this machine";
  const ListenKnock knock("[::]:8000", *port);
  EXPECT_TRUE(listener.Wakes());
}

TEST(ListenKnock, LeavesAnAddressAloneThatItDoesNotUnderstand) {
  const ListenKnock knock("metrics.example:8000", 8000);
}

}  // namespace
}  // namespace stagecoach
