#include "services/common/http/listen_knock.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

namespace stagecoach {
namespace {

// Between two knocks: one that comes before the flag is set wakes for nothing.
constexpr std::chrono::milliseconds kPause(10);

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;  // 0: not understood
};

// Where a socket that listens so is reached from here: a wildcard through loopback.
Address Reach(const std::string& listen, int port) {
  Address address;
  const std::string host = listen.substr(0, listen.rfind(':'));
  if (host.size() > 2 && host.front() == '[') {
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(static_cast<uint16_t>(port));
    if (inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &v6.sin6_addr) != 1) {
      return address;
    }
    if (IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr)) v6.sin6_addr = in6addr_loopback;
    std::memcpy(&address.storage, &v6, address.length = sizeof(v6));
    return address;
  }
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(static_cast<uint16_t>(port));
  if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) != 1) return address;
  if (v4.sin_addr.s_addr == htonl(INADDR_ANY)) v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::memcpy(&address.storage, &v4, address.length = sizeof(v4));
  return address;
}

void Knock(const Address& address) {
  const int socket =
      ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket < 0) return;
  // In progress is enough: the other side's poll sees the connection whether or not we stay.
  (void)::connect(socket, reinterpret_cast<const sockaddr*>(&address.storage), address.length);
  ::close(socket);
}

}  // namespace

ListenKnock::ListenKnock(const std::string& listen, int port) {
  const Address address = Reach(listen, port);
  if (address.length == 0) return;
  thread_ = std::thread([this, address] {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!ending_) {
      lock.unlock();
      Knock(address);
      lock.lock();
      changed_.wait_for(lock, kPause, [this] { return ending_; });
    }
  });
}

ListenKnock::~ListenKnock() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

}  // namespace stagecoach
