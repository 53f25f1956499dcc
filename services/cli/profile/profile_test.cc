#include "services/cli/profile/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "base/testing/file_text.h"
#include "base/testing/temporary_folder.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

int RightsOf(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777;
}

class ProfileTest : public ::testing::Test {
 protected:
  absl::StatusOr<Profile> Read(const std::string& text) {
    const std::string path = folder_.Write("config.yaml", text);
    std::filesystem::permissions(path, std::filesystem::perms(0600));  // whatever the mask says
    return ReadProfile(path);
  }
  std::string Error(const std::string& text) {
    const absl::Status status = Read(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    return std::string(status.message());
  }
  const TemporaryFolder folder_;
};

TEST_F(ProfileTest, AFileThatIsNotThereOrSaysNothingIsAProfileWithoutClusters) {
  for (const std::string& path : {folder_.File("none/config.yaml"), std::string("/dev/null"),
                                  folder_.Write("blank", "\n# nothing yet\n")}) {
    const absl::StatusOr<Profile> profile = ReadProfile(path);
    ASSERT_TRUE(profile.ok()) << profile.status();
    EXPECT_TRUE(profile->clusters.empty() && profile->current.empty());
  }
}

TEST_F(ProfileTest, RelativePathsAreThoseOfItsFolder) {
  const absl::StatusOr<Profile> profile = Read(
      "current: lab\nclusters:\n  lab: {coordinator: 'lab:8001', certs: certs/ann}\n"
      "  shared: {coordinator: 'shared:8001', ca: ../ca.pem, token_file: /tokens/ann}\n"
      "  here: {coordinator: 'localhost:8001'}\n");
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->current, "lab");
  const TlsFlags lab = profile->clusters.at("lab").tls();
  EXPECT_TRUE(lab.use_ssl);
  EXPECT_EQ(lab.root_cert, folder_.File("certs/ann/ca.pem"));
  EXPECT_EQ(lab.server_cert, folder_.File("certs/ann/tls.crt"));
  EXPECT_EQ(lab.server_key, folder_.File("certs/ann/tls.key"));
  const TlsFlags shared = profile->clusters.at("shared").tls();
  EXPECT_EQ(shared.root_cert,
            std::filesystem::path(folder_.path()).parent_path().string() + "/ca.pem");
  EXPECT_EQ(shared.token_file, "/tokens/ann");
  EXPECT_EQ(shared.server_cert, "");
  EXPECT_FALSE(profile->clusters.at("here").tls().use_ssl);
}

TEST_F(ProfileTest, AMistakeIsNamedWithFilePlaceFieldAndRemedy) {
  EXPECT_THAT(Error("curent: lab\n"),
              AllOf(HasSubstr(folder_.File("config.yaml") + ":1:1: curent: unknown field"),
                    HasSubstr("did you mean \"current\"?")));
  const auto of = [this](const std::string& fields) {
    return Error("clusters:\n  lab:\n    " + fields + "\n");
  };
  EXPECT_THAT(of("coordinater: x:1"),
              AllOf(HasSubstr(":3:5: clusters.lab.coordinater: unknown field"),
                    HasSubstr("did you mean \"coordinator\"?")));
  EXPECT_THAT(of("ca: x"), HasSubstr("clusters.lab: coordinator is missing; want HOST:PORT"));
  EXPECT_THAT(of("coordinator: lab"),
              HasSubstr("clusters.lab.coordinator lab: no port; want lab:8001"));
  EXPECT_THAT(of("coordinator: [a]"), HasSubstr("clusters.lab.coordinator: want a text"));
  EXPECT_THAT(of("{coordinator: 'x:1', certs: c, token_file: t}"),
              HasSubstr("clusters.lab.certs: names all of"));
  EXPECT_THAT(of("{coordinator: 'x:1', ca: a, cert: c}"),
              HasSubstr("clusters.lab.key: is missing beside cert"));
  EXPECT_THAT(of("{coordinator: 'x:1', token_file: t}"), HasSubstr("clusters.lab.ca: is missing"));
  EXPECT_THAT(of("{coordinator: 'x:1', ca: a, cert: c, key: k, token_file: t}"),
              HasSubstr("clusters.lab.token_file: a token stands in place of a certificate"));
  EXPECT_THAT(of("{coordinator: 'x:1', ca: a}"), HasSubstr("clusters.lab.ca: stands alone"));
  EXPECT_THAT(Error("clusters: {a/b: {coordinator: 'x:1'}}\n"), HasSubstr("\"a/b\" is no name"));
  EXPECT_THAT(
      Error("current: lab\nclusters: {labs: {coordinator: 'x:1'}}\n"),
      HasSubstr(":1:10: current: lab: no cluster has this name; name one of clusters: labs"));
  EXPECT_THAT(Error("clusters: {lab: {coordinator: 'x:1'\n"),
              HasSubstr(folder_.File("config.yaml")));
  EXPECT_THAT(Error("- lab\n"), HasSubstr("want the fields current and clusters"));
  EXPECT_THAT(std::string(ReadProfile(folder_.path()).status().message()), HasSubstr("is no file"));
}

