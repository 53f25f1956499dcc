#include "stage/data/formats/line_file.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/gzip_testing.h"
#include "base/files/hash.h"
#include "base/testing/status_is.h"
#include "base/testing/temporary_folder.h"
#include "base/threads/progress.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage/data/parallel/pair_set.h"
#include "stage/files/any_file_testing.h"

namespace stagecoach {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Lines = std::vector<std::string>;

class LineFileTest : public testing::Test {
 protected:
  absl::StatusOr<Lines> LinesOf(const std::string& stored) {
    ASSIGN_OR_RETURN(
        const std::unique_ptr<LineFile> file,
        LineFile::Open(AnyFile(), "data.x", folder_.Write("file", stored), SentenceLines()));
    Lines lines;
    for (;;) {
      ASSIGN_OR_RETURN(const std::optional<std::string_view> line, file->Next());
      if (!line.has_value()) break;
      lines.emplace_back(*line);
      EXPECT_EQ(file->line(), std::ssize(lines));
    }
    EXPECT_EQ(file->Digest(), Sha256Hex(stored));
    EXPECT_EQ(file->stored_bytes(), std::ssize(stored));
    return lines;
  }
  void ExpectRefused(const std::string& stored, absl::StatusCode code, const std::string& part) {
    EXPECT_THAT(LinesOf(stored).status(),
                StatusIs(code, AllOf(HasSubstr("data.x = \""), HasSubstr(part))));
  }
  const TemporaryFolder folder_;
};

TEST_F(LineFileTest, EndsLinesAtNewlinesAndAtTheEnd) {
  EXPECT_THAT(*LinesOf("a\nb c\n"), ElementsAre("a", "b c"));
  EXPECT_THAT(*LinesOf("a\n\nb"), ElementsAre("a", "", "b"));
  EXPECT_THAT(*LinesOf("a\r\nb\r\n"), ElementsAre("a", "b"));
  EXPECT_THAT(*LinesOf("\n"), ElementsAre(""));
  EXPECT_THAT(*LinesOf(Gzipped("a\nb c\n")), ElementsAre("a", "b c"));
  EXPECT_THAT(*LinesOf(Gzipped("a\n") + Gzipped("b\n")), ElementsAre("a", "b"));
  EXPECT_THAT(*LinesOf(Gzipped("")), IsEmpty());
}

// A line may lie in several pieces of the file, and a piece has many lines.
TEST_F(LineFileTest, ReadsFilesOfManyPieces) {
  Lines lines;
  std::string text;
  for (size_t i = 0; text.size() < size_t{5} << 20; ++i) {
    lines.push_back(absl::StrCat(i, std::string(i * 7919 % kMostSentenceBytes, 'x')));
    lines.back().resize(std::min(lines.back().size(), kMostSentenceBytes));
    absl::StrAppend(&text, lines.back(), "\n");
  }
  for (const std::string& stored : {text, Gzipped(text)}) {
    const absl::StatusOr<Lines> read = LinesOf(stored);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, lines);
  }
}

TEST_F(LineFileTest, ALineOfOver64KiBIsNamedWithItsBytes) {
  const std::string most(kMostSentenceBytes, 'x');
  EXPECT_THAT(*LinesOf("a\n" + most + "\nb\n"), ElementsAre("a", most, "b"));
  for (const size_t bytes : {kMostSentenceBytes + 1, size_t{3} << 20}) {
    for (const char* const end : {"\nb\n", ""}) {
      const std::string text = "a\n" + std::string(bytes, 'x') + end;
      for (const std::string& stored : {text, Gzipped(text)}) {
        ExpectRefused(stored, absl::StatusCode::kInvalidArgument,
                      absl::StrCat("line 2: has ", bytes, " bytes; at most 65536"));
      }
    }
  }
}

TEST_F(LineFileTest, WhatIsNoTextIsCalledByItsName) {
  ExpectRefused("", absl::StatusCode::kInvalidArgument, "the file is empty");
  ExpectRefused("PK\x03\x04", absl::StatusCode::kInvalidArgument, "zip");
  ExpectRefused("\xff\xfe" + std::string("a\0\n\0", 4), absl::StatusCode::kInvalidArgument,
                "UTF-16");
}

TEST_F(LineFileTest, DamagedGzipDataIsNoEndOfLines) {
  const std::string good = Gzipped("one\ntwo\nthree\n");
  ExpectRefused(good.substr(0, good.size() - 4), absl::StatusCode::kDataLoss, "is cut off");
  ExpectRefused(good + "more", absl::StatusCode::kDataLoss, "has something else behind it");
  std::string damaged = good;
  damaged[damaged.size() - 6] ^= 1;  // of the checksum
  EXPECT_THAT(LinesOf(damaged).status(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("file")));
}

TEST_F(LineFileTest, AMissingFileIsNamed) {
  EXPECT_THAT(LineFile::Open(AnyFile(), "data.x", folder_.File("none"), SentenceLines()).status(),
              StatusIs(absl::StatusCode::kNotFound, AllOf(HasSubstr("data.x"), HasSubstr("none"))));
}

}  // namespace
}  // namespace stagecoach
