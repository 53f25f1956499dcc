// HttpTestClient: a connection to this machine that sends and reads on command.
// Threads: one.
#ifndef STAGECOACH_SERVICES_COMMON_HTTP_HTTP_CLIENT_TESTING_H_
#define STAGECOACH_SERVICES_COMMON_HTTP_HTTP_CLIENT_TESTING_H_

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"

namespace stagecoach {

class HttpTestClient {
 public:
  static constexpr int kPatienceSeconds = 30;

  // receive_bytes: about the system's receive buffer before it reads; 0: the system's choice.
  explicit HttpTestClient(int port, uint32_t from = INADDR_LOOPBACK, int receive_bytes = 0)
      : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_bytes > 0) {
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(from);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    const timeval patience{kPatienceSeconds, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }
  HttpTestClient(int port, const std::string& head, const std::string& body = "")
      : HttpTestClient(port) {
    const std::string text = absl::StrCat(head, "\r\n\r\n", body);
    EXPECT_TRUE(Send(text));
  }
  ~HttpTestClient() { close(fd_); }
  bool Send(const std::string& text) {
    return send(fd_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  // Whether the other side closes, or sends something, within this time.
  bool Hears(int millis) {
    pollfd polled{fd_, POLLIN, 0};
    return poll(&polled, 1, millis) == 1;
  }
  std::string ReadUntil(const std::string& mark) {
    char buffer[4096];
    while (mark.empty() || text_.find(mark) == std::string::npos) {
      const ssize_t got = read(fd_, buffer, sizeof(buffer));
      if (got <= 0) break;
      text_.append(buffer, static_cast<size_t>(got));
    }
    return text_;
  }
  std::string ReadAll() { return ReadUntil(""); }
  // Counts the bytes to the end. It stores none, so that it does not pause to get memory.
  size_t CountAll() {
    char buffer[4096];
    size_t count = 0;
    for (ssize_t got = 0; (got = read(fd_, buffer, sizeof(buffer))) > 0;) {
      count += static_cast<size_t>(got);
    }
    return count;
  }

 private:
  const int fd_;
  std::string text_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_HTTP_HTTP_CLIENT_TESTING_H_
