#include "services/common/listener/self_dial.h"

#include <netinet/in.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"

namespace stagecoach {
namespace {

constexpr timeval kDialPatience = {2, 0};

// RFC 9113, 3.4: what a client says first, with an empty SETTINGS frame.
constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
constexpr size_t kPrefaceBytes = sizeof(kPreface) - 1;

class Dialed {
 public:
  explicit Dialed(int family) : descriptor_(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (descriptor_ < 0) return;  // errno says why
    setsockopt(descriptor_, SOL_SOCKET, SO_SNDTIMEO, &kDialPatience, sizeof(kDialPatience));
    setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &kDialPatience, sizeof(kDialPatience));
  }
  ~Dialed() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Dialed(const Dialed&) = delete;
  Dialed& operator=(const Dialed&) = delete;
  int get() const { return descriptor_; }

 private:
  const int descriptor_;
};

absl::Status DialFailed(const char* step) {
  const bool late = errno == EAGAIN || errno == EINPROGRESS;
  return absl::UnavailableError(
      absl::StrCat(step, ": ", late ? "nothing within two seconds" : std::strerror(errno)));
}

socklen_t AddressBytes(const sockaddr_storage& address) {
  return address.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

absl::Status ReadPlain(int dialed) {
  if (send(dialed, kPreface, kPrefaceBytes, MSG_NOSIGNAL) < 0) return DialFailed("HTTP/2");
  char first;
  const ssize_t count = recv(dialed, &first, 1, 0);
  if (count < 0) return DialFailed("HTTP/2");
  return count > 0 ? absl::OkStatus() : absl::UnavailableError("HTTP/2: the connection was closed");
}

}  // namespace

absl::Status SelfDial(const sockaddr_storage& to, const std::optional<TlsPems>& pems,
                      const std::function<void(const sockaddr_storage&)>& expect) {
  const Dialed dialed(to.ss_family);
  if (dialed.get() < 0) {
    // What this process cannot have for itself says nothing of the port either.
    const bool none_left =
        errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    return none_left ? absl::OkStatus() : DialFailed("socket");
  }
  // From where it goes to, so that it is known before it comes.
  sockaddr_storage from = to;
  reinterpret_cast<sockaddr_in*>(&from)->sin_port = 0;  // at the same place for IPv6
  socklen_t length = AddressBytes(to);
  if (bind(dialed.get(), reinterpret_cast<const sockaddr*>(&from), length) != 0 ||
      getsockname(dialed.get(), reinterpret_cast<sockaddr*>(&from), &length) != 0) {
    return absl::OkStatus();  // an address that is not this machine's now says nothing of the port
  }
  expect(from);
  if (connect(dialed.get(), reinterpret_cast<const sockaddr*>(&to), AddressBytes(to)) != 0) {
    return DialFailed("connect");
  }
  if (!pems.has_value()) return ReadPlain(dialed.get());
  return ShakeHands(dialed.get(), *pems, std::string(kPreface, kPrefaceBytes));
}

}  // namespace stagecoach
