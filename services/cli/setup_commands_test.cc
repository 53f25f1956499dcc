// `certs` and `config` as they are typed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "base/testing/file_text.h"
#include "base/testing/temporary_folder.h"
#include "services/cli/command_line.h"
#include "services/cli/testing/no_profile.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class SetupCommandsTest : public ::testing::Test {
 protected:
  SetupCommandsTest() { setenv("STAGECOACH_CONFIG", profile_.c_str(), 1); }
  ~SetupCommandsTest() override { setenv("STAGECOACH_CONFIG", "/dev/null", 1); }

  int Run(const std::vector<std::string>& words) {
    std::vector<const char*> line = {"stagecoach"};
    for (const std::string& word : words) line.push_back(word.c_str());
    out_.str("");
    notes_.str("");
    return RunCommandLine(static_cast<int>(line.size()), line.data(), &console_, &stop_);
  }

  const NoProfile no_profile_;
  const TemporaryFolder folder_;
  const std::string profile_ = folder_.File("own/config.yaml"), certs_ = folder_.File("certs");
  std::ostringstream out_, notes_;
  Console console_{out_, notes_, {}};
  StopSignal stop_;
};

TEST_F(SetupCommandsTest, CertificatesAreToldByTheirFolders) {
  ASSERT_EQ(Run({"certs", certs_, "coordinator=box.lan", "user:ann", "--days", "30"}), 0)
      << notes_.str();
  EXPECT_EQ(out_.str(), certs_ +
                            "/coordinator: role coordinator, DNS:coordinator, DNS:localhost, "
                            "IP:127.0.0.1, DNS:box.lan, 30 days\n" +
                            certs_ +
                            "/ann: role user, DNS:ann, DNS:localhost, IP:127.0.0.1, 30 days\n");
  EXPECT_THAT(notes_.str(), HasSubstr("ca.key can make a peer of anyone"));
  ASSERT_EQ(Run({"-o", "json", "certs", certs_, "user:bob"}), 0);
  EXPECT_EQ(out_.str(), "{\"folder\":\"" + certs_ +
                            "/bob\",\"role\":\"user\",\"name\":\"bob\",\"hosts\":[\"DNS:bob\","
                            "\"DNS:localhost\",\"IP:127.0.0.1\"],\"days\":825}\n");
  EXPECT_EQ(notes_.str(), "") << "the authority is known";
}

TEST_F(SetupCommandsTest, AllEntriesAreCheckedBeforeAnythingIsMade) {
  EXPECT_EQ(Run({"certs", certs_, "user:before", "root:eve"}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("root:eve: \"root\" is no role"));
  EXPECT_EQ(Run({"certs", certs_, "user:before", "--days", "0"}), 2);
  EXPECT_EQ(Run({"certs", certs_}), 2);
  EXPECT_FALSE(std::filesystem::exists(certs_));
}

TEST_F(SetupCommandsTest, AFolderWithoutANameOrANameOfAnotherRoleIsAMistakeOfTheCaller) {
  EXPECT_EQ(Run({"certs", "", "x"}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("FOLDER is empty"));
  ASSERT_EQ(Run({"certs", certs_, "user:x"}), 0);
  const std::string before = FileText(certs_ + "/x/tls.crt");
  EXPECT_EQ(Run({"certs", certs_, "stage-0", "operator:x"}), 1);
  EXPECT_THAT(notes_.str(), HasSubstr(certs_ + "/x: has the certificate of the user x"));
  EXPECT_EQ(FileText(certs_ + "/x/tls.crt"), before);
  EXPECT_FALSE(std::filesystem::exists(certs_ + "/stage-0")) << "nothing is made";
}

TEST_F(SetupCommandsTest, AProfileIsMadeShownUsedAndShrunk) {
  EXPECT_EQ(Run({"config"}), 0);
  EXPECT_EQ(out_.str(), "");
  EXPECT_THAT(notes_.str(), HasSubstr(profile_ + ": no cluster; add one with"));
  ASSERT_EQ(Run({"certs", certs_, "user:ann"}), 0);
  ASSERT_EQ(Run({"config", "set", "lab", "--coordinator", "lab:8001", "--certs", certs_ + "/ann/"}),
            0)
      << notes_.str();
  ASSERT_EQ(Run({"config", "set", "here", "--coordinator", "localhost:8001"}), 0) << notes_.str();
  EXPECT_THAT(notes_.str(), HasSubstr("cluster here is set; the current one is lab"));
  for (const auto& command : {std::vector<std::string>{"config"}, {"config", "show"}}) {
    ASSERT_EQ(Run(command), 0);
    EXPECT_EQ(out_.str(),
              "   CLUSTER  COORDINATOR     CREDENTIALS\n"
              "   here     localhost:8001  no TLS\n"
              "*  lab      lab:8001        certificate " +
                  certs_ + "/ann/tls.crt\n");
  }
  ASSERT_EQ(Run({"config", "use", "here"}), 0);
  ASSERT_EQ(Run({"config", "-o", "ndjson"}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("{\"name\":\"here\",\"current\":true,"));
  EXPECT_EQ(Run({"config", "use", "hre"}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("config use hre: " + profile_ + " has no such cluster"));
  ASSERT_EQ(Run({"config", "remove", "here"}), 0);
  EXPECT_THAT(notes_.str(), HasSubstr("was the current one; now the only one, lab, is"));
  ASSERT_EQ(Run({"-o", "json", "config"}), 0);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("{\"file\":\"" + profile_), HasSubstr("\"name\":\"lab\""),
                                Not(HasSubstr("here"))));
  EXPECT_EQ(FileText(profile_).find("current"), std::string::npos);
}

TEST_F(SetupCommandsTest, FilesOfAClusterAreStoredByTheirWholePathsAndReadAtOnce) {
  ASSERT_EQ(Run({"certs", certs_, "user:ann"}), 0);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(certs_);
  const int code =
      Run({"config", "set", "lab", "--coordinator", "lab:8001", "--grpc-root-cert", "ca.pem",
           "--grpc-server-cert", "ann/tls.crt", "--grpc-server-key", "./ann/tls.key"});
  std::filesystem::current_path(before);
  ASSERT_EQ(code, 0) << notes_.str();
  EXPECT_THAT(FileText(profile_), AllOf(HasSubstr("ca: " + certs_ + "/ca.pem\n"),
                                        HasSubstr("key: " + certs_ + "/ann/tls.key\n")));
  const std::string known = FileText(profile_);
  const auto refused = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"config", "set", "lab", "--coordinator", "lab:8001"});
    EXPECT_NE(Run(more), 0);
    EXPECT_EQ(FileText(profile_), known);
    return notes_.str();
  };
  EXPECT_THAT(refused({"--certs", certs_ + "/bob"}),
              HasSubstr("--grpc-server-cert=" + certs_ + "/bob/tls.crt: cannot be read"));
  EXPECT_THAT(refused({"--grpc-use-ssl"}), HasSubstr("clusters.lab: --grpc-use-ssl needs --certs"));
  const std::string token = folder_.Write("token", "secret\n");
  std::filesystem::permissions(token, std::filesystem::perms(0644));
  const std::vector<std::string> by_token = {"--grpc-root-cert", certs_ + "/ca.pem", "--token-file",
                                             token};
  EXPECT_THAT(refused(by_token), HasSubstr("token_file: " + token + ": has the rights 0644"));
  std::filesystem::permissions(token, std::filesystem::perms(0600));
  std::vector<std::string> set = {"config", "set", "lab", "--coordinator", "lab:8001"};
  set.insert(set.end(), by_token.begin(), by_token.end());
  ASSERT_EQ(Run(set), 0) << notes_.str();
  ASSERT_EQ(Run({"config"}), 0);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("token file " + token), Not(HasSubstr("secret"))));
}

