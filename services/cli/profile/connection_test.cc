#include "services/cli/profile/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/testing/temporary_folder.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ConnectionTest : public ::testing::Test {
 protected:
  Connection Choose(const ConnectionSettings& flags, const ConnectionSettings& variables) {
    const absl::StatusOr<Connection> chosen = ChooseConnection(flags, variables, path_);
    EXPECT_TRUE(chosen.ok()) << chosen.status();
    return chosen.value_or(Connection());
  }
  std::string Error(const ConnectionSettings& flags, const ConnectionSettings& variables) {
    return std::string(ChooseConnection(flags, variables, path_).status().message());
  }

  const TemporaryFolder folder_;
  const std::string path_ =
      folder_.Write("config.yaml",
                    "current: lab\nclusters:\n  lab: {coordinator: 'lab:8001', certs: /ann}\n"
                    "  plain: {coordinator: 'plain:8001'}\n"
                    "  shared: {coordinator: 'shared:8001', ca: /ca.pem, token_file: token}\n");
};

TEST_F(ConnectionTest, FlagThenVariableThenTheCurrentClusterThenTheDefault) {
  EXPECT_EQ(Choose({}, {}).address, "lab:8001");
  EXPECT_EQ(Choose({}, {.cluster = "plain"}).address, "plain:8001");
  EXPECT_EQ(Choose({.cluster = "lab"}, {.cluster = "plain"}).address, "lab:8001");
  EXPECT_EQ(Choose({.cluster = "lab"}, {.address = "there:1"}).address, "lab:8001");
  EXPECT_EQ(Choose({}, {.address = "there:1"}).address, "there:1");
  EXPECT_EQ(Choose({.address = "here:1"}, {.address = "there:1"}).address, "here:1");
  EXPECT_EQ(Choose({.address = "here:1"}, {.cluster = "plain"}).address, "here:1");
  const absl::StatusOr<Connection> none = ChooseConnection({}, {}, folder_.File("none.yaml"));
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->address, "localhost:8001");
  EXPECT_FALSE(none->tls.use_ssl);
}

TEST_F(ConnectionTest, AClusterBringsItsFilesAndAnAddressBringsNone) {
  const Connection lab = Choose({}, {});
  EXPECT_TRUE(lab.tls.use_ssl);
  EXPECT_EQ(lab.tls.server_key, "/ann/tls.key");
  EXPECT_EQ(lab.cluster, "cluster lab of " + path_);
  for (const Connection& other : {Choose({.address = "x:1"}, {}), Choose({}, {.address = "x:1"})}) {
    EXPECT_FALSE(other.tls.use_ssl);
    EXPECT_EQ(other.tls.server_cert, "");
    EXPECT_EQ(other.cluster, "");
  }
}

TEST_F(ConnectionTest, EachSettingIsOfItsFirstSource) {
  // Through a tunnel, by the cluster's files.
  const Connection tunnel = Choose({.address = "localhost:9001", .cluster = "lab"}, {});
  EXPECT_EQ(tunnel.address, "localhost:9001");
  EXPECT_EQ(tunnel.tls.root_cert, "/ann/ca.pem");
  EXPECT_FALSE(Choose({.use_ssl = false}, {}).tls.use_ssl);
  const ConnectionSettings variables{
      .use_ssl = true, .root_cert = "/v.pem", .server_cert = "/v.crt"};
  const Connection mixed = Choose({.root_cert = "/f.pem"}, variables);
  EXPECT_EQ(mixed.tls.root_cert, "/f.pem");
  EXPECT_EQ(mixed.tls.server_cert, "/v.crt");
  EXPECT_EQ(mixed.tls.server_key, "/ann/tls.key");
  EXPECT_EQ(Choose({.cluster = "lab"}, variables).tls.root_cert, "/ann/ca.pem");
  EXPECT_TRUE(Choose({.address = "x:1"}, variables).tls.use_ssl) << "as for the servers";
}

TEST_F(ConnectionTest, ACertificateHidesATokenOfALaterSourceAndTheOtherWayRound) {
  const std::string file = folder_.Write("own-token", "secret");
  std::filesystem::permissions(file, std::filesystem::perms(0600));
  const TlsFlags token = Choose({.token_file = file}, {}).tls;
  EXPECT_EQ(token.token_file, file);
  EXPECT_EQ(token.server_cert + token.server_key, "");
  EXPECT_EQ(token.root_cert, "/ann/ca.pem");
  const TlsFlags own =
      Choose({.cluster = "shared", .server_cert = "/c", .server_key = "/k"}, {}).tls;
  EXPECT_EQ(own.server_cert, "/c");
  EXPECT_EQ(own.token_file, "") << "and its rights do not matter";
}

