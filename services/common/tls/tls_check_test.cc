#include "services/common/tls/tls_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "base/testing/status_is.h"
#include "base/testing/temporary_folder.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// What depends on certificates, clocks and peers is in tests/deploy/tls_test.py.
TEST(TlsCheck, NamesTheFileThatIsNotWhatItShouldBe) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("pem", "not a certificate");
  TlsFlags tls{true, path, path, path};
  const auto pems = ReadPems(tls);
  ASSERT_TRUE(pems.ok());
  EXPECT_THAT(CheckIdentity(tls, *pems), StatusIs(absl::StatusCode::kFailedPrecondition,
                                                  HasSubstr("--grpc-server-cert=" + path)));
  tls.server_key = path + ".missing";
  EXPECT_THAT(ReadPems(tls).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("--grpc-server-key=")));
}

// The story: a folder as --grpc-root-cert ended the program with an exception, and a pipe hung it.
TEST(TlsCheck, AFolderOrAPipeInTheFilesPlaceIsNamed) {
  const TemporaryFolder folder;
  const std::string pem = folder.Write("pem", "text"), pipe = folder.File("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {folder.path(), pipe}) {
    EXPECT_THAT(ReadPems({true, pem, pem, path}).status(),
                StatusIs(absl::StatusCode::kNotFound,
                         HasSubstr("--grpc-root-cert=" + path + ": is no regular file")));
  }
  const std::string empty = folder.Write("empty", "");
  EXPECT_THAT(ReadPems({true, pem, pem, empty}).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(empty + ": is empty")));
}

TEST(TlsCheck, AKeyThatOthersMayReadOrWriteIsNamedWithTheRemedy) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("key", "a key");
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
