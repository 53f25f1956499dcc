// Symptom: `--address http://host:8000`, and an address without a port, ended after ten seconds in
// the words of gRPC's resolver. Cause: nobody looked at an address before it was dialled.
#include "services/common/process/dial_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/utf8.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;

std::string ErrorOf(const std::string& address) {
  const absl::Status status = CheckDialAddress("--address", address);
  if (!status.ok()) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("--address " + address));
  }
  return std::string(status.message());
}

TEST(DialAddress, TakesWhatGrpcTakes) {
  for (const char* address :
       {"localhost:8001", "10.0.0.1:1", "[::1]:65535", "stagecoach-coordinator.default.svc:8001",
        "dns:///host:8001", "unix:/run/stagecoach.sock", "ipv4:127.0.0.1:8001", "dns:8001"}) {
    EXPECT_EQ(ErrorOf(address), "");
  }
}

TEST(DialAddress, AnAddressOfAPageIsNamedAsSuch) {
  EXPECT_EQ(ErrorOf("http://host:8000/"),
            "--address http://host:8000/: a gRPC address has no http://; want host:8001 (the gRPC "
            "port as --listen says it; the page has another)");
  EXPECT_THAT(ErrorOf("https://host"), HasSubstr("has no https://; want host:8001"));
  EXPECT_THAT(ErrorOf("grpc://"), HasSubstr("has no grpc://; want host:8001"));
}

TEST(DialAddress, AMissingOrWrongPortIsNamed) {
  EXPECT_THAT(ErrorOf("host"), HasSubstr("no port; want host:8001 or what"));
  EXPECT_THAT(ErrorOf("[::1]"), HasSubstr("no port; want [::1]:8001"));
  EXPECT_THAT(ErrorOf("host:"), HasSubstr("\"\" is no port"));
  EXPECT_THAT(ErrorOf("host:grpc"), HasSubstr("\"grpc\" is no port; want a number"));
  EXPECT_THAT(ErrorOf("host:8001/"), HasSubstr("\"8001/\" is no port"));
  EXPECT_THAT(ErrorOf("host:0"), HasSubstr("from 1 to 65535"));
  EXPECT_THAT(ErrorOf("host:65536"), HasSubstr("from 1 to 65535"));
  EXPECT_THAT(ErrorOf("[::1]8001"), HasSubstr("is no port"));
}

TEST(DialAddress, AMissingOrMalformedHostIsNamed) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("is empty; want host:port"));
  EXPECT_THAT(ErrorOf(":8001"), HasSubstr("no host before the port"));
  EXPECT_THAT(ErrorOf("::1:8001"), HasSubstr("in brackets, like [::1]:8001"));
  EXPECT_THAT(ErrorOf("[::1"), HasSubstr("not closed"));
  EXPECT_THAT(ErrorOf("my host:8001"), HasSubstr("holds a blank"));
}

// The story: a profile's coordinator with a line feed wrote lines of its own to the terminal.
TEST(DialAddress, ControlCharactersAreShownAsText) {
  for (const char* address : {"host\n:8001", "host:80\x1b[31m", "dns:///a\nb:1",
                              "unix:/run/\x1b[2J", "http://a\x1b[2J", "\x9b:1:1"}) {
    for (const absl::Status& refused : {CheckDialAddress("clusters.lab.coordinator", address),
                                        CheckPeerAddress("stage.address", address)}) {
      const std::string text(refused.message());
      EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << text;
      EXPECT_EQ(ShownName(text), text);
      EXPECT_THAT(text, HasSubstr("\\x"));
    }
  }
}

// The story: a stage registered such an address, and the coordinator dialled what it led to.
TEST(DialAddress, AnAddressOfAPeerIsAHostAndAPortAndNoOtherFormOfGrpc) {
  for (const char* address : {"localhost:8001", "10.0.0.1:1", "[::1]:65535", "[fe80::1%eth0]:1",
                              "stage-0.stage.default.svc:8101", "dns.example:53"}) {
    EXPECT_TRUE(CheckPeerAddress("stage.address", address).ok()) << address;
  }
  for (const char* address :
       {"unix:/run/x.sock", "unix:1", "UNIX:1", "dns:8001", "dns:///host:8001", "xds:1", "http:80",
        "http://host:80", "ipv4:127.0.0.1:1", "ipv6:1", "a,b:1", "host", "[]:1", "a/b:1", "",
        "0.0.0.0:8101", "[::]:8101"}) {
    const absl::Status refused = CheckPeerAddress("stage.address", address);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << address;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(std::string("stage.address=") + address));
  }
}

}  // namespace
}  // namespace stagecoach
