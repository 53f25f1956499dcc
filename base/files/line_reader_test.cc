#include "base/files/line_reader.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/gzip_testing.h"
#include "base/testing/status_is.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

using absl::StatusCode;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Gives a file by so many bytes a read.
LineReader::Read ByPieces(const std::string& file, size_t a_read) {
  return
      [&file, a_read, at = size_t{0}](std::span<uint8_t> into) mutable -> absl::StatusOr<size_t> {
        const size_t count = std::min({a_read, into.size(), file.size() - at});
        std::copy_n(file.begin() + static_cast<ptrdiff_t>(at), count, into.begin());
        at += count;
        return count;
      };
}

// "line:bytes so far:text", with "/" behind a part of a line that goes on.
absl::StatusOr<std::vector<std::string>> PartsOf(const std::string& file, size_t most,
                                                 size_t a_read = 3) {
  LineReader reader(ByPieces(file, a_read), most);
  std::vector<std::string> parts;
  while (true) {
    absl::StatusOr<std::optional<LineReader::Part>> part = reader.Next();
    if (!part.ok()) return part.status();
    if (!part->has_value()) return parts;
    parts.push_back(absl::StrCat(reader.line(), ":", reader.line_bytes(), ":",
                                 std::string((*part)->text), (*part)->ends ? "" : "/"));
  }
}

TEST(LineReaderTest, CountsLinesAndTheBytesOfTheirParts) {
  for (const size_t a_read : {1, 3, 100}) {
    EXPECT_THAT(*PartsOf("a\n\nb c", 8, a_read), ElementsAre("1:1:a", "2:0:", "3:3:b c"));
    EXPECT_THAT(*PartsOf("one two three\r\nfour", 8, a_read),
                ElementsAre("1:8:one two/", "1:13:three", "2:4:four"));
  }
}

// The parts of a text one behind the other, with "/" between them.
std::string Cut(std::string_view text, size_t most, CutSpace space) {
  std::string parts;
  while (text.size() > most) {
    const TextCut cut = CutText(text, most, space);
    absl::StrAppend(&parts, std::string(text.substr(0, cut.part)), "/");
    text.remove_prefix(cut.next);
  }
  return parts + std::string(text);
}

TEST(LineReaderTest, ASpaceAtWhichALineIsCutIsLeftOutOrBeginsAPart) {
  EXPECT_EQ(Cut("one two three four", 8, CutSpace::kLeftOut), "one two/three/four");
  EXPECT_EQ(Cut("one two three four", 8, CutSpace::kBeginsPart), "one two/ three/ four");
  EXPECT_EQ(Cut("one two   three", 9, CutSpace::kBeginsPart), "one/ two  / three")
      << "two words before a run of spaces";
  EXPECT_EQ(Cut("     three four", 8, CutSpace::kBeginsPart), "    / three/ four");
  EXPECT_EQ(Cut("          ", 8, CutSpace::kBeginsPart), "        /  ");
  EXPECT_EQ(Cut(" aaaaaaaaaa", 8, CutSpace::kBeginsPart), " aaaaaaa/aaa");
  EXPECT_EQ(Cut("\u00e9\u00e9\u00e9\u00e9\u00e9", 9, CutSpace::kBeginsPart),
            "\u00e9\u00e9\u00e9\u00e9/\u00e9");
}

TEST(LineReaderTest, CountsTheUnpackedText) {
  const std::string text = "one\ntwo\n", packed = Gzipped(text);
  for (const std::string& file : {text, packed}) {
    LineReader reader(ByPieces(file, 5), 100);
    while ((*reader.Next()).has_value()) continue;
    EXPECT_EQ(reader.text_bytes(), std::ssize(text));
    EXPECT_EQ(reader.packed(), file == packed);
  }
}

TEST(LineReaderTest, DamageOfGzipSaysWhatToDo) {
  const std::string good = Gzipped("one\ntwo\n");
  std::string damaged = good;
  damaged[damaged.size() - 6] ^= 1;  // of the checksum
  const auto expect = [](const std::string& file, const char* part) {
    EXPECT_THAT(PartsOf(file, 100).status(),
                StatusIs(StatusCode::kDataLoss,
                         AllOf(HasSubstr(part), HasSubstr("; give the whole file"))));
  };
  expect(good.substr(0, good.size() - 3), "its gzip data is cut off");
  expect(good + "more", "its gzip data has something else behind it");
  expect(damaged, "its gzip checksum does not hold");
}

}  // namespace
}  // namespace stagecoach
