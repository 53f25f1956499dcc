#include "services/common/process/server_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

std::optional<int> Parse(std::vector<const char*> words, ServerFlags* flags) {
  FlagParser parser("A server.");
  AddServerFlags(parser, flags);
  words.insert(words.begin(), "server");
  return parser.Parse(static_cast<int>(words.size()), words.data());
}

TEST(TlsVariables, StandInPlaceOfFlagsAndFlagsWin) {
  const std::pair<const char*, const char*> variables[] = {{"STAGECOACH_TLS", "true"},
                                                           {"STAGECOACH_TLS_CA", "/v/ca.pem"},
                                                           {"STAGECOACH_TLS_CERT", "/v/tls.crt"},
                                                           {"STAGECOACH_TLS_KEY", "/v/tls.key"}};
  for (const auto& [name, value] : variables) setenv(name, value, 1);
  ServerFlags by_variables, by_flags, off;
  EXPECT_EQ(Parse({}, &by_variables), std::nullopt);
  EXPECT_EQ(Parse({"--grpc-root-cert=/f/ca.pem", "--grpc-server-cert=/f/tls.crt"}, &by_flags),
            std::nullopt);
  EXPECT_EQ(Parse({"--grpc-use-ssl=false"}, &off), std::nullopt);
  testing::internal::CaptureStdout();
  ServerFlags helped;
  EXPECT_EQ(Parse({"--help"}, &helped), 0);
  const std::string help = testing::internal::GetCapturedStdout();
  for (const auto& [name, value] : variables) {
    EXPECT_THAT(help, HasSubstr(name));
    unsetenv(name);
  }
  EXPECT_TRUE(by_variables.tls.use_ssl);
  EXPECT_EQ(by_variables.tls.root_cert, "/v/ca.pem");
  EXPECT_EQ(by_variables.tls.server_cert, "/v/tls.crt");
  EXPECT_EQ(by_variables.tls.server_key, "/v/tls.key");
  EXPECT_EQ(by_flags.tls.root_cert, "/f/ca.pem");
  EXPECT_EQ(by_flags.tls.server_cert, "/f/tls.crt");
  EXPECT_EQ(by_flags.tls.server_key, "/v/tls.key");
  EXPECT_FALSE(off.tls.use_ssl);
}

}  // namespace
}  // namespace stagecoach
