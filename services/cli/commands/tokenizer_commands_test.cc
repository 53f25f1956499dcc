// `stagecoach tokenizer`: trains with its sister program, shows, encodes, decodes.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files/file_handle.h"
#include "base/files/gzip_testing.h"
#include "base/testing/file_text.h"
#include "base/testing/temporary_folder.h"
#include "services/cli/commands/commands.h"
#include "stage/tokens/model_file_testing.h"
#include "stage/tokens/tokenizer_json_testing.h"

namespace stagecoach {
namespace {

using std::string_literals::operator""s;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Json = nlohmann::ordered_json;

std::string SomeText() {
  std::string text;
  const char* words[] = {"the", "unhappy", "family", "is", "alike", "in", "Moscow", "again"};
  for (uint32_t i = 0, next = 1; i < 400; ++i) {
    for (int word = 0; word < 7; ++word) {
      next = next * 1664525 + 1013904223;
      absl::StrAppend(&text, words[next >> 29], word == 6 ? ".\n" : " ");
    }
  }
  return text;
}

class TokenizerCommandsTest : public testing::Test {
 protected:
  TokenizerCommandsTest() {
    context_.console = &console_;
    context_.stop = &stop_;
    options_.inputs = {folder_.Write("text", text_)};
    options_.output = folder_.File("made.model");
    options_.vocabulary = 286;
  }
  int Train() {
    Clear();
    return RunTrainTokenizer(options_, context_);
  }
  std::string Trained(const std::string& name) {
    options_.output = folder_.File(name);
    EXPECT_EQ(Train(), 0) << notes_.str();
    return FileText(options_.output);
  }
  int Run(int (*command)(const TokenizerOptions&, CommandContext&), TokenizerOptions options,
          const std::string& input = "") {
    Clear();
    if (options.model.empty()) options.model = letters_;
    const FileHandle file(open(folder_.Write("input", input).c_str(), O_RDONLY | O_CLOEXEC));
    context_.input = file.get();
    return command(options, context_);
  }
  void Clear() {
    out_.str("");
    notes_.str("");
  }
  void ExpectRefused(int code, const std::string& reason) {
    EXPECT_EQ(Train(), code);
    EXPECT_THAT(notes_.str(), HasSubstr(reason));
    EXPECT_FALSE(std::filesystem::exists(options_.output));
    EXPECT_FALSE(std::filesystem::exists(options_.output + ".unfinished"));
  }

  const TemporaryFolder folder_;
  const std::string text_ = SomeText();
  const std::string letters_ = folder_.Write("letters.model", ModelFileText(LetterPieces()));
  TrainTokenizerOptions options_;
  std::ostringstream out_, notes_;
  Console console_{out_, notes_, {}};
  StopSignal stop_;
  CommandContext context_;
};

TEST_F(TokenizerCommandsTest, TheSameTextGivesTheSameBytes) {
  for (const char* model : {"unigram", "bpe"}) {
    options_.model = model;
    const std::string one = Trained(absl::StrCat(model, ".1"));
    EXPECT_EQ(Trained(absl::StrCat(model, ".2")), one);
    // Neither the file's name nor its packing is in the model.
    options_.inputs = {folder_.Write("other.gz", Gzipped(text_))};
    EXPECT_EQ(Trained(absl::StrCat(model, ".3")), one);
    const size_t half = text_.find('\n', text_.size() / 2) + 1;
    options_.inputs = {folder_.Write("first", text_.substr(0, half)),
                       folder_.Write("second", text_.substr(half))};
    EXPECT_EQ(Trained(absl::StrCat(model, ".4")), one);
    options_.inputs = {folder_.File("text")};
  }
}

TEST_F(TokenizerCommandsTest, TrainTellsWhatItMade) {
  options_.user_symbols = "<2de>,<2fr>";
  ASSERT_EQ(Train(), 0) << notes_.str();
  EXPECT_EQ(notes_.str(), "") << "SentencePiece's log";
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("unigram"), HasSubstr("ids         286\n"),
                                HasSubstr("pad 0, unk 1, bos 2, eos 3"), HasSubstr("nmt_nfkc"),
                                HasSubstr("sha256:")));
  ASSERT_EQ(Run(RunEncode, {.model = options_.output, .pieces = true}, "<2de> the family\n"), 0);
  EXPECT_THAT(out_.str(), StartsWith("\u2581 <2de> \u2581"));
}

