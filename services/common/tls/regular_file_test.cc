#include "services/common/tls/regular_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "base/testing/status_is.h"
#include "base/testing/temporary_folder.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

TEST(TlsRegularFile, IsReadWholeAlsoBehindALink) {
  const TemporaryFolder folder;
  const std::string text(20000, 'x');
  std::filesystem::create_symlink(folder.Write("file", text), folder.File("link"));
  EXPECT_EQ(*ReadRegularFile(folder.File("link")), text);
  EXPECT_EQ(*ReadRegularFile(folder.Write("empty", "")), "");
}

TEST(TlsRegularFile, PipesFoldersAndDevicesAreRefusedAtOnce) {
  const TemporaryFolder folder;
  const std::string pipe = folder.File("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, folder.path(), std::string("/dev/zero")}) {
    EXPECT_THAT(ReadRegularFile(path).status(),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("is no regular file")))
        << path;
  }
}

TEST(TlsRegularFile, AMissingOrHugeOneIsRefused) {
  const TemporaryFolder folder;
  EXPECT_THAT(ReadRegularFile(folder.File("none")).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("cannot be read: No such file")));
  EXPECT_EQ(ReadRegularFile(folder.Write("file", "") + "/tls.crt").status().code(),
            absl::StatusCode::kNotFound);
  std::filesystem::resize_file(folder.File("file"), kMostPemBytes + 1);
  EXPECT_THAT(
      ReadRegularFile(folder.File("file")).status(),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("is larger than 16777216")));
}

}  // namespace
}  // namespace stagecoach
