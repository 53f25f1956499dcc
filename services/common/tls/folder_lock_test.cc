#include "services/common/tls/folder_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <optional>
#include <string>
#include <utility>

#include "base/testing/status_is.h"
#include "base/testing/temporary_folder.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

TEST(TlsFolderLock, ASecondOneWaitsAndThenNamesTheFolder) {
  const TemporaryFolder folder;
  std::optional<FolderLock> first(*FolderLock::Take(folder.path()));
  EXPECT_THAT(FolderLock::Take(folder.path(), std::chrono::milliseconds(20)).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr(folder.path() + ": another command has used this folder")));
  std::future<absl::Status> second =
      std::async(std::launch::async, [&] { return FolderLock::Take(folder.path()).status(); });
  first.reset();
  EXPECT_TRUE(second.get().ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "it leaves no file";
}

TEST(TlsFolderLock, AMovedLockStaysTaken) {
  const TemporaryFolder folder;
  FolderLock first = *FolderLock::Take(folder.path());
  const FolderLock moved = std::move(first);
  EXPECT_FALSE(FolderLock::Take(folder.path(), std::chrono::milliseconds(0)).ok());
}

TEST(TlsFolderLock, WhatIsNoFolderIsNamed) {
  const TemporaryFolder folder;
  EXPECT_THAT(std::string(FolderLock::Take(folder.Write("file", "")).status().message()),
              HasSubstr(folder.File("file") + ": open the folder: "));
}

}  // namespace
}  // namespace stagecoach