TEST_F(TokenizerCommandsTest, ATokenizerJsonIsShownEncodesAndDecodes) {
  Json file = Json::parse(TokenizerJson({{"a", "b"}}).dump());
  file["added_tokens"] = {Json::parse(AddedTokenJson(257, "<s>").dump()),
                          Json::parse(AddedTokenJson(258, "</s>").dump())};
  file["normalizer"] = {{"type", "NFC"}};
  const std::string path = folder_.Write("tokenizer.json", file.dump());
  folder_.Write("tokenizer_config.json", R"({"bos_token": "<s>", "pad_token": "</s>"})");
  ASSERT_EQ(Run(RunShowTokenizer, {.model = path, .first = 1}), 0) << notes_.str();
  EXPECT_THAT(out_.str(),
              AllOf(HasSubstr("kind        byte_level_bpe\nids         259\n"),
                    HasSubstr("special     pad 258, unk none, bos 257, eos 258\n"),
                    HasSubstr("bytes       all pieces\nnormalizer  NFC\n"), HasSubstr("sha256:")));
  const std::string text = "ab  caf\u00e9<s>\n\n\u6771\n";
  ASSERT_EQ(Run(RunEncode, {.model = path}, "ab  cafe\u0301<s>\n\n\u6771\n"), 0) << notes_.str();
  const std::string ids = out_.str();
  EXPECT_THAT(ids, StartsWith("256 32 32 99 97 102 195 169 257\n\n"));
  ASSERT_EQ(Run(RunDecode, {.model = path}, ids), 0) << notes_.str();
  EXPECT_EQ(out_.str(), text);
  // A line over 64 KiB keeps the space at which it is cut.
  const std::string line = std::string(40'000, 'c') + " " + std::string(40'000, 'd') + "\n";
  ASSERT_EQ(Run(RunEncode, {.model = path}, line), 0) << notes_.str();
  ASSERT_EQ(Run(RunDecode, {.model = path}, std::string(out_.str())), 0) << notes_.str();
  EXPECT_EQ(out_.str(), line);
  file["normalizer"]["type"] = "BertNormalizer";
  folder_.Write("tokenizer.json", file.dump());
  EXPECT_EQ(Run(RunShowTokenizer, {.model = path}), 2);
  EXPECT_THAT(notes_.str(),
              HasSubstr("tokenizer.json: normalizer.type: \"BertNormalizer\"; is not supported"));
}

TEST_F(TokenizerCommandsTest, EveryLineComesBack) {
  ASSERT_EQ(Train(), 0) << notes_.str();
  const std::string text = "the family again\n\nnaïve 東京 🙂\n";
  ASSERT_EQ(Run(RunEncode, {.model = options_.output}, text), 0) << notes_.str();
  const std::string ids = out_.str();
  EXPECT_EQ(std::count(ids.begin(), ids.end(), '\n'), 3);
  ASSERT_EQ(Run(RunDecode, {.model = options_.output}, ids), 0) << notes_.str();
  EXPECT_EQ(out_.str(), text);
  EXPECT_EQ(Run(RunEncode, {.model = options_.output, .file = folder_.Write("in", text)}), 0);
  EXPECT_EQ(out_.str(), ids) << "of a file";
}

