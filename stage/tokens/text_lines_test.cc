#include "stage/tokens/text_lines.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/files/gzip_testing.h"
#include "base/testing/status_is.h"
#include "base/testing/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

using absl::StatusCode;
using std::string_literals::operator""s;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Lines; "/" behind a part of one that goes on. The file comes by so many bytes a read.
absl::StatusOr<std::vector<std::string>> Lines(const std::string& file, size_t most = 100,
                                               size_t a_read = 3) {
  std::vector<std::string> lines;
  size_t at = 0;
  const auto read = [&](std::span<uint8_t> into) -> absl::StatusOr<size_t> {
    const size_t count = std::min({a_read, into.size(), file.size() - at});
    std::copy_n(file.begin() + static_cast<ptrdiff_t>(at), count, into.begin());
    at += count;
    return count;
  };
  const auto take = [&](std::string_view part, bool ends) {
    lines.push_back(std::string(part) + (ends ? "" : "/"));
    return absl::OkStatus();
  };
  const absl::Status status = ReadLines(read, most, take);
  if (!status.ok()) return status;
  return lines;
}

TEST(TextLines, ALineEndsAtItsEndAndTheLastOneAtTheFilesEnd) {
  for (const size_t a_read : {1, 2, 3, 100}) {
    EXPECT_THAT(*Lines("", 100, a_read), ElementsAre());
    EXPECT_THAT(*Lines("one\n\ntwo\n", 100, a_read), ElementsAre("one", "", "two"));
    EXPECT_THAT(*Lines("one\ntwo", 100, a_read), ElementsAre("one", "two"));
    EXPECT_THAT(*Lines("\n", 100, a_read), ElementsAre(""));
  }
}

// Parts of a text, joined by "|"; at its end "$".
std::string Parts(const std::string& file, size_t most) {
  std::string parts;
  size_t at = 0;
  const auto read = [&](std::span<uint8_t> into) -> absl::StatusOr<size_t> {
    const size_t count = std::min({size_t{3}, into.size(), file.size() - at});
    std::copy_n(file.begin() + static_cast<ptrdiff_t>(at), count, into.begin());
    at += count;
    return count;
  };
  const auto take = [&](std::string_view part, bool ends) {
    parts += std::string(part) + (ends ? "$" : "|");
    return absl::OkStatus();
  };
  EXPECT_TRUE(ReadText(read, most, take).ok());
  return parts;
}

TEST(TextParts, HoldLineEndsAndBeginWhereAWordDoes) {
  EXPECT_EQ(Parts("", 100), "");
  EXPECT_EQ(Parts("\n", 100), "\n$");
  EXPECT_EQ(Parts("one\ntwo", 100), "one\ntwo$");
  EXPECT_EQ(Parts("one\r\ntwo\n\r\r", 100), "one\r\ntwo\n\r\r$");
  EXPECT_EQ(Parts("ab cd\r\nef gh\r\nij\r\n", 6), "ab cd\r\nef| gh\r\nij\r\n$");
  EXPECT_EQ(Parts("one\ntwo\n\n three\nfour\n/\n\u3000a\n\u3042\n", 8),
            "one\ntwo\n\n three\n|four\n/\n\u3000a\n|\u3042\n$");
  EXPECT_EQ(Parts("if (x) {\n  y;\n}\nelse\nz", 8), "if (x) {\n  y;\n}\n|else\nz$");
  std::string blank;
  for (int i = 0; i < 40; ++i) blank += "\n\t";
  EXPECT_EQ(Parts(blank, 8), blank.substr(0, 65) + "|" + blank.substr(65) + "$");
  // GPT-2's pattern has "\n\n" as one word at the end of a text, and as two in front of a word.
  EXPECT_EQ(Parts("one two\n\nthree 4\nfive", 8), "one two\n\nthree 4\n|five$");
  EXPECT_EQ(Parts("one t\u3000\nthree 4\nfive", 8), "one t\u3000\nthree 4\n|five$");
  EXPECT_EQ(Parts("aaaa bbbb cccc\nd", 8), "aaaa| bbbb| cccc\nd$");
}

