// Where credentials come from, when they are read again, and what is told where there are none.
#include "services/common/s3/s3_credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/testing/manual_clock.h"
#include "base/testing/status_is.h"
#include "base/testing/temporary_folder.h"
#include "services/common/http/http_server.h"
#include "services/common/s3/s3_location.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class S3CredentialsTest : public ::testing::Test {
 protected:
  S3CredentialsTest() {
    variables_ = {{"HOME", folder_.path()}, {"AWS_EC2_METADATA_DISABLED", "true"}};
  }
  void WriteFile(const std::string& text, mode_t rights = 0600) {
    const std::string path = folder_.File("credentials");
    std::ofstream(path) << text;
    chmod(path.c_str(), rights);
    variables_["AWS_SHARED_CREDENTIALS_FILE"] = path;
  }

  TemporaryFolder folder_;
  std::map<std::string, std::string> variables_;
  ManualClock clock_;
  HttpTransfer transfer_;
  S3CredentialSource source_{&transfer_, &clock_,
                             [this](const std::string& name) { return variables_[name]; }};
};

TEST_F(S3CredentialsTest, TheEnvironmentComesBeforeTheFile) {
  WriteFile("[default]\naws_access_key_id = of-file\naws_secret_access_key=s\n");
  variables_["AWS_ACCESS_KEY_ID"] = "of-environment";
  EXPECT_THAT(source_.Get().status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("set both or none")));
  variables_["AWS_SECRET_ACCESS_KEY"] = "secret";
  variables_["AWS_SESSION_TOKEN"] = "token";
  EXPECT_EQ(source_.Get()->access_key, "of-environment");
  EXPECT_EQ(source_.Get()->session_token, "token");
}

TEST_F(S3CredentialsTest, AProfileOfTheFileIsRead) {
  WriteFile(
      "# a comment\n[default]\naws_access_key_id = a\naws_secret_access_key = b\n\n"
      "[other]\naws_access_key_id=c\naws_secret_access_key = d=e\n");
  EXPECT_EQ(source_.Get()->access_key, "a");
  source_.Forget();
  variables_["AWS_PROFILE"] = "other";
  EXPECT_EQ(source_.Get()->access_key, "c");
  EXPECT_EQ(source_.Get()->secret_key, "d=e");
}

TEST_F(S3CredentialsTest, AFileThatOthersMayReadIsRefused) {
  WriteFile("[default]\naws_access_key_id = a\naws_secret_access_key = b\n", 0644);
  EXPECT_THAT(source_.Get().status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("chmod 0600")));
}

TEST_F(S3CredentialsTest, WithoutAnyThePlacesAreNamed) {
  EXPECT_THAT(source_.Get().status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("AWS_ACCESS_KEY_ID is not set"),
                             HasSubstr("/.aws/credentials has no part [default]"),
                             HasSubstr("no instance role"))));
}

TEST_F(S3CredentialsTest, TheInstanceRolesAreRenewedBeforeTheyExpire) {
  int fetched = 0;
  HttpServer service;
  service.HandleBelow("/latest/", [&](const HttpRequest& request) -> HttpResponse {
    if (request.method == "PUT") return {.body = "token"};
    if (HeaderOf(request, "x-aws-ec2-metadata-token") != "token") return {.status = 401};
    if (!request.path.ends_with("/role-1")) return {.body = "role-1\n"};
    const auto expires = static_cast<int64_t>(clock_.UnixSeconds()) + 3600;
    return {.body =
                absl::StrCat(R"({"AccessKeyId":"key-)", ++fetched,
                             R"(","SecretAccessKey":"s","Token":"t","Expiration":")",
                             absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixSeconds(expires),
                                              absl::UTCTimeZone()),
                             R"("})")};
  });
  ASSERT_TRUE(service.Start("127.0.0.1:0").ok());
  variables_["AWS_EC2_METADATA_DISABLED"] = "";
  variables_["AWS_EC2_METADATA_SERVICE_ENDPOINT"] =
      absl::StrCat("http://127.0.0.1:", service.port(), "/");
  const absl::StatusOr<S3Credentials> first = source_.Get();
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->access_key, "key-1");
  EXPECT_EQ(first->session_token, "t");
  EXPECT_EQ(source_.Get()->access_key, "key-1") << "kept";
  clock_.AdvanceNanos(int64_t{3400} * 1'000'000'000);
  EXPECT_EQ(source_.Get()->access_key, "key-2");
  service.Stop();
  clock_.AdvanceNanos(int64_t{3400} * 1'000'000'000);
  EXPECT_EQ(source_.Get()->access_key, "key-2") << "still good";
  clock_.AdvanceNanos(int64_t{300} * 1'000'000'000);
  EXPECT_FALSE(source_.Get().ok());
}

TEST(S3Location, AddressesByStyle) {
  const S3Location aws = *ParseS3Location("s3://bucket/a/b", "", "eu-central-1");
  EXPECT_EQ(aws.base, "https://bucket.s3.eu-central-1.amazonaws.com");
  EXPECT_EQ(aws.PathOf("k"), "/k");
  const S3Location own = *ParseS3Location("s3://bucket", "http://127.0.0.1:8333/", "");
  EXPECT_EQ(own.base, "http://127.0.0.1:8333");
  EXPECT_EQ(own.PathOf("k"), "/bucket/k");
  EXPECT_EQ(own.PathOf(""), "/bucket");
  EXPECT_EQ(own.region, "us-east-1");
  EXPECT_TRUE(ParseS3Location("s3://a.b.c", "", "")->path_style);
  for (const char* const bad : {"s3://", "s3://ab", "s3://bucket/a//b", "s3://bucket/../x",
                                "s3://bucket/a b", "folderr", "s3://bu_cket"}) {
    EXPECT_THAT(ParseS3Location(bad, "", "").status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("s3://BUCKET/PREFIX")));
  }
  EXPECT_FALSE(ParseS3Location("s3://bucket", "127.0.0.1:1", "").ok());
  EXPECT_FALSE(ParseS3Location("s3://bucket", "http://a/b", "").ok());
}

}  // namespace
}  // namespace stagecoach
