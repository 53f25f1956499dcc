// The HTTP server as clients meet it: routes, limits, streams, and what it keeps from other sites.
#include "services/common/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>

#include "absl/strings/str_cat.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A connection that reads when told to.
class Client {
 public:
  Client(int port, const std::string& head, const std::string& body = "")
      : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    const timeval patience{30, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    const std::string text = absl::StrCat(head, "\r\n\r\n", body);
    EXPECT_EQ(send(fd_, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  ~Client() { close(fd_); }
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

 private:
  const int fd_;
  std::string text_;
};

class HttpServerTest : public ::testing::Test {
 protected:
  void Start(HttpOptions options = {}) {
    options.listen = "127.0.0.1:0";
    server_.Handle("/exact", [](const HttpRequest& request) {
      return HttpResponse{.body = absl::StrCat("exact ", QueryValue(request, "a").value_or("-"))};
    });
    server_.HandleBelow("/", [](const HttpRequest& request) {
      return HttpResponse{.body = absl::StrCat("root ", request.method, " ", request.path)};
    });
    server_.HandleBelow("/api/", [](const HttpRequest& request) {
      return HttpResponse{.body = absl::StrCat("api ", request.headers.at("x-mark"))};
    });
    server_.HandleStream(
        "/stream",
        [this](const HttpRequest& request, HttpServer::StreamBody* body) {
          if (request.query == "refuse") return HttpResponse{404, "text/plain", "no such thing"};
          *body = [this](HttpStream& stream) { Stream(stream); };
          return HttpResponse{200, "text/event-stream", ""};
        },
        HttpResponse{503, "text/plain", "too many"});
    ASSERT_TRUE(server_.Start(options).ok());
  }
  void Stream(HttpStream& stream) {
    stream.Write("first\n");
    while (stream.Wait(std::chrono::milliseconds(1))) {
      if (!stream.Write(std::string(1000, 'x'))) return;
    }
    stream.Write("last\n");
  }
  std::string Fetch(const std::string& line, const std::string& more = "") {
    return Client(server_.port(),
                  absl::StrCat(line, " HTTP/1.1\r\nHost: localhost\r\n", "X-Mark: m", more))
        .ReadAll();
  }

  HttpServer server_;
};

TEST_F(HttpServerTest, PicksTheHandlerThatSaysMore) {
  Start();
  EXPECT_THAT(Fetch("GET /exact?a=1%202"), HasSubstr("exact 1 2"));
  EXPECT_THAT(Fetch("GET /api/x"), HasSubstr("api m"));
  EXPECT_THAT(Fetch("GET /apix"), HasSubstr("root GET /apix"));
  EXPECT_THAT(Fetch("DELETE /any"), HasSubstr("root DELETE /any")) << "up to the handler";
  EXPECT_THAT(Fetch("DELETE /exact"), HasSubstr("HTTP/1.1 405"));
  EXPECT_THAT(Fetch("POST /stream"), HasSubstr("HTTP/1.1 405"));
  EXPECT_THAT(Fetch("GET /../../exact"), Not(HasSubstr("passwd")));
}

TEST_F(HttpServerTest, EveryAnswerCarriesTheSecurityHeaders) {
  Start({.max_streams = 1});
  for (const char* line : {"GET /exact", "DELETE /exact", "GET /stream?refuse", "nonsense"}) {
    const std::string answer = Fetch(line);
    EXPECT_THAT(answer, HasSubstr("Content-Security-Policy: default-src 'self';")) << line;
    EXPECT_THAT(answer, Not(HasSubstr("unsafe"))) << line;
    EXPECT_THAT(answer, HasSubstr("X-Content-Type-Options: nosniff")) << line;
    EXPECT_THAT(answer, HasSubstr("X-Frame-Options: DENY")) << line;
  }
}

TEST_F(HttpServerTest, LetsNoOtherSiteIn) {
  Start();
  const std::string preflight =
      Fetch("OPTIONS /api/x",
            "\r\nOrigin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\n"
            "Access-Control-Request-Headers: x-stagecoach-request");
  EXPECT_THAT(preflight, Not(HasSubstr("Access-Control-Allow")));
  const auto fetch_as = [&](const std::string& host) {
    return Client(server_.port(), absl::StrCat("GET /exact HTTP/1.1\r\nHost: ", host)).ReadAll();
  };
  EXPECT_THAT(fetch_as("evil.example"), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(fetch_as("127.0.0.1:8000"), StartsWith("HTTP/1.1 200"));
}

TEST(HttpServer, KnowsItsOwnNames) {
  for (const char* host : {"localhost", "localhost:8000", "LOCALHOST", "page.localhost:1",
                           "127.0.0.1", "10.1.2.3:80", "[::1]:8000", "box.lan:8000", ""}) {
    EXPECT_TRUE(IsOwnHost(host, {"box.lan"})) << host;
  }
  for (const char* host : {"evil.example", "evil.example:8000", "localhost.evil.example",
                           "127.0.0.1.evil.example", "notlocalhost", "1.2.3"}) {
    EXPECT_FALSE(IsOwnHost(host, {"box.lan"})) << host;
  }
}

TEST_F(HttpServerTest, RefusesRequestsThatAreTooLargeAndLivesOn) {
  Start();
  EXPECT_THAT(Fetch("GET /exact", absl::StrCat("\r\nX-Long: ", std::string(20000, 'a'))),
              StartsWith("HTTP/1.1 4"));
  const auto post = [&](const std::string& headers, const std::string& body) {
    return Client(server_.port(),
                  absl::StrCat("POST /any HTTP/1.1\r\nHost: localhost\r\n", headers), body)
        .ReadUntil("\r\n");
  };
  EXPECT_THAT(post("Content-Length: 1000000000", "x"), StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(post("Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\n\r\n"),
              StartsWith("HTTP/1.1 411"));
  EXPECT_THAT(post("Content-Length: 60000", std::string(60000, 'x')), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Fetch("GET /exact"), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, APortThatIsTakenIsNamedWithWhatToDo) {
  Start();
  HttpServer second;
  HttpOptions options;
  options.listen = absl::StrCat("127.0.0.1:", server_.port());
  const absl::Status status = second.Start(options);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr(options.listen));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--http"));
}

TEST_F(HttpServerTest, HasSoManyStreamsAndNoMore) {
  Start({.threads = 2, .max_streams = 2});
  const std::string get = "GET /stream HTTP/1.1\r\nHost: localhost";
  auto first = std::make_unique<Client>(server_.port(), get);
  EXPECT_THAT(first->ReadUntil("first\n"), HasSubstr("Content-Type: text/event-stream"));
  Client second(server_.port(), get);
  second.ReadUntil("first\n");
  EXPECT_EQ(server_.streams(), 2);
  EXPECT_THAT(Fetch("GET /stream"), HasSubstr("too many"));
  EXPECT_THAT(Fetch("GET /exact"), StartsWith("HTTP/1.1 200")) << "others are still served";
  first.reset();  // noticed at the next write
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (server_.streams() == 2 && std::chrono::steady_clock::now() < until) sched_yield();
  EXPECT_LT(server_.streams(), 2);
}

TEST_F(HttpServerTest, StopEndsStreamsWithTheirLastWord) {
  Start({.max_streams = 2});
  Client reader(server_.port(), "GET /stream HTTP/1.1\r\nHost: localhost");
  reader.ReadUntil("first\n");
  Client idle(server_.port(), "GET /stream HTTP/1.1\r\nHost: localhost");  // never reads
  idle.ReadUntil("first\n");
  const auto before = std::chrono::steady_clock::now();
  server_.Stop();
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(8));
  EXPECT_THAT(reader.ReadAll(), HasSubstr("last\n"));
}

}  // namespace
}  // namespace stagecoach