TEST_F(SetupCommandsTest, ABrokenProfileMattersToCommandsThatConnectAlone) {
  std::filesystem::create_directories(folder_.File("own"));
  folder_.Write("own/config.yaml", "clusters: {lab: {cordinator: x}}\n");
  EXPECT_EQ(Run({"version"}), 0);
  EXPECT_EQ(Run({"validate", STAGECOACH_SOURCE_DIR "/examples/gpt-tiny.yaml"}), 0);
  EXPECT_EQ(Run({"plan", STAGECOACH_SOURCE_DIR "/examples/gpt-tiny.yaml"}), 0) << notes_.str();
  for (const char* command : {"list", "health", "config"}) {
    EXPECT_EQ(Run({command}), 2) << command;
    EXPECT_THAT(notes_.str(),
                HasSubstr(profile_ + ":1:18: clusters.lab.cordinator: unknown field"));
  }
  EXPECT_EQ(Run({"list", "--address", "127.0.0.1:1"}), 4) << "it is not asked";
}

TEST_F(SetupCommandsTest, AClusterIsChosenByNameAndNamedInErrors) {
  folder_.Write("own/config.yaml",
                "current: gone\nclusters:\n  gone: {coordinator: '127.0.0.1:1'}\n"
                "  lab: {coordinator: '127.0.0.1:2', certs: ann}\n");
  EXPECT_EQ(Run({"list"}), 4);
  EXPECT_THAT(notes_.str(), HasSubstr("coordinator 127.0.0.1:1"));
  EXPECT_EQ(Run({"list", "--cluster", "lab"}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("cluster lab of " + profile_ + ": --grpc-server-cert=" +
                                      folder_.File("own/ann/tls.crt") + ": cannot be read"));
  setenv("STAGECOACH_CLUSTER", "lab", 1);
  EXPECT_EQ(Run({"list"}), 2);
  EXPECT_EQ(Run({"plan", STAGECOACH_SOURCE_DIR "/examples/gpt-tiny.yaml"}), 2)
      << "a cluster that is named is asked, as one by --address is";
  unsetenv("STAGECOACH_CLUSTER");
  EXPECT_EQ(Run({"list", "--address", ""}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("--address: is empty"));
  ASSERT_EQ(Run({"__complete", "--", "stagecoach", "config", "use", ""}), 0);
  EXPECT_EQ(out_.str(), "gone\nlab\n");
  ASSERT_EQ(Run({"__complete", "--", "stagecoach", "list", "--cluster", ""}), 0);
  EXPECT_EQ(out_.str(), "gone\nlab\n");
}

}  // namespace
}  // namespace stagecoach