TEST_F(TokenizerCommandsTest, ProgramsGetJson) {
  context_.output = OutputFormat::kNdjson;
  ASSERT_EQ(Run(RunEncode, {.pieces = true}, "ab\nc\n"), 0);
  EXPECT_EQ(out_.str(),
            "{\"ids\":[4,69,70],\"pieces\":[\"\u2581\",\"a\",\"b\"]}\n"
            "{\"ids\":[4,71],\"pieces\":[\"\u2581\",\"c\"]}\n");
  ASSERT_EQ(Run(RunDecode, {}, "4 69 70\n"), 0);
  EXPECT_EQ(out_.str(), "{\"text\":\"ab\"}\n");
  context_.output = OutputFormat::kJson;
  ASSERT_EQ(Run(RunEncode, {}, "ab\nc\n"), 0);
  EXPECT_EQ(Json::parse(out_.str())["lines"][1]["ids"], (std::vector<int>{4, 71}));
  ASSERT_EQ(Run(RunEncode, {}, ""), 0);
  EXPECT_EQ(Json::parse(out_.str())["lines"].size(), 0u);
  ASSERT_EQ(Run(RunShowTokenizer, {.first = 5}), 0);
  const Json shown = Json::parse(out_.str());
  EXPECT_EQ(shown["ids"], 99);
  EXPECT_EQ(shown["eos"], 3);
  EXPECT_EQ(shown["pieces"].size(), 5u);
  EXPECT_EQ(shown["pieces"][1]["type"], "unknown");
}

TEST_F(TokenizerCommandsTest, ShowPrintsTheFirstPieces) {
  ASSERT_EQ(Run(RunShowTokenizer, {.first = 6}), 0);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("<unk>"), HasSubstr("!"), Not(HasSubstr("\""))));
}

TEST_F(TokenizerCommandsTest, InputThatIsWrongIsNamedByLine) {
  EXPECT_EQ(Run(RunEncode, {}, "one\ncaf\xe9\n"), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("standard input: line 2 is not UTF-8"));
  EXPECT_EQ(Run(RunDecode, {}, "4\n4 x5\n"), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("standard input: line 2: \"x5\" is no id"));
  EXPECT_EQ(Run(RunDecode, {}, "4 99\n"), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("line 1: id 99 is not among the 99 ids"));
  EXPECT_EQ(Run(RunEncode, {.file = folder_.File("gone")}), 3);
  EXPECT_THAT(notes_.str(), HasSubstr("/gone"));
  EXPECT_EQ(Run(RunShowTokenizer, {.model = folder_.Write("no.model", "text")}), 2);
  EXPECT_THAT(notes_.str(), HasSubstr("/no.model: text, not a SentencePiece model"));
}

TEST_F(TokenizerCommandsTest, AStopEndsTheWaitForInput) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const FileHandle from(ends[0]), into(ends[1]);
  stop_.Request(absl::CancelledError("interrupted"));
  context_.input = from.get();
  EXPECT_EQ(RunEncode({.model = letters_}, context_), 130);
}

TEST_F(TokenizerCommandsTest, TrainRefusesWithTheRemedyAndLeavesNothing) {
  options_.vocabulary = 5000;
  ExpectRefused(2, "--vocabulary: 5000; must be <= ");
  options_.vocabulary = 100;
  ExpectRefused(2, "--vocabulary: 100; must be >= ");
  options_.vocabulary = 286;
  options_.inputs = {folder_.Write("empty", "\n\n")};
  ExpectRefused(2, "--input: there is no line of text");
  options_.inputs = {folder_.Write("latin1", "caf\xe9\n")};
  ExpectRefused(2, "/latin1: line 1 is not UTF-8");
  options_.inputs = {folder_.File("gone")};
  ExpectRefused(3, "/gone");
  options_.inputs = {folder_.path()};
  ExpectRefused(2, "is a folder");
  options_.inputs = {folder_.File("text")};
  for (const char* symbols : {"a,,b", "a,a", "<s>", "<0x41>", ",", "\xff"}) {
    options_.user_symbols = symbols;
    ExpectRefused(2, "--user-symbols: ");
  }
}

TEST_F(TokenizerCommandsTest, TrainOverwritesNothing) {
  folder_.Write("made.model", "somebody's");
  EXPECT_EQ(Train(), 1);
  EXPECT_THAT(notes_.str(), HasSubstr("is there already; name another file with --output"));
  EXPECT_EQ(FileText(options_.output), "somebody's");
}

TEST_F(TokenizerCommandsTest, AStopEndsTheTraining) {
  stop_.Request(absl::CancelledError("interrupted"));
  ExpectRefused(130, "interrupted");
}

}  // namespace
}  // namespace stagecoach
