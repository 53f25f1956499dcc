#include "plan/data/text_file.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/numbers/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/data/text.h"

namespace stagecoach {
namespace {

using std::string_literals::operator""s;
using testing::AllOf;
using testing::HasSubstr;

TextData Data(bool bytes = false) { return {.path = "/data/corpus", .bytes = bytes}; }

std::string Random(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(RandomBits({.seed = 4}, i));
  return bytes;
}

// Each character in `width` bytes, its code in the byte number `place`.
std::string Wide(const std::string& text, size_t width, size_t place) {
  std::string wide(text.size() * width, '\0');
  for (size_t i = 0; i < text.size(); ++i) wide[i * width + place] = text[i];
  return wide;
}

std::string Tar(const std::string& content) {
  std::string header(512, '\0');
  header.replace(0, 8, "text.txt");
  header.replace(257, 5, "ustar");
  return header + content;
}

const std::string kEnglish =
    "All happy families are alike; each unhappy family is unhappy in its own way.\n";

// Seen: a job whose data.text.path was a gzip file trained for an hour to SUCCEEDED.
TEST(TextCheck, ACompressedFileIsNamedAndNotTrainedOn) {
  const absl::Status status = CheckIsText(Data(), "\x1f\x8b\x08\0"s + Random(5000));
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("data.text.path = \"/data/corpus\""), HasSubstr("gzip"),
                    HasSubstr("unpack it first"), HasSubstr("data.text.bytes: true")));
}

TEST(TextCheck, WhatPlainlyIsNotTextIsCalledByItsName) {
  const std::vector<std::pair<std::string, std::string>> files = {
      {"\x1f\x8b\x08\0"s, "gzip"},
      {"\x28\xb5\x2f\xfd"s, "zstd"},
      {"\xfd"s + "7zXZ\0"s, "xz"},
      {"BZh91AY&SY", "bzip2"},
      {"\x04\x22\x4d\x18"s, "lz4"},
      {"PK\x03\x04", "zip"},
      {Tar(kEnglish), "tar"},
      {"\x7f"s + "ELF\x02\x01\x01\0"s, "ELF"},
      {"%PDF-1.7\n", "PDF"},
      {"\x89PNG\r\n\x1a\n", "PNG"},
      {"\xff\xd8\xff\xe0", "JPEG"},
      {"SQLite format 3\0"s, "SQLite"},
      {"\xff\xfe"s + Wide(kEnglish, 2, 0), "UTF-16"},
      {"\xfe\xff"s + Wide(kEnglish, 2, 1), "UTF-16"},
      {"\xff\xfe\0\0"s + Wide(kEnglish, 4, 0), "UTF-32"},
      {"\0\0\xfe\xff"s + Wide(kEnglish, 4, 3), "UTF-32"},
      {Wide(kEnglish, 2, 0), "UTF-16 without"},
      {Wide(kEnglish, 2, 1), "UTF-16 without"},
      {Wide(kEnglish, 4, 0), "UTF-32 without"},
      {Wide(kEnglish, 4, 3), "UTF-32 without"},
      {Random(3000), "binary data"},
      {std::string(100, '\0'), "begins with zeros"},
  };
  for (const auto& [head, name] : files) {
    const absl::Status status = CheckIsText(Data(), head);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << name << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
    EXPECT_TRUE(CheckIsText(Data(true), head).ok()) << name;
  }
}