TEST_F(ConnectionTest, MistakesAreNamed) {
  EXPECT_THAT(Error({.cluster = "lba"}, {}),
              AllOf(HasSubstr("--cluster lba: " + path_), HasSubstr("it has: lab, plain, shared"),
                    HasSubstr("stagecoach config set")));
  EXPECT_THAT(Error({}, {.cluster = "lba"}), HasSubstr("STAGECOACH_CLUSTER=lba: "));
  EXPECT_THAT(Error({}, {.address = "x:1", .cluster = "lab"}),
              HasSubstr("STAGECOACH_CLUSTER=lab and STAGECOACH_ADDRESS=x:1 are both set"));
  const std::string token = folder_.Write("token", "secret");
  std::filesystem::permissions(token, std::filesystem::perms(0644));
  EXPECT_THAT(
      Error({.cluster = "shared"}, {}),
      AllOf(HasSubstr(path_ + ": clusters.shared.token_file: " + token), HasSubstr("chmod 0600")));
  std::filesystem::permissions(token, std::filesystem::perms(0600));
  EXPECT_EQ(Choose({.cluster = "shared"}, {}).tls.token_file, token);
  EXPECT_THAT(Error({}, {.cluster = "lab", .token_file = token + "s"}),
              HasSubstr("STAGECOACH_TOKEN_FILE=" + token + "s: No such file"));
  folder_.Write("config.yaml", "broken: [\n");
  EXPECT_THAT(Error({}, {}), HasSubstr(path_));
  EXPECT_EQ(Choose({.address = "x:1"}, {}).address, "x:1") << "it is not asked";
}

// The story: a token that others could read was refused from the profile alone.
TEST_F(ConnectionTest, ATokenThatOthersMayReadIsRefusedWhereverItIsNamed) {
  const std::string token = folder_.Write("token", "secret");
  const std::string words = token +
                            ": has the rights 0644, so others may use the token: chmod 0600 " +
                            token + ", and have a new token made";
  std::filesystem::permissions(token, std::filesystem::perms(0644));
  EXPECT_EQ(Error({.token_file = token}, {}), "--token-file=" + words);
  EXPECT_EQ(Error({.address = "x:1"}, {.token_file = token}), "STAGECOACH_TOKEN_FILE=" + words);
  EXPECT_EQ(Error({.cluster = "shared"}, {.token_file = token}),
            path_ + ": clusters.shared.token_file: " + words);
  std::filesystem::permissions(token, std::filesystem::perms(0600));
  EXPECT_EQ(Choose({.token_file = token}, {}).tls.token_file, token);
  EXPECT_EQ(Choose({.address = "x:1"}, {.token_file = token}).tls.token_file, token);
}

TEST_F(ConnectionTest, TheOnlyClusterIsUsedWithoutACurrentOne) {
  folder_.Write("config.yaml", "clusters: {lab: {coordinator: 'lab:8001'}}\n");
  EXPECT_EQ(Choose({}, {}).address, "lab:8001");
  folder_.Write("config.yaml",
                "clusters: {a: {coordinator: 'a:8001'}, b: {coordinator: 'b:8001'}}\n");
  EXPECT_EQ(Choose({}, {}).address, "localhost:8001");
}

TEST(ConnectionVariables, TlsIsTrueOrFalse) {
  setenv("STAGECOACH_TLS", "1", 1);
  setenv("STAGECOACH_TLS_CA", "/ca.pem", 1);
  EXPECT_EQ(ReadConnectionVariables()->use_ssl, true);
  EXPECT_EQ(ReadConnectionVariables()->root_cert, "/ca.pem");
  unsetenv("STAGECOACH_TLS_CA");
  setenv("STAGECOACH_TLS", "maybe", 1);
  EXPECT_EQ(ReadConnectionVariables().status().message(),
            "STAGECOACH_TLS=maybe: want true or false");
  setenv("STAGECOACH_TLS", "", 1);
  EXPECT_EQ(ReadConnectionVariables()->use_ssl, std::nullopt);
  unsetenv("STAGECOACH_TLS");
}

}  // namespace
}  // namespace stagecoach
