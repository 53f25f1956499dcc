// The HTTP server as clients meet it: routes, limits, streams, and what it keeps from other sites.
#include "services/common/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/hash.h"
#include "base/testing/temporary_folder.h"
#include "services/common/http/http_client_testing.h"
#include "services/common/http/http_gate.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using Client = HttpTestClient;
constexpr int kPatienceSeconds = HttpTestClient::kPatienceSeconds;

class HttpServerTest : public ::testing::Test {
 protected:
  void Start(HttpOptions options = {}) {
    if (options.listen.empty()) options.listen = "127.0.0.1:0";
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

  // Until it is so, or for half a minute.
  static bool Soon(const std::function<bool()>& so) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(kPatienceSeconds);
    while (!so() && std::chrono::steady_clock::now() < until) sched_yield();
    return so();
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
  EXPECT_THAT(Fetch("GET /../%2e%2e/exact"), HasSubstr("root GET /../../exact"))
      << "no path is made shorter behind the back of the handler";
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
  EXPECT_THAT(Fetch("POST /api/x", "\r\nOrigin: http://evil.example"), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(Fetch("POST /api/x", "\r\nOrigin: http://localhost"), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, WithTokensNobodyComesInWithoutOne) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("tokens", "ann " + Sha256Hex("let me in") + "\n");
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  HttpOptions options{.max_streams = 1};
  options.token_file = path;
  Start(options);
  EXPECT_THAT(Fetch("GET /exact"), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(Fetch("GET /stream"), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(Fetch("GET /exact", "\r\nAuthorization: Bearer let me in"),
              StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Fetch("GET /login"), HasSubstr("Referrer-Policy: same-origin\r\n"));
  const std::string form = "token=let+me%20in";
  Client login(
      server_.port(),
      absl::StrCat("POST /login HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n"
                   "Content-Length: ",
                   form.size()),
      form);
  const std::string answer = login.ReadAll();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 303"));
  const size_t cookie = answer.find("stagecoach-login=");
  ASSERT_NE(cookie, std::string::npos) << answer;
  EXPECT_THAT(
      Fetch("GET /exact",
            absl::StrCat("\r\nCookie: ", answer.substr(cookie, answer.find(';', cookie) - cookie))),
      StartsWith("HTTP/1.1 200"));
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

TEST_F(HttpServerTest, OnLocalhostItIsReachedByIpv4) {
  Start({.listen = "localhost:0"});
  EXPECT_THAT(Fetch("GET /exact"), StartsWith("HTTP/1.1 200"));
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
  EXPECT_TRUE(Soon([this] { return server_.streams() < 2; }));
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

// The story: four threads served, each held by one client that sent a byte now and then, and the
// probe of an orchestrator was never answered.
TEST_F(HttpServerTest, ClientsThatDripCostNoThread) {
  Start({.threads = 1});
  // No more than a server holds where a process may open 1,024 files.
  constexpr int kDripping = 100;
  std::vector<std::unique_ptr<Client>> dripping;
  for (int i = 0; i < kDripping; ++i) {
    dripping.push_back(std::make_unique<Client>(server_.port()));
    EXPECT_TRUE(dripping.back()->Send("GET /exact HTTP/1.1\r\nHost: local"));
  }
  for (const char* byte : {"h", "o", "s", "t"}) {
    for (const auto& client : dripping) EXPECT_TRUE(client->Send(byte));
    EXPECT_THAT(Fetch("GET /exact"), StartsWith("HTTP/1.1 200"));
  }
  EXPECT_GE(server_.connections(), kDripping);
  EXPECT_TRUE(dripping[50]->Send("\r\n\r\n"));
  EXPECT_THAT(dripping[50]->ReadAll(), StartsWith("HTTP/1.1 200")) << "they are slow, not bad";
}

TEST_F(HttpServerTest, ARequestHasSoLongHoweverItDrips) {
  HttpOptions options;
  options.limits.request = std::chrono::milliseconds(200);
  Start(options);
  for (const char* start : {"", "GET /exact HTTP/1.1\r\nX-Long: ",
                            "POST /any HTTP/1.1\r\nContent-Length: 60000\r\n\r\n"}) {
    Client dripping(server_.port());
    EXPECT_TRUE(dripping.Send(start));
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(kPatienceSeconds);
    while (!dripping.Hears(10) && std::chrono::steady_clock::now() < until) {
      if (*start != '\0') dripping.Send("x");
    }
    EXPECT_EQ(dripping.ReadAll(), "") << start;
    EXPECT_LT(std::chrono::steady_clock::now(), until) << start;
  }
  // Ours has no longer than theirs, and on a busy machine it may be late.
  EXPECT_TRUE(Soon([this] { return Fetch("GET /exact").starts_with("HTTP/1.1 200"); }));
}

TEST_F(HttpServerTest, AReaderThatTakesNothingIsHungUpOn) {
  HttpOptions options;
  options.limits.reader = std::chrono::seconds(1);
  std::atomic<int> asked = 0;
  server_.Handle("/large", [&asked](const HttpRequest&) {
    ++asked;
    return HttpResponse{.body = std::string(64 << 20, 'x')};  // more than the sockets hold
  });
  Start(options);
  const std::string get = "GET /large HTTP/1.1\r\nHost: localhost";
  const Client idle(server_.port(), get);
  // It was there when it asked.
  EXPECT_TRUE(Soon([&] { return asked == 1 && server_.connections() == 0; }));
  EXPECT_EQ(Client(server_.port(), get).CountAll() >> 20, 64u) << "who reads gets it all";
}

// Readers that take the head of a large answer and nothing more.
class IdleReadersTest : public HttpServerTest {
 protected:
  static constexpr int kAnswerBytes = 16 << 20;  // more than the sockets hold

  void Serve(int answers) {
    HttpOptions options;
    options.limits.answer_bytes = int64_t{kAnswerBytes} * answers + (1 << 20);
    server_.Handle("/large", [](const HttpRequest&) {
      return HttpResponse{.body = std::string(kAnswerBytes, 'x')};
    });
    Start(options);
  }
  // What it says first to a reader at 127.0.0.(1 + address); then the reader goes on or stays idle.
  std::string Head(int address, bool stays = true) {
    auto reader = std::make_unique<Client>(
        server_.port(), INADDR_LOOPBACK + static_cast<uint32_t>(address), 64 << 10);
    EXPECT_TRUE(reader->Send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    const std::string head = reader->ReadUntil("\r\n");
    if (stays) idle_.push_back(std::move(reader));
    return head;
  }

  std::vector<std::unique_ptr<Client>> idle_;
};

TEST_F(IdleReadersTest, AnswersThatNobodyTakesHaveAnEndInMemory) {
  Serve(3);
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Head(i), StartsWith("HTTP/1.1 200")) << i;
  EXPECT_THAT(Head(3, false), StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(Fetch("GET /exact"), StartsWith("HTTP/1.1 200")) << "a small one is always given";
  idle_.clear();
  EXPECT_TRUE(Soon([this] { return Head(3, false).find(" 200 ") != std::string::npos; }));
}

// The story: a few slow readers of one address, and everybody was answered 503, probes included.
TEST_F(IdleReadersTest, OnePeersReadersTakeItsOwnShareOnly) {
  Serve(8);
  EXPECT_THAT(Head(1), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Head(1, false), StartsWith("HTTP/1.1 503")) << "it has its eighth";
  EXPECT_THAT(Head(2), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, AtTheCapTheOldestSilentConnectionGoes) {
  HttpOptions options;
  options.limits.connections = 8;
  Start(options);
  std::vector<std::unique_ptr<Client>> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(std::make_unique<Client>(server_.port()));
  for (int i = 0; i < 12; ++i) EXPECT_EQ(silent[static_cast<size_t>(i)]->ReadAll(), "") << i;
  EXPECT_TRUE(Soon([this] { return server_.connections() == 8; }));
  EXPECT_THAT(Fetch("GET /exact"), StartsWith("HTTP/1.1 200"));
  EXPECT_TRUE(silent[19]->Send("GET /exact HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  EXPECT_THAT(silent[19]->ReadAll(), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, AtTheCapWhatIsBeingAnsweredStays) {
  HttpOptions options;
  options.limits.connections = 1;
  std::promise<void> entered, leave;
  server_.Handle("/slow", [&](const HttpRequest&) {
    entered.set_value();
    leave.get_future().wait();
    return HttpResponse{.body = "slow"};
  });
  Start(options);
  Client slow(server_.port(), "GET /slow HTTP/1.1\r\nHost: localhost");
  entered.get_future().wait();
  EXPECT_EQ(Client(server_.port()).ReadAll(), "") << "closed: there is room for one";
  leave.set_value();
  EXPECT_THAT(slow.ReadAll(), HasSubstr("slow"));
}

TEST_F(HttpServerTest, OnePeerFillsItsOwnPlacesOnly) {
  HttpOptions options;
  options.limits.per_peer = 4;
  Start(options);
  Client honest(server_.port());
  EXPECT_TRUE(honest.Send("GET /exact HTTP/1.1\r\n"));
  std::vector<std::unique_ptr<Client>> crowd;
  for (int i = 0; i < 10; ++i) {
    crowd.push_back(std::make_unique<Client>(server_.port(), INADDR_LOOPBACK + 1));
  }
  for (int i = 0; i < 6; ++i) EXPECT_EQ(crowd[static_cast<size_t>(i)]->ReadAll(), "") << i;
  EXPECT_TRUE(Soon([this] { return server_.connections() == 5; }));
  EXPECT_TRUE(honest.Send("Host: localhost\r\n\r\n"));
  EXPECT_THAT(honest.ReadAll(), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, WhatIsNoRequestForItIsRefused) {
  Start();
  for (const char* line : {"GET http://elsewhere/exact", "OPTIONS *", "GET exact"}) {
    EXPECT_THAT(Fetch(line), StartsWith("HTTP/1.1 400")) << line;
  }
  EXPECT_THAT(Fetch("GET /exact", "\r\nHost: another"), StartsWith("HTTP/1.1 400"));
}

}  // namespace
}  // namespace stagecoach