TEST(TextLines, ALineMayEndWithACarriageReturn) {
  for (const size_t a_read : {1, 2, 3, 100}) {
    EXPECT_THAT(*Lines("one\r\n\r\ntwo\r\n", 100, a_read), ElementsAre("one", "", "two"));
    EXPECT_THAT(*Lines("one\r\ntwo\r", 100, a_read), ElementsAre("one", "two"));
    EXPECT_THAT(*Lines("o\rne\r\r\n", 100, a_read), ElementsAre("o\rne\r"));
    EXPECT_THAT(*Lines("aaaaaaaa\r\nb\n", 8, a_read), ElementsAre("aaaaaaaa/", "", "b"));
  }
}

TEST(TextLines, ALongLineIsCutAtASpaceElseBetweenCharacters) {
  EXPECT_THAT(*Lines("one two three\nfour", 8), ElementsAre("one two/", "three", "four"));
  EXPECT_THAT(*Lines("one two three four", 8, 100), ElementsAre("one two/", "three/", "four"));
  EXPECT_THAT(*Lines("éééééé", 9), ElementsAre("éééé/", "éé"));
  EXPECT_THAT(*Lines("🙂🙂🙂", 11), ElementsAre("🙂🙂/", "🙂"));
  EXPECT_THAT(*Lines(std::string(20, 'a'), 8), ElementsAre("aaaaaaaa/", "aaaaaaaa/", "aaaa"));
}

// Symptom: a last line whose last byte is the space where it was cut had no end.
TEST(TextLines, ALineThatIsCutAtItsLastByteEnds) {
  for (const size_t a_read : {1, 3, 100}) {
    for (const char* const end : {"", "\n"}) {
      EXPECT_THAT(*Lines(std::string("one\naaaaaaaa ") + end, 8, a_read),
                  ElementsAre("one", "aaaaaaaa/", ""));
    }
  }
}

TEST(TextLines, GzipIsUnpacked) {
  const std::string text = "one\ntwo three\n";
  for (const size_t a_read : {1, 7, 1000}) {
    EXPECT_THAT(*Lines(Gzipped(text), 100, a_read), ElementsAre("one", "two three"));
    EXPECT_THAT(*Lines(Gzipped(text) + Gzipped("four"), 100, a_read),
                ElementsAre("one", "two three", "four"));
  }
  const std::string packed = Gzipped(text);
  EXPECT_THAT(Lines(packed.substr(0, packed.size() - 3)).status(),
              StatusIs(StatusCode::kDataLoss,
                       AllOf(HasSubstr("is cut off"), HasSubstr("give the whole file"))));
  EXPECT_THAT(Lines(packed + "more").status(),
              StatusIs(StatusCode::kDataLoss, HasSubstr("something else behind it")));
}

TEST(TextLines, ALineThatIsNotUtf8IsNamed) {
  for (const std::string& bad : {"caf\xe9"s, "a\0b"s, "\xe6\x9d"s}) {
    EXPECT_THAT(Lines("one\ntwo\n" + bad + "\nfour\n").status(),
                StatusIs(StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("line 3 is not UTF-8"), HasSubstr("iconv"))));
  }
  EXPECT_THAT(Lines("one\n" + std::string(50, '\x80'), 8).status(),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("line 2 ")));
}

TEST(TextLines, AFileThatCannotBeReadIsNamed) {
  const TemporaryFolder folder;
  const auto take = [](std::string_view, bool) { return absl::OkStatus(); };
  EXPECT_THAT(ReadLinesOf(folder.File("gone"), 100, take),
              StatusIs(StatusCode::kNotFound, HasSubstr("/gone")));
  EXPECT_THAT(ReadLinesOf(folder.path(), 100, take),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("is a folder")));
  EXPECT_THAT(ReadLinesOf(folder.Write("bad", "\xff\n"), 100, take),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("/bad: line 1 ")));
}

}  // namespace
}  // namespace stagecoach
