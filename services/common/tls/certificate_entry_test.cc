#include "services/common/tls/certificate_entry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CertificateEntry, ARoleIsSaidOrComesOfTheName) {
  const auto uri = [](const std::string& entry) { return ParseCertificateEntry(entry)->uri(); };
  EXPECT_EQ(uri("user:ann"), "spiffe://stagecoach/user/ann");
  EXPECT_EQ(uri("operator:stage"), "spiffe://stagecoach/operator/stage");
  EXPECT_EQ(uri("coordinator"), "spiffe://stagecoach/coordinator/coordinator");
  EXPECT_EQ(uri("user"), "spiffe://stagecoach/user/user");
  EXPECT_EQ(uri("operator"), "spiffe://stagecoach/operator/operator");
  EXPECT_EQ(uri("client"), "spiffe://stagecoach/operator/client");
  EXPECT_EQ(uri("stage-0"), "spiffe://stagecoach/stage/stage-0");
}

TEST(CertificateEntry, HostsAreTheNameLoopbackAndTheSans) {
  EXPECT_THAT(ParseCertificateEntry("stage:box=*.stage.svc,10.0.0.7,fd00::7,box,localhost")->hosts,
              ElementsAre("DNS:box", "DNS:localhost", "IP:127.0.0.1", "DNS:*.stage.svc",
                          "IP:10.0.0.7", "IP:fd00::7"));
  EXPECT_THAT(ParseCertificateEntry("stage:10.0.0.8")->hosts,
              ElementsAre("IP:10.0.0.8", "DNS:localhost", "IP:127.0.0.1"));
}

TEST(CertificateEntry, AWrongOneIsNamedWithItsPartAndTheRightForm) {
  const auto error = [](const std::string& entry) {
    return std::string(ParseCertificateEntry(entry).status().message());
  };
  EXPECT_THAT(error("root:eve"),
              AllOf(HasSubstr("root:eve: \"root\" is no role"), HasSubstr("user or operator")));
  EXPECT_THAT(error(":eve"), HasSubstr("\"\" is no role"));
  const std::string long_name(65, 'n');
  for (const std::string& name :
       {std::string(), std::string("a/b"), std::string(".."), std::string("ca.key"),
        std::string("a b"), std::string(".hidden"), std::string("-x"), long_name}) {
    EXPECT_THAT(error("user:" + name),
                AllOf(HasSubstr("\"" + name + "\" is no name"), HasSubstr("at most 64 letters"),
                      HasSubstr("in front no '.' or '-'")));
  }
  // A text of OpenSSL's own language for names among them.
  for (const char* host : {"", "10.0.0", "a b", "a*b", "*.", "dirName:x", "10.0.0.1/8"}) {
    EXPECT_THAT(error(std::string("stage-0=good,") + host),
                AllOf(HasSubstr(std::string("\"") + host + "\" is no host"),
                      HasSubstr("DNS name, an IP address, or a wildcard")));
  }
  EXPECT_THAT(error("user:\x1b[31m"), HasSubstr("\\x1b"));
}

TEST(CertificateEntries, TwoOfOneNameAreRefused) {
  const std::vector<std::string> twice = {"user:ann", "stage-0", "operator:ann"};
  EXPECT_THAT(std::string(ParseCertificateEntries(twice).status().message()),
              HasSubstr("operator:ann: the name ann is given twice"));
  const std::vector<std::string> two = {"user:ann", "stage-0"};
  EXPECT_EQ(ParseCertificateEntries(two)->size(), 2u);
}

}  // namespace
}  // namespace stagecoach
