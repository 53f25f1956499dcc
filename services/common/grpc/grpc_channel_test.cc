#include "services/common/grpc/grpc_channel.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>

#include "absl/strings/str_cat.h"

namespace stagecoach {
namespace {

// A dial had a tenth of a second, for TCP, TLS and the first frame: from a round trip of 40 ms on
// each first one failed, and a load or a snapshot with it.
TEST(MakeControlChannel, ADialHasTimeForADistantPeer) {
  // The kernel answers, and nobody says the first frame.
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length), 0);
  ASSERT_EQ(listen(listener, 8), 0);
  const auto channel = MakeControlChannel(absl::StrCat("127.0.0.1:", ntohs(address.sin_port)),
                                          grpc::InsecureChannelCredentials());
  const auto begin = std::chrono::steady_clock::now();
  grpc_connectivity_state state = channel->GetState(true);
  while (state == GRPC_CHANNEL_IDLE || state == GRPC_CHANNEL_CONNECTING) {
    ASSERT_TRUE(channel->WaitForStateChange(
        state, std::chrono::system_clock::now() + std::chrono::seconds(30)));
    state = channel->GetState(true);
  }
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(state, GRPC_CHANNEL_TRANSIENT_FAILURE);
  EXPECT_GE(took, std::chrono::seconds(1)) << "four round trips of a quarter of a second";
  close(listener);
}

}  // namespace
}  // namespace stagecoach