TEST(TextCheck, TextsOfManyKindsPass) {
  std::string latin1, cyrillic;
  for (int i = 0; i < 2000; ++i) latin1 += static_cast<char>(0xa0 + i % 96);
  for (int i = 0; i < 2000; ++i) cyrillic += "\xd0\x96\xd0\xb8 ";
  for (const std::string& text : {
           ""s, "a"s, kEnglish,
           "\xef\xbb\xbf" + kEnglish,  // UTF-8 with its mark
           cyrillic, "\xe6\x96\x87\xe5\xad\x97"s, latin1, "BZh is how a bzip2 file begins\r\n"s,
           "\x1b[31mred\x1b[0m\t_\bu_\bn\f\n"s,
           kEnglish + kEnglish + "\0"s + kEnglish,  // a stray one
       }) {
    const absl::Status status = CheckIsText(Data(), text);
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST(TextCheck, JudgesByTheHeadAlone) {
  std::string text;
  while (text.size() < kTextCheckBytes) text += kEnglish;
  text.resize(kTextCheckBytes);
  EXPECT_TRUE(CheckIsText(Data(), text + Random(1 << 20)).ok());
}

JobSpec SpecThatEvaluates(bool evaluates) {
  JobSpec spec;
  spec.data = TextData{.path = "/texts/short"};
  spec.evaluation.every_steps = evaluates ? 1 : 0;
  return spec;
}

TEST(TextSplit, EveryByteIsOfOnePartAndASequenceHasItsTarget) {
  for (const int64_t bytes : {0, 1, 9, 10, 11, 99, 1000, 12345}) {
    const TokenSplit split = SplitTokens(bytes, 8);
    EXPECT_EQ(split.train_tokens, bytes * 9 / 10);
    for (const auto& [part, sequences] :
         {std::pair(split.train_tokens, split.train_sequences),
          std::pair(bytes - split.train_tokens, split.evaluation_sequences)}) {
      EXPECT_LE(sequences * 8 + (sequences > 0 ? 1 : 0), part) << bytes;
      EXPECT_GT((sequences + 1) * 8 + 1, part) << bytes;
    }
  }
}

// The size that a refusal asks for is enough, and one byte less is not.
TEST(TextSplit, ARefusalNamesTheLeastSizeThatDoes) {
  for (const bool evaluates : {false, true}) {
    const JobSpec spec = SpecThatEvaluates(evaluates);
    for (const int64_t context : {1, 2, 7, 8, 9, 10, 64, 1023}) {
      int64_t least = 0;
      while (!CheckTextLength(spec, context, least).ok()) ++least;
      for (const int64_t bytes : {int64_t{0}, least / 2, least - 1}) {
        const absl::Status refused = CheckTextLength(spec, context, bytes);
        EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
        EXPECT_THAT(std::string(refused.message()),
                    AllOf(HasSubstr(absl::StrCat("\"/texts/short\" of ", bytes, " bytes")),
                          HasSubstr(absl::StrCat("at least ", least, " bytes"))));
      }
    }
  }
}

TEST(TextSplit, WhoEvaluatesByEpochsNeedsAHeldOutSequenceToo) {
  JobSpec spec = SpecThatEvaluates(false);
  EXPECT_TRUE(CheckTextLength(spec, 10, 60).ok());
  spec.evaluation.every_epochs = 0.5;
  EXPECT_THAT(std::string(CheckTextLength(spec, 10, 60).message()),
              AllOf(HasSubstr("the 10 % held out hold no sequence"),
                    HasSubstr("or no evaluation (evaluation.every_steps, ")));
}

TEST(TextSplit, AnEmptyFileIsCalledSo) {
  const absl::Status refused = CheckTextLength(SpecThatEvaluates(false), 16, 0);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("is empty"));
}

TEST(TextSplit, WithATestFileAllOfTheTextIsTrainedOn) {
  const TokenSplit split = SplitTokens(100, 8, 25);
  EXPECT_EQ(split.train_tokens, 100);
  EXPECT_EQ(split.train_sequences, 12);
  EXPECT_EQ(split.evaluation_sequences, 3);
}

TEST(TextSplit, ATestFileThatIsTooShortIsNamed) {
  JobSpec spec = SpecThatEvaluates(true);
  spec.data = TextData{.path = "/texts/train", .test = "/texts/held-out"};
  EXPECT_TRUE(CheckTextLength(spec, 8, 9).ok());
  EXPECT_THAT(std::string(CheckTextLength(spec, 8, 8).message()),
              AllOf(HasSubstr("data.text.path = \"/texts/train\" of 8 bytes: holds no sequence"),
                    HasSubstr("at least 9 bytes")));
  EXPECT_TRUE(CheckTestLength(spec, 8, 9).ok());
  EXPECT_THAT(std::string(CheckTestLength(spec, 8, 8).message()),
              AllOf(HasSubstr("data.text.test = \"/texts/held-out\" of 8 bytes: holds no sequence"),
                    HasSubstr("at least 9 bytes"), HasSubstr("no evaluation")));
  spec.evaluation.every_steps = 0;
  EXPECT_TRUE(CheckTestLength(spec, 8, 0).ok());
}

TEST(TextSplit, ATokenizersTextIsMeasuredInTokens) {
  JobSpec spec = SpecThatEvaluates(false);
  spec.data = TextData{.path = "/texts/short", .tokenizer = "/texts/model"};
  EXPECT_THAT(std::string(CheckTextLength(spec, 8, 3).message()),
              AllOf(HasSubstr("of 3 tokens"), HasSubstr("at least 10 tokens")));
}

TEST(TextCheck, ATestFileIsNamedByItsOwnField) {
  const TextData data = {.path = "/a", .tokenizer = "/m", .test = "/held-out"};
  EXPECT_THAT(std::string(CheckIsText(data, "\x1f\x8b\x08\0"s, "test").message()),
              AllOf(HasSubstr("data.text.test = \"/held-out\": looks like gzip"),
                    testing::Not(HasSubstr("data.text.bytes"))));
}

}  // namespace
}  // namespace stagecoach
