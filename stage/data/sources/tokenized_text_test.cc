// Texts that a tokenizer turns into ids, and the cache of these.
#include <signal.h>
#include <sys/resource.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "stage/data/sources/text_source_testing.h"
#include "stage/tokens/model_file_testing.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

// Ids 0 to 3 are special, 4 is the space mark, '!' is 5.
int32_t IdOf(char c) { return c == ' ' ? 4 : c == '\n' ? 3 : c - '!' + 5; }

class TokenizedTextTest : public TextSourceTest {
 protected:
  TokenizedTextTest() {
    spec_.data = TextData{.path = folder_.File("text"),
                          .tokenizer = folder_.Write("model", ModelFileText(LetterPieces()))};
    spec_.network = GptSpec{.vocabulary = 99};
  }
  static std::string Lines(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) absl::StrAppend(&text, "line ", i % 7, " of ", i, "\n");
    return text;
  }
  // Of the whole text, as the source defines them.
  static std::vector<int32_t> IdsOf(const std::string& text) {
    std::vector<int32_t> ids;
    bool line_begins = true;
    for (const char c : text) {
      if (line_begins && c != '\n') ids.push_back(IdOf(' '));
      ids.push_back(IdOf(c));
      line_begins = c == '\n';
    }
    return ids;
  }
  absl::StatusOr<std::unique_ptr<BatchSource>> TryOpenIds(int64_t vocabulary = 99,
                                                          SourceLook look = SourceLook::kTrain) {
    return OpenSource(spec_, NetworkOnText(10, vocabulary), kTextInputs, *roots_, look);
  }
  std::unique_ptr<BatchSource> OpenIds() {
    auto source = TryOpenIds();
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? *std::move(source) : nullptr;
  }
  std::vector<std::string> Cached() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(cache_)) {
      names.push_back(entry.path().string());
    }
    return names;
  }
  void ExpectIdsRefused(const std::vector<std::string>& parts, int64_t vocabulary = 99) {
    const absl::Status status = TryOpenIds(vocabulary).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    for (const std::string& part : parts) {
      EXPECT_THAT(std::string(status.message()), HasSubstr(part));
    }
  }

  const std::string cache_ = folder_.MakeFolder("cache");
  const std::unique_ptr<DataRoots> roots_ = DataRoots::Everything({}, cache_);
};

TEST_F(TokenizedTextTest, EachLineIsEncodedAndItsEndIsTheEndId) {
  const std::string text = "\n" + Lines(60) + "last";
  Write(text);
  const std::vector<int32_t> ids = [&] {
    std::vector<int32_t> all = IdsOf(text);
    all.push_back(3);  // the last line ends with the file
    return all;
  }();
  const auto source = OpenIds();
  const auto train = static_cast<int64_t>(ids.size() * 9 / 10);
  EXPECT_EQ(source->manifest().train_samples, (train - 1) / 10);
  EXPECT_EQ(source->manifest().bytes, static_cast<int64_t>(text.size()));
  const TokenBatch held_out = Evaluate(*source, 0, 0);
  for (size_t i = 0; i < held_out.inputs.size(); ++i) {
    EXPECT_EQ(held_out.inputs[i], ids[static_cast<size_t>(train) + i]);
    EXPECT_EQ(held_out.targets[i], ids[static_cast<size_t>(train) + i + 1]);
  }
}

TEST_F(TokenizedTextTest, LinesOfWindowsHaveTheSameIds) {
  const std::string text = Lines(100);
  Write(text);
  const std::vector<int32_t> ids = Train(*OpenIds(), 5, 1).inputs;
  Write(absl::StrReplaceAll(text, {{"\n", "\r\n"}}));
  EXPECT_EQ(Train(*OpenIds(), 5, 1).inputs, ids);
}

TEST_F(TokenizedTextTest, IdsAreMadeOnceAndFoundByTheContent) {
  Write(Lines(100));
  const TokenBatch first = Train(*OpenIds(), 5, 1);
  ASSERT_EQ(Cached().size(), 1u);
  const std::string kept = Cached().front();
  const auto written = std::filesystem::last_write_time(kept);
  // The name does not count.
  std::filesystem::rename(folder_.File("text"), folder_.File("moved"));
  spec_.data.attributes.Set("path", folder_.File("moved"));
  EXPECT_EQ(Train(*OpenIds(), 5, 1).inputs, first.inputs);
  EXPECT_EQ(Cached(), std::vector<std::string>{kept});
  EXPECT_EQ(std::filesystem::last_write_time(kept), written);
  folder_.Write("moved", Lines(101));
  OpenIds();
  EXPECT_EQ(Cached().size(), 2u);
}

