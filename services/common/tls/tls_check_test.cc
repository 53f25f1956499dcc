#include "services/common/tls/tls_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// What depends on certificates, clocks and peers is in tests/deploy/tls_test.py.
TEST(TlsCheck, NamesTheFileThatIsNotWhatItShouldBe) {
  const std::string path =
      testing::TempDir() + "/tls_check_test_" + std::to_string(getpid()) + ".pem";
  std::ofstream(path) << "not a certificate";
  TlsFlags tls{true, path, path, path};
  const auto pems = ReadPems(tls);
  ASSERT_TRUE(pems.ok());
  const absl::Status refused = CheckIdentity(tls, *pems);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("--grpc-server-cert=" + path));
  tls.server_key = path + ".missing";
  EXPECT_EQ(ReadPems(tls).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(ReadPems(tls).status().message()), HasSubstr("--grpc-server-key="));
}

TEST(TlsCheck, AKeyThatOthersMayReadOrWriteIsNamedWithTheRemedy) {
  const std::string path =
      testing::TempDir() + "/tls_check_test_" + std::to_string(getpid()) + ".key";
  std::ofstream(path) << "a key";
  const TlsFlags tls{true, path, path, path};
  ASSERT_EQ(chmod(path.c_str(), 0666), 0);
  EXPECT_THAT(OpenKeyWarning(tls),
              AllOf(HasSubstr("--grpc-server-key=" + path + " has the rights 0666"),
                    HasSubstr("chmod 0600 " + path)));
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  EXPECT_THAT(OpenKeyWarning(tls), HasSubstr("0640"));
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  EXPECT_EQ(OpenKeyWarning(tls), "");
}

TEST(TlsCheck, LeavesOtherErrorsAsTheyAre) {
  const absl::Status missing = absl::NotFoundError("no such job");
  EXPECT_EQ(WithTlsReason(missing, "127.0.0.1:1", TlsFlags{}), missing);
  // Nothing listens there: gRPC's own message is the better one.
  const absl::Status gone = absl::UnavailableError("connection refused");
  EXPECT_EQ(WithTlsReason(gone, "127.0.0.1:1", TlsFlags{}), gone);
  EXPECT_EQ(ExplainTlsFailure("no-port", TlsFlags{}), "");
}

}  // namespace
}  // namespace stagecoach