TEST_F(ProfileTest, AWrittenProfileReadsBackAndIsForItsOwnerAlone) {
  Profile profile;
  profile.file = folder_.File("a/b/config.yaml");
  profile.current = "null";
  profile.clusters["null"] = {.coordinator = "[::1]:8001", .certs = "/a b/\"c\": #d"};
  profile.clusters["0"] = {
      .coordinator = "x:1", .ca = "/ca.pem", .cert = "/tls.crt", .key = "/tls.key"};
  profile.clusters["t"] = {.coordinator = "dns:x", .ca = "/\xc3\xa9.pem", .token_file = "/token"};
  ASSERT_TRUE(WriteProfile(profile).ok());
  const absl::StatusOr<Profile> read = ReadProfile(profile.file);
  ASSERT_TRUE(read.ok()) << read.status() << FileText(profile.file);
  EXPECT_EQ(read->current, profile.current);
  EXPECT_EQ(read->clusters, profile.clusters);
  EXPECT_EQ(RightsOf(profile.file), 0600);
  EXPECT_EQ(RightsOf(folder_.File("a")), 0700);
  EXPECT_EQ(RightsOf(folder_.File("a/b")), 0700);
  // Again, over it, behind a link, with no other file left.
  std::filesystem::create_symlink(profile.file, folder_.File("link"));
  profile.file = folder_.File("link");
  profile.clusters.erase("0");
  ASSERT_TRUE(WriteProfile(profile).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(folder_.File("link")));
  EXPECT_EQ(ReadProfile(folder_.File("a/b/config.yaml"))->clusters, profile.clusters);
  const std::filesystem::directory_iterator entries(folder_.File("a/b"));
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

TEST_F(ProfileTest, WithoutAHomeThereIsNoPlaceForOne) {
  EXPECT_THAT(std::string(WriteProfile({}).message()),
              HasSubstr("neither HOME nor STAGECOACH_CONFIG is set"));
  EXPECT_TRUE(ReadProfile("").ok());
  EXPECT_THAT(std::string(FindCluster({}, "lab", "--cluster lab").status().message()),
              HasSubstr("--cluster lab: there is no profile"));
}

TEST_F(ProfileTest, ATokenThatOthersMayReadIsRefused) {
  const std::string token = folder_.Write("token", "secret");
  for (const int rights : {0644, 0640, 0620}) {
    std::filesystem::permissions(token, std::filesystem::perms(rights));
    EXPECT_THAT(std::string(CheckTokenFileRights(token, "clusters.lab.token_file: ").message()),
                AllOf(HasSubstr("clusters.lab.token_file: " + token + ": has the rights 06"),
                      HasSubstr("chmod 0600 " + token)));
  }
  std::filesystem::permissions(token, std::filesystem::perms(0600));
  EXPECT_TRUE(CheckTokenFileRights(token, "--token-file=").ok());
  EXPECT_EQ(CheckTokenFileRights(token + "s", "--token-file=").code(),
            absl::StatusCode::kInvalidArgument);
}

// The story: of clusters that were set at the same time, all but one could be lost.
TEST_F(ProfileTest, ChangesAtOnceAreAllKept) {
  constexpr int kChanges = 16;
  const std::string path = folder_.File("own/config.yaml");
  std::vector<std::future<absl::Status>> changes;
  for (int i = 0; i < kChanges; ++i) {
    changes.push_back(std::async(std::launch::async, [&path, i] {
      return ChangeProfile(path,
                           [i](Profile& profile) -> absl::StatusOr<std::string> {
                             profile.clusters["c" + std::to_string(i)] = {.coordinator = "x:1"};
                             return "set";
                           })
          .status();
    }));
  }
  for (std::future<absl::Status>& change : changes) {
    const absl::Status status = change.get();
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_EQ(ReadProfile(path)->clusters.size(), static_cast<size_t>(kChanges));
}

TEST_F(ProfileTest, AChangeThatFailsOrHasNoPlaceWritesNothing) {
  const auto change = [](Profile&) -> absl::StatusOr<std::string> {
    return absl::InvalidArgumentError("no");
  };
  const std::string path = folder_.File("config.yaml");
  EXPECT_EQ(ChangeProfile(path, change).status().message(), "no");
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_THAT(std::string(ChangeProfile("", change).status().message()),
              HasSubstr("there is no place for a profile"));
  EXPECT_THAT(std::string(ChangeProfile("/dev/null", change).status().message()),
              HasSubstr("/dev/null: is no file"));
}

TEST_F(ProfileTest, OneThatOthersMayWriteIsRefused) {
  const std::string path = folder_.Write("config.yaml", "clusters: {lab: {coordinator: 'x:1'}}\n");
  for (const int rights : {0664, 0602, 0666}) {
    std::filesystem::permissions(path, std::filesystem::perms(rights));
    EXPECT_THAT(std::string(ReadProfile(path).status().message()),
                AllOf(HasSubstr(path + ": has the rights 06"), HasSubstr("chmod go-w " + path)));
  }
  std::filesystem::permissions(path, std::filesystem::perms(0644));
  EXPECT_TRUE(ReadProfile(path).ok());
}

TEST_F(ProfileTest, TheOnlyClusterIsTheCurrentOne) {
  EXPECT_EQ(Read("clusters: {lab: {coordinator: 'x:1'}}\n")->current, "lab");
  EXPECT_EQ(Read("clusters: {a: {coordinator: 'x:1'}, b: {coordinator: 'x:1'}}\n")->current, "");
}

TEST_F(ProfileTest, ControlCharactersOfAValueAreShownAsText) {
  for (const char* text :
       {"clusters: {lab: {coordinator: \"x\\ny:1\"}}\n", "clusters: {lab: {\"a\\nb\": x}}\n",
        "current: \"a\\nb\"\nclusters: {lab: {coordinator: 'x:1'}}\n"}) {
    const std::string error = Error(text);
    EXPECT_THAT(error, HasSubstr("\\x0a")) << text;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

// Sets a variable, or unsets it, until its end.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* const old = std::getenv(name); old != nullptr) before_ = old;
    value != nullptr ? setenv(name, value, 1) : unsetenv(name);
  }
  ~Variable() { before_.has_value() ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* const name_;
  std::optional<std::string> before_;
};

TEST(ProfilePath, IsByVariableElseOfTheConfigurationFolderElseOfHome) {
  const Variable home("HOME", "/home/ann"), xdg("XDG_CONFIG_HOME", "/xdg");
  const Variable none("STAGECOACH_CONFIG", nullptr);
  EXPECT_EQ(ProfilePath(), "/xdg/stagecoach/config.yaml");
  {
    const Variable named("STAGECOACH_CONFIG", "mine.yaml");
    EXPECT_EQ(ProfilePath(), std::filesystem::current_path().string() + "/mine.yaml");
  }
  for (const char* no_folder : {"", "relative"}) {
    const Variable relative("XDG_CONFIG_HOME", no_folder);
    EXPECT_EQ(ProfilePath(), "/home/ann/.config/stagecoach/config.yaml");
    const Variable homeless("HOME", nullptr);
    EXPECT_EQ(ProfilePath(), "");
  }
}

}  // namespace
}  // namespace stagecoach
