// Who is let in: by Host, by Origin, by token and by cookie.
#include "services/common/http/http_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/hash.h"
#include "base/testing/manual_clock.h"
#include "base/testing/temporary_folder.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kLetIn = 0;

TEST(HttpGate, KnowsItsOwnOrigin) {
  const auto own = [](const char* origin, const char* host) {
    return IsOwnOrigin(origin, host, {"page.example"});
  };
  EXPECT_TRUE(own("http://localhost:8000", "localhost:8000"));
  EXPECT_TRUE(own("https://Box", "box"));
  EXPECT_TRUE(own("http://[::1]:8000", "[::1]:8000"));
  EXPECT_TRUE(own("https://page.example", "127.0.0.1:8000")) << "behind a proxy";
  for (const char* origin : {"http://evil.example", "http://localhost:8001", "null", "",
                             "http://localhost:8000.evil.example", "ftp://localhost:8000",
                             "https://page.example.evil", "http://"}) {
    EXPECT_FALSE(own(origin, "localhost:8000")) << origin;
  }
  EXPECT_FALSE(own("http://", ""));
}

class HttpGateTest : public ::testing::Test {
 protected:
  HttpGateTest() {
    Write({"ann", "bob"});
    HttpGate::Options options;
    options.token_file = path_;
    options.clock = &clock_;
    gate_ = HttpGate::Make(options).value();
  }
  // The token of each is the name; ann's is for control.
  void Write(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) {
      absl::StrAppend(&text, name, " ", Sha256Hex(name), name == "ann" ? " control" : "", "\n");
    }
    chmod(folder_.Write("tokens", text).c_str(), 0600);
  }
  std::optional<HttpResponse> Ask(const std::string& method, const std::string& path,
                                  std::map<std::string, std::string> headers,
                                  const std::string& body = "") {
    headers.emplace("host", "box:8000");
    return gate_->Check({method, path, "", std::move(headers), body, peer_});
  }
  int Status(const std::string& method, const std::string& path,
             const std::map<std::string, std::string>& headers) {
    const auto refused = Ask(method, path, headers);
    return refused.has_value() ? refused->status : kLetIn;
  }
  // The cookie that a browser keeps.
  std::string LogIn(const std::string& token) {
    const auto answer = Ask("POST", "/login", {{"origin", "http://box:8000"}}, "token=" + token);
    if (!answer.has_value() || answer->status != 303) return "";
    for (const auto& [name, value] : answer->headers) {
      if (name != "Set-Cookie") continue;
      EXPECT_THAT(value, HasSubstr("; HttpOnly; SameSite=Strict; Path=/;"));
      EXPECT_THAT(value, Not(HasSubstr("=" + token))) << "the token itself is sent once";
      return value.substr(0, value.find(';'));
    }
    return "";
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.File("tokens");
  std::string peer_;  // of requests from now on
  ManualClock clock_{1'000'000'000};
  std::unique_ptr<HttpGate> gate_;
};

TEST_F(HttpGateTest, AsksForAToken) {
  EXPECT_EQ(Status("GET", "/api/v1/jobs", {{"authorization", "Bearer bob"}}), kLetIn);
  EXPECT_EQ(Status("GET", "/api/v1/jobs", {{"authorization", "bearer ann"}}), kLetIn);
  for (const char* path : {"/", "/api/v1/jobs", "/metrics", "/assets/app.js", "/livez/x"}) {
    EXPECT_EQ(Status("GET", path, {}), 401) << path;
    EXPECT_EQ(Status("GET", path, {{"authorization", "Bearer eve"}}), 401) << path;
    EXPECT_EQ(Status("GET", path, {{"authorization", "bob"}}), 401) << path;
    EXPECT_EQ(Status("GET", path, {{"authorization", "Bearer "}}), 401) << path;
    EXPECT_EQ(Status("GET", path, {{"cookie", "stagecoach-login=bob"}}), 401) << path;
  }
  EXPECT_EQ(Status("GET", "/livez", {}), kLetIn);
  EXPECT_EQ(Status("GET", "/readyz", {}), kLetIn);
  EXPECT_EQ(Ask("GET", "/api/v1/jobs", {})->content_type, "application/json");
}

TEST_F(HttpGateTest, WhoOnlyObservesChangesNothing) {
  EXPECT_EQ(Status("POST", "/api/v1/jobs/a/cancel", {{"authorization", "Bearer ann"}}), kLetIn);
  EXPECT_EQ(Status("POST", "/api/v1/jobs/a/cancel", {{"authorization", "Bearer bob"}}), 403);
  EXPECT_EQ(Status("POST", "/api/v1/jobs/a/cancel", {}), 401);
  EXPECT_EQ(Status("POST", "/livez", {}), 401);
}

TEST_F(HttpGateTest, AnotherSitesPageChangesNothing) {
  std::map<std::string, std::string> headers{{"authorization", "Bearer ann"},
                                             {"origin", "http://evil.example"}};
  EXPECT_EQ(Status("POST", "/api/v1/jobs/a/cancel", headers), 403);
  EXPECT_EQ(Status("GET", "/api/v1/jobs", headers), kLetIn) << "it cannot read the answer";
  headers["origin"] = "null";
  EXPECT_EQ(Status("POST", "/api/v1/jobs/a/cancel", headers), 403);
  headers["origin"] = "http://box:8000";
  EXPECT_EQ(Status("POST", "/api/v1/jobs/a/cancel", headers), kLetIn);
  EXPECT_EQ(Status("POST", "/login", {{"origin", "http://evil.example"}}), 403);
}

TEST_F(HttpGateTest, ABrowserLogsInForHalfADay) {
  const auto asked = Ask("GET", "/", {{"accept", "text/html,*/*"}});
  EXPECT_EQ(asked->status, 303);
  EXPECT_EQ(asked->headers[0].second, "/login");
  EXPECT_TRUE(Ask("GET", "/login", {})->has_form);
  EXPECT_EQ(LogIn("eve"), "");
  const std::string ann = LogIn("ann"), bob = LogIn("bob");
  EXPECT_EQ(Status("GET", "/", {{"cookie", "theme=dark; " + bob}}), kLetIn);
  EXPECT_EQ(Status("POST", "/api/v1/jobs/a/cancel", {{"cookie", bob}}), 403);
  EXPECT_EQ(Status("POST", "/api/v1/jobs/a/cancel", {{"cookie", ann}}), kLetIn);
  std::string forged = ann;
  forged.back() = forged.back() == '0' ? '1' : '0';
  EXPECT_EQ(Status("GET", "/", {{"cookie", forged}}), 401);
  std::string longer = ann;
  longer.insert(longer.find('=') + 1, "9");
  EXPECT_EQ(Status("GET", "/", {{"cookie", longer}}), 401);
  clock_.AdvanceNanos(static_cast<int64_t>((HttpGate::kLoginSeconds + 1) * 1e9));
  EXPECT_EQ(Status("GET", "/", {{"cookie", ann}}), 401);
}

// The story: 5,392 guesses a second were answered.
TEST_F(HttpGateTest, WhoeverGuessesTokensIsSlowedWithAllFromThatAddressButCookies) {
  const std::map<std::string, std::string> right{{"authorization", "Bearer ann"}};
  peer_ = "10.0.0.1";
  const std::string cookie = LogIn("bob");
  for (int i = 0; i < TokenGuesses::kStock; ++i) {
    ASSERT_EQ(Status("GET", "/api/v1/jobs", right), kLetIn) << "a known token is no guess";
    const std::string guess = absl::StrCat("eve", i);
    if (i % 2 == 0) {
      ASSERT_EQ(Status("GET", "/api/v1/jobs", {{"authorization", "Bearer " + guess}}), 401) << i;
    } else {
      ASSERT_EQ(Ask("POST", "/login", {}, "token=" + guess)->status, 401) << i;
    }
  }
  const auto refused = Ask("GET", "/api/v1/jobs", right);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->status, 429) << "or the answer would tell that it is one";
  EXPECT_EQ(refused->headers[0], (std::pair<std::string, std::string>("Retry-After", "1")));
  EXPECT_EQ(Ask("POST", "/login", {}, "token=ann")->status, 429);
  EXPECT_EQ(Status("GET", "/", {{"authorization", "Bearer eve0"}}), 401) << "it knows that";
  EXPECT_EQ(Status("GET", "/", {{"cookie", cookie}}), kLetIn);
  EXPECT_EQ(Status("GET", "/api/v1/jobs", {}), 401) << "no token is no guess";
  peer_ = "10.0.0.2";
  EXPECT_EQ(Status("GET", "/api/v1/jobs", right), kLetIn);
  peer_ = "10.0.0.1";
  clock_.AdvanceNanos(1'100'000'000);
  EXPECT_EQ(Status("GET", "/api/v1/jobs", right), kLetIn);
}

// The story: a program that asks every second with an old token kept all others of its address out,
// with right tokens too.
TEST_F(HttpGateTest, AProgramWithAnOldTokenKeepsNobodyOfItsAddressOut) {
  peer_ = "10.0.0.1";
  for (int i = 0; i < 10 * TokenGuesses::kStock; ++i) {
    ASSERT_EQ(Status("GET", "/metrics", {{"authorization", "Bearer old"}}), 401) << i;
    ASSERT_EQ(Status("GET", "/metrics", {{"authorization", "Bearer bob"}}), kLetIn) << i;
  }
  EXPECT_EQ(Ask("POST", "/login", {}, "token=ann")->status, 303);
  Write({"ann", "bob", "old"});
  EXPECT_EQ(Status("GET", "/metrics", {{"authorization", "Bearer old"}}), kLetIn)
      << "it is looked up each time";
}

TEST_F(HttpGateTest, ATokenThatIsTakenOutIsOutAtOnce) {
  const std::string cookie = LogIn("bob");
  EXPECT_EQ(Status("GET", "/", {{"cookie", cookie}}), kLetIn);
  Write({"ann", "cid"});
  EXPECT_EQ(Status("GET", "/", {{"cookie", cookie}}), 401);
  EXPECT_EQ(Status("GET", "/", {{"authorization", "Bearer bob"}}), 401);
  EXPECT_EQ(Status("GET", "/", {{"authorization", "Bearer cid"}}), kLetIn);
}

TEST(HttpGate, WithoutTokensHostAndOriginCount) {
  HttpGate::Options options;
  options.checks_host = true;
  const auto gate = HttpGate::Make(options).value();
  const auto status = [&](const char* method, std::map<std::string, std::string> headers) {
    const auto refused = gate->Check({method, "/", "", std::move(headers)});
    return refused.has_value() ? refused->status : kLetIn;
  };
  EXPECT_EQ(status("GET", {{"host", "localhost"}}), kLetIn);
  EXPECT_EQ(status("POST", {{"host", "localhost"}}), kLetIn);
  EXPECT_EQ(status("POST", {{"host", "localhost"}, {"origin", "http://localhost"}}), kLetIn);
  EXPECT_EQ(status("POST", {{"host", "localhost"}, {"origin", "http://evil.example"}}), 403);
  EXPECT_EQ(status("GET", {{"host", "evil.example"}}), 403);
}

TEST(HttpGate, ANameOfThisMachineCountsHoweverItIsWritten) {
  HttpGate::Options options;
  options.checks_host = true;
  options.host_names = {"Box.lan"};
  const auto gate = HttpGate::Make(options).value();
  for (const char* host : {"Box.lan", "box.lan:8000", "BOX.LAN"}) {
    EXPECT_FALSE(gate->Check({"GET", "/", "", {{"host", host}}}).has_value()) << host;
  }
  EXPECT_FALSE(
      gate->Check({"POST", "/", "", {{"host", "localhost"}, {"origin", "https://Box.lan"}}})
          .has_value());
}

}  // namespace
}  // namespace stagecoach
