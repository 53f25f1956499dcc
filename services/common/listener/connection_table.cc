#include "services/common/listener/connection_table.h"

#include <netinet/in.h>
#include <sys/stat.h>

#include <cstring>

namespace stagecoach {
namespace {

// 0: no socket, or closed.
ino_t SocketInode(int descriptor) {
  struct stat found {};
  return fstat(descriptor, &found) == 0 && S_ISSOCK(found.st_mode) ? found.st_ino : 0;
}

std::string KeyOf(const in_addr& address) {
  if ((ntohl(address.s_addr) >> 24) == IN_LOOPBACKNET) return "";
  return std::string(reinterpret_cast<const char*>(&address), sizeof(address));
}

}  // namespace

std::string PeerKey(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &address, sizeof(v4));
    return KeyOf(v4.sin_addr);
  }
  if (address.ss_family != AF_INET6) return "";
  sockaddr_in6 v6;
  std::memcpy(&v6, &address, sizeof(v6));
  if (IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr)) return "";
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    in_addr v4;
    std::memcpy(&v4, v6.sin6_addr.s6_addr + 12, sizeof(v4));
    return KeyOf(v4);
  }
  return std::string(reinterpret_cast<const char*>(v6.sin6_addr.s6_addr), 8);
}

ConnectionTable::Answer ConnectionTable::Ask(const std::string& peer) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto full = [&] { return connections_.size() >= static_cast<size_t>(limits_.most); };
  if (full()) LookLocked(nullptr, &vain_seconds_);
  if (full()) return Answer::kTooMany;
  const auto peer_full = [&] {
    const auto found = by_peer_.find(peer);
    return found != by_peer_.end() && found->second.connections >= limits_.most_per_peer;
  };
  if (peer_full()) LookLocked(&peer, &by_peer_[peer].vain_seconds);
  return peer_full() ? Answer::kTooManyOfPeer : Answer::kWelcome;
}

void ConnectionTable::Add(int descriptor, const std::string& peer) {
  const ino_t inode = SocketInode(descriptor);
  std::lock_guard<std::mutex> lock(mutex_);
  Connection& entry = connections_[descriptor];
  // The kernel gave this number out again, so what had it before is closed.
  ForgetOneLocked(entry.peer);
  entry = {inode, peer};
  if (!peer.empty()) ++by_peer_[peer].connections;
}

int ConnectionTable::open() {
  std::lock_guard<std::mutex> lock(mutex_);
  SweepLocked(nullptr);
  return static_cast<int>(connections_.size());
}

void ConnectionTable::LookLocked(const std::string* peer, double* vain_seconds) {
  const double now = clock_->MonotonicSeconds();
  if (now < *vain_seconds + kSecondsBetweenLooks) return;
  // A peer of which one was closed may be forgotten as a whole, and its stamp with it.
  if (!SweepLocked(peer)) *vain_seconds = now;
}

bool ConnectionTable::SweepLocked(const std::string* peer) {
  bool found = false;
  for (auto at = connections_.begin(); at != connections_.end();) {
    const Connection& entry = at->second;
    const bool asked = peer == nullptr || entry.peer == *peer;
    if (!asked || SocketInode(at->first) == entry.inode) {
      ++at;
      continue;
    }
    ForgetOneLocked(entry.peer);
    at = connections_.erase(at);
    found = true;
  }
  return found;
}

void ConnectionTable::ForgetOneLocked(const std::string& peer) {
  const auto found = by_peer_.find(peer);
  if (found != by_peer_.end() && --found->second.connections == 0) by_peer_.erase(found);
}

}  // namespace stagecoach