// A cache is never trusted.
TEST_F(TokenizedTextTest, ACacheFileThatIsTornOrDamagedIsMadeAgain) {
  Write(Lines(100));
  const TokenBatch good = Train(*OpenIds(), 5, 1);
  ASSERT_EQ(Cached().size(), 1u);
  const std::string kept = Cached().front();
  std::ifstream file(kept, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> bad = {"",
                                  bytes.substr(0, 100),
                                  bytes.substr(0, bytes.size() - 4),
                                  bytes.substr(4),
                                  bytes + bytes,
                                  std::string(bytes.size(), '\0')};
  for (const size_t at : {size_t{0}, bytes.size() / 2, bytes.size() - 150, bytes.size() - 1}) {
    bad.push_back(bytes);
    bad.back()[at] = static_cast<char>(bad.back()[at] ^ 1);
  }
  for (const std::string& other : bad) {
    std::ofstream(kept, std::ios::binary | std::ios::trunc) << other;
    EXPECT_EQ(Train(*OpenIds(), 5, 1).inputs, good.inputs);
    EXPECT_EQ(std::filesystem::file_size(kept), bytes.size());
    EXPECT_EQ(Cached().size(), 1u) << "nothing unfinished is left";
  }
}

TEST_F(TokenizedTextTest, AnotherTokenizerIsAnotherDataSet) {
  Write(Lines(100));
  const std::string digest = OpenIds()->manifest().sha256;
  EXPECT_EQ(OpenIds()->manifest().sha256, digest);
  folder_.Write("model", ModelFileText(LetterPieces(), WireNumber(3, 2)));
  EXPECT_NE(OpenIds()->manifest().sha256, digest);
  EXPECT_EQ(Cached().size(), 2u);
}

TEST_F(TokenizedTextTest, TheNetworkMustHaveAsManyIds) {
  Write(Lines(100));
  spec_.network = GptSpec{.vocabulary = 98};
  ExpectIdsRefused({"data.text.tokenizer = ", "has 99 ids", "model.gpt.vocabulary = 98",
                    "set model.gpt.vocabulary to 99"},
                   98);
  spec_.network = GptSpec{.vocabulary = 128};
  ExpectIdsRefused({"has 99 ids", "model.gpt.vocabulary = 128"}, 128);
}

TEST_F(TokenizedTextTest, TextsAndModelsThatAreNoneAreNamed) {
  Write("fine\ncaf\xe9\n" + Lines(100));
  ExpectIdsRefused({"data.text.path = ", "line 2 is not UTF-8", "iconv"});
  EXPECT_TRUE(Cached().empty()) << "nothing unfinished is left";
  Write("\x1f\x8b\x08" + Counting(1009));
  ExpectIdsRefused({"data.text.path = ", "gzip", "unpack"});
  Write("");
  ExpectIdsRefused({"data.text.path = ", "of 0 tokens", "empty"});
  Write("a\n");
  ExpectIdsRefused({"data.text.path = ", "of 3 tokens"});
  Write(Lines(100));
  folder_.Write("model", "no model");
  ExpectIdsRefused({"data.text.tokenizer = ", "text, not a SentencePiece model"});
  std::vector<Piece> endless = LetterPieces();
  endless[3].text = "</end>";
  folder_.Write("model", ModelFileText(endless));
  ExpectIdsRefused({"data.text.tokenizer = ", "no end id"});
}

TEST_F(TokenizedTextTest, ACacheThatCannotBeWrittenIsNamed) {
  Write(Lines(100));
  const auto roots = DataRoots::Everything({}, folder_.Write("file", "x"));
  const absl::Status status =
      OpenSource(spec_, NetworkOnText(10, 99), kTextInputs, *roots).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("--cache-dir = "));
}

// Symptom: it was called an error of the text.
TEST_F(TokenizedTextTest, ACacheThatIsFullIsNamedAlone) {
  std::string text;
  for (int i = 0; i < 150'000; ++i) text += "a\n";  // more ids than are buffered
  Write(text);
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {.rlim_cur = 1000, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = TryOpenIds().status();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_THAT(std::string(status.message()), StartsWith("--cache-dir = "));
  EXPECT_TRUE(Cached().empty()) << "nothing unfinished is left";
}

// A stage that was killed leaves its unfinished file.
TEST_F(TokenizedTextTest, OldUnfinishedFilesOfTheSameNameGo) {
  Write(Lines(100));
  OpenIds();
  ASSERT_EQ(Cached().size(), 1u);
  const std::filesystem::path kept = Cached().front();
  std::filesystem::remove(kept);
  const std::string name = kept.filename().string();
  const std::string old = folder_.Write("cache/." + name + "-0123456789abcdef", "killed");
  const std::string young = folder_.Write("cache/." + name + "-123456789abcdef0", "at work");
  const std::string other = folder_.Write("cache/.other.tokens-0123456789abcdef", "of another key");
  const auto now = std::filesystem::file_time_type::clock::now();
  std::filesystem::last_write_time(young, now - std::chrono::hours(23));
  for (const std::string& path : {old, other}) {
    std::filesystem::last_write_time(path, now - std::chrono::hours(25));
  }
  OpenIds();
  EXPECT_THAT(Cached(), UnorderedElementsAre(kept.string(), young, other));
}

TEST_F(TokenizedTextTest, ALineThatIsLongerThanAPartIsWhole) {
  std::string words;
  while (words.size() < 200'000) words += "word and ";
  words.pop_back();
  Write(words + "\n");
  const std::vector<int32_t> ids = IdsOf(words + "\n");
  const auto source = OpenIds();
  const auto train =
      static_cast<int64_t>(ids.size()) / 10 * 9 + static_cast<int64_t>(ids.size()) % 10 * 9 / 10;
  EXPECT_EQ(source->manifest().train_samples, (train - 1) / 10);
}

TEST_F(TokenizedTextTest, ASurveyKeepsNothing) {
  Write(Lines(100));
  const auto source = TryOpenIds(99, SourceLook::kSurvey);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_THAT((*source)->Found(),
              AllOf(HasSubstr(" tokens of a vocabulary of 99"), HasSubstr(" held out")));
  Write(std::string(5 << 20, 'a'));
  const auto part = TryOpenIds(99, SourceLook::kSurvey);
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_THAT((*part)->Found(), HasSubstr("5242880 bytes, "));
  EXPECT_TRUE(Cached().empty());
}

}  // namespace
}  // namespace stagecoach
