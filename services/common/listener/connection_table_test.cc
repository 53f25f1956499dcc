#include "services/common/listener/connection_table.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "base/testing/manual_clock.h"

namespace stagecoach {
namespace {

using Answer = ConnectionTable::Answer;

sockaddr_storage AddressFrom(const std::string& address) {
  sockaddr_storage storage{};
  if (address.find(':') == std::string::npos) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    EXPECT_EQ(inet_pton(AF_INET, address.c_str(), &v4.sin_addr), 1) << address;
    std::memcpy(&storage, &v4, sizeof(v4));
  } else {
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    EXPECT_EQ(inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr), 1) << address;
    std::memcpy(&storage, &v6, sizeof(v6));
  }
  return storage;
}

int NewSocket() { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }

// So that the table looks again.
void PassALook(ManualClock* clock) {
  clock->AdvanceNanos(static_cast<int64_t>(ConnectionTable::kSecondsBetweenLooks * 1.1e9));
}

TEST(ConnectionTable, AClosedConnectionMakesRoomAlsoWhereItsNumberIsInUseAgain) {
  ManualClock clock;
  ConnectionTable table({.most = 2, .most_per_peer = 2}, &clock);
  const int first = NewSocket(), second = NewSocket();
  table.Add(first, "a");
  table.Add(second, "b");
  EXPECT_EQ(table.Ask("c"), Answer::kTooMany);
  close(second);
  const int other = NewSocket();
  ASSERT_EQ(other, second) << "the kernel gives the lowest free number";
  PassALook(&clock);
  EXPECT_EQ(table.Ask("c"), Answer::kWelcome);
  EXPECT_EQ(table.open(), 1);
  table.Add(other, "c");
  EXPECT_EQ(table.Ask("d"), Answer::kTooMany);
  close(first);
  close(other);
  EXPECT_EQ(table.open(), 0);
}

TEST(ConnectionTable, AnAddressHasItsShareAndLoopbackNone) {
  ManualClock clock;
  ConnectionTable table({.most = 10, .most_per_peer = 1}, &clock);
  const int one = NewSocket(), two = NewSocket(), three = NewSocket();
  table.Add(one, "a");
  EXPECT_EQ(table.Ask("a"), Answer::kTooManyOfPeer);
  EXPECT_EQ(table.Ask("b"), Answer::kWelcome);
  table.Add(two, "");
  table.Add(three, "");
  EXPECT_EQ(table.Ask(""), Answer::kWelcome) << "loopback counts in all only";
  close(one);
  PassALook(&clock);
  EXPECT_EQ(table.Ask("a"), Answer::kWelcome);
  // A number that was given out again counts for its new owner.
  const int again = NewSocket();
  ASSERT_EQ(again, one);
  table.Add(again, "b");
  EXPECT_EQ(table.Ask("a"), Answer::kWelcome);
  EXPECT_EQ(table.Ask("b"), Answer::kTooManyOfPeer);
  for (const int socket : {again, two, three}) close(socket);
}

// The story: each refusal of a full server looked at all its descriptors, a thousand of them a
// second kept its one accepting thread from its own dial, and it ended for being dead.
TEST(ConnectionTable, WhoIsRefusedCausesNoLookAfterALookInVain) {
  ManualClock clock;
  ConnectionTable table({.most = 3, .most_per_peer = 1}, &clock);
  const int a = NewSocket(), b = NewSocket(), c = NewSocket();
  table.Add(a, "a");
  table.Add(b, "b");
  EXPECT_EQ(table.Ask("a"), Answer::kTooManyOfPeer) << "looked at a's in vain";
  EXPECT_EQ(table.Ask("b"), Answer::kTooManyOfPeer) << "and at b's";
  close(a);
  EXPECT_EQ(table.Ask("a"), Answer::kTooManyOfPeer) << "known without a look";
  PassALook(&clock);
  EXPECT_EQ(table.Ask("a"), Answer::kWelcome);
  const int again = NewSocket();
  table.Add(again, "a");
  table.Add(c, "c");
  EXPECT_EQ(table.Ask("d"), Answer::kTooMany) << "looked at all in vain";
  close(b);
  EXPECT_EQ(table.Ask("d"), Answer::kTooMany) << "known without a look";
  PassALook(&clock);
  EXPECT_EQ(table.Ask("d"), Answer::kWelcome);
  for (const int socket : {again, c}) close(socket);
}

TEST(ConnectionTable, ANeighbourhoodOfIpv6IsOnePeer) {
  EXPECT_EQ(PeerKey(AddressFrom("2001:db8:1:2::3")), PeerKey(AddressFrom("2001:db8:1:2:ffff::4")));
  EXPECT_NE(PeerKey(AddressFrom("2001:db8:1:2::3")), PeerKey(AddressFrom("2001:db8:1:3::3")));
  EXPECT_EQ(PeerKey(AddressFrom("::ffff:10.0.0.1")), PeerKey(AddressFrom("10.0.0.1")));
  EXPECT_NE(PeerKey(AddressFrom("10.0.0.2")), PeerKey(AddressFrom("10.0.0.1")));
  for (const char* loopback : {"127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_EQ(PeerKey(AddressFrom(loopback)), "") << loopback;
  }
}

}  // namespace
}  // namespace stagecoach
