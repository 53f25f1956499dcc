// Probes and metrics on a port of their own.
#include "services/common/http/probe_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "absl/strings/str_cat.h"
#include "services/common/http/http_client_testing.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Get(const HttpServer& server, const std::string& path) {
  return HttpTestClient(server.port(), absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: 127.0.0.1"))
      .ReadAll();
}

class ProbesTest : public ::testing::Test {
 protected:
  void Start(const ServerFlags& flags) {
    http_.HandleBelow("/", [this](const HttpRequest&) {
      entered_.set_value();
      leave_.get_future().wait();
      return HttpResponse{.body = "page"};
    });
    const Probes answers{[] { return std::string("up 1\n"); }, [] { return true; },
                         [] { return true; }};
    ASSERT_TRUE(StartProbes(flags, answers, http_, probes_).ok());
    ASSERT_TRUE(http_.Start(HttpOptions{.listen = flags.http, .threads = 1}).ok());
  }

  std::promise<void> entered_, leave_;
  HttpServer http_, probes_;
};

TEST_F(ProbesTest, ABusyPageStarvesNoProbe) {
  Start({.http = "127.0.0.1:0", .probes = "127.0.0.1:0"});
  HttpTestClient page(http_.port(), "GET / HTTP/1.1\r\nHost: localhost");
  entered_.get_future().wait();  // the page's one thread is taken
  for (const char* path : {"/livez", "/readyz"}) {
    EXPECT_THAT(Get(probes_, path), StartsWith("HTTP/1.1 200")) << path;
  }
  EXPECT_THAT(Get(probes_, "/metrics"), HasSubstr("up 1\n"));
  EXPECT_THAT(Get(probes_, "/"), StartsWith("HTTP/1.1 404")) << "nothing but these";
  leave_.set_value();
  EXPECT_THAT(page.ReadAll(), HasSubstr("page"));
}

TEST_F(ProbesTest, ThePagesPortHasNoneOfThemOffLoopback) {
  leave_.set_value();
  Start({.http = "0.0.0.0:0", .probes = "127.0.0.1:0"});
  EXPECT_THAT(Get(http_, "/metrics"), HasSubstr("\r\n\r\npage")) << "as any other path";
  EXPECT_THAT(Get(probes_, "/metrics"), HasSubstr("up 1\n"));
}

TEST_F(ProbesTest, WithoutAPortOfTheirOwnTheyAreOnThePages) {
  Start({.http = "0.0.0.0:0"});
  EXPECT_THAT(Get(http_, "/metrics"), HasSubstr("up 1\n"));
  EXPECT_EQ(probes_.port(), 0);
}

}  // namespace
}  // namespace stagecoach
