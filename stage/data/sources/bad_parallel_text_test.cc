// Parallel text that is refused: each error names field, file, line or value, and the remedy.

#include "base/files/gzip_testing.h"
#include "base/testing/status_is.h"
#include "stage/data/parallel/pair_set.h"
#include "stage/data/sources/parallel_text_source_testing.h"
#include "stage/tokens/tokenizer_json_testing.h"

namespace stagecoach {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class BadParallelText : public ParallelTextTest {
 protected:
  void ExpectRefused(const std::string& begin, const std::string& rest,
                     absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
    EXPECT_THAT(TryOpen().status(),
                StatusIs(code, AllOf(testing::StartsWith(begin), HasSubstr(rest))));
  }
  // Beside the file's own path.
  void ExpectFileRefused(const std::string& field, const std::string& file, const std::string& rest,
                         absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
    ExpectRefused(absl::StrCat("data.parallel_text.", field, " = \"", folder_.File(file), "\""),
                  rest, code);
  }
};

TEST_F(BadParallelText, OtherNumbersOfLines) {
  for (const auto& [sources, targets, counts] : {std::tuple("a\nb\nc\n", "a\nb\n", std::pair(3, 2)),
                                                 std::tuple("a\n", "a\nb\nc", std::pair(1, 3))}) {
    data_.sources.clear();
    data_.targets.clear();
    AddPair(sources, targets);
    ExpectFileRefused("sources[0]", "sources0",
                      absl::StrCat(" has ", counts.first,
                                   " lines, data.parallel_text.targets[0] = "
                                   "\"",
                                   folder_.File("targets0"), "\" has ", counts.second,
                                   "; line i of one must translate line i of the other"));
  }
}

TEST_F(BadParallelText, TextThatIsNotUtf8) {
  AddPair("a\nb\n", "a\nb\xff\n");
  ExpectFileRefused("targets[0]", "targets0",
                    ", line 2: the text is not UTF-8, or has a zero byte; convert it to UTF-8 "
                    "first (iconv -t UTF-8)");
  folder_.Write("sources0", Gzipped("\xe4\nb\n"));
  ExpectFileRefused("sources[0]", "sources0", ", line 1: the text is not UTF-8");
}

TEST_F(BadParallelText, APairWithOneSideEmpty) {
  AddPair("a\n\nc\n", "a\nb\nc\n");
  ExpectFileRefused(
      "sources[0]", "sources0",
      ", line 2: the source is empty and the target is not; remove both, or fill it in");
  folder_.Write("sources0", "a\nb\nc\n");
  folder_.Write("targets0", "a\nb\n  \n");
  ExpectFileRefused("targets[0]", "targets0", ", line 3: the target is empty and the source is");
}

TEST_F(BadParallelText, ALineThatIsTooLong) {
  AddPair("a\nb\n", "a\n" + std::string(kMostSentenceBytes + 5, 'x') + "\n");
  ExpectFileRefused("targets[0]", "targets0",
                    ", line 2: has 65541 bytes; at most 65536: cut it into sentences");
}

TEST_F(BadParallelText, ALineWithoutExactlyOneTab) {
  AddPair("a\tb\nc\n", "");
  data_.targets.clear();
  ExpectFileRefused("sources[0]", "sources0",
                    ", line 2: has 0 tabs; must have one, between source and target; or name the "
                    "targets' file in data.parallel_text.targets[0]");
  folder_.Write("sources0", "a\tb\tc\n");
  ExpectFileRefused("sources[0]", "sources0", ", line 1: has 2 tabs");
  folder_.Write("sources0", "a\tb\nc\t\n");
  ExpectFileRefused("sources[0]", "sources0", ", line 2: the target is empty");
}

TEST_F(BadParallelText, FilesThatAreNoTextOrNotThere) {
  AddPair("a\n", "a\n");
  folder_.Write("targets0", "");
  ExpectFileRefused("targets[0]", "targets0",
                    ": the file is empty; give a file with a sentence a line");
  folder_.Write("targets0", "PK\x03\x04 and so on");
  ExpectFileRefused("targets[0]", "targets0", ": looks like a zip archive and not like text; ");
  const std::string packed = Gzipped("a\n");
  folder_.Write("targets0", packed.substr(0, packed.size() - 3));
  ExpectFileRefused("targets[0]", "targets0", ": its gzip data is cut off",
                    absl::StatusCode::kDataLoss);
  data_.targets[0] = folder_.File("none");
  ExpectFileRefused("targets[0]", "none", "", absl::StatusCode::kNotFound);
}

TEST_F(BadParallelText, ATestFileIsNamedAsSuch) {
  AddPair("a\n", "a\n");
  AddTests("a\n", "a\n");
  AddTests("a\nb\n", "a\n");
  ExpectFileRefused("test_sources[1]", "test_sources1", " has 2 lines, data.parallel_text.test_");
}

TEST_F(BadParallelText, ATokenizerOfAnotherSizeThanTheVocabulary) {
  AddPair("a\n", "a\n");
  form_.vocabulary = 8000;
  ExpectFileRefused("tokenizer", "tokenizer",
                    ": has 101 pieces, the network's source 8000; set model.gpt.vocabulary to 101 "
                    "or give another tokenizer");
}

TEST_F(BadParallelText, ANetworkThatIgnoresAnotherClassThanThePadding) {
  AddPair("a\n", "a\n");
  form_.ignored = 7;
  ExpectFileRefused("tokenizer", "tokenizer",
                    ": its padding has id 0, the network's objective ignores 7; set "
                    "model.objective.cross_entropy.ignore_index: 0");
  form_.ignored = std::nullopt;
  ExpectRefused("data.parallel_text: pads targets; ",
                "set model.objective.cross_entropy.ignore_index to the tokenizer's padding id");
}

TEST_F(BadParallelText, ATokenizerWithoutAMark) {
  AddPair("a\n", "a\n");
  for (const auto& [piece, name] : {std::pair(0, "padding"), std::pair(2, "begin of sentence"),
                                    std::pair(3, "end of sentence")}) {
    std::vector<Piece> pieces = PairPieces();
    pieces[static_cast<size_t>(piece)] = {"<other>", 0, PieceType::kControl};
    folder_.Write("tokenizer", ModelFileText(pieces));
    ExpectFileRefused("tokenizer", "tokenizer",
                      absl::StrCat(": has no piece for ", name, "; train one that has it"));
  }
}

TEST_F(BadParallelText, ATokenizerJsonWithoutAMark) {
  AddPair(Sources(0, 20), Targets(0, 20));
  nlohmann::json file = TokenizerJson();
  file["added_tokens"] = {AddedTokenJson(256, "</s>"), AddedTokenJson(257, "<x>")};
  form_ = {.vocabulary = 258, .ignored = 257};
  data_.tokenizer = folder_.Write("tokenizer.json", file.dump());
  const auto with = [this](const std::string& config, const std::string& rest) {
    folder_.Write("tokenizer_config.json", config);
    ExpectFileRefused("tokenizer", "tokenizer.json", rest);
  };
  const std::string remedy =
      "; name bos_token, eos_token and pad_token in tokenizer_config.json beside it";
  with("{}", ": has no piece for begin of sentence" + remedy);
  with(R"({"bos_token": "</s>", "eos_token": null})",
       ": has no piece for end of sentence" + remedy);
  with(R"({"bos_token": "</s>"})", ": has no piece for padding" + remedy);
  with(R"({"bos_token": "</s>", "pad_token": "</s>"})",
       ": its id 256 is padding and end of sentence, so no network would learn where a sentence "
       "ends" +
           remedy);
  with(R"({"bos_token": "<b>"})", ": tokenizer_config.json: bos_token: \"<b>\"; is no token");
  data_.tags = {"<2de>"};
  folder_.Write("tokenizer_config.json", R"({"bos_token": "</s>", "pad_token": "<x>"})");
  ExpectRefused("data.parallel_text.tags[0]: \"<2de>\"; must be one piece of the tokenizer",
                "< 2 d e >: add it to the tokenizer (add_tokens of the library `tokenizers`)");
  data_.tags.clear();
  EXPECT_TRUE(TryOpen().ok()) << TryOpen().status();
}

TEST_F(BadParallelText, AFileThatIsNoTokenizer) {
  AddPair("a\n", "a\n");
  folder_.Write("tokenizer", "a text");
  ExpectFileRefused("tokenizer", "tokenizer", "");
  folder_.Write("tokenizer", "");
  ExpectFileRefused("tokenizer", "tokenizer", "");
}

TEST_F(BadParallelText, ATagThatIsNoPiece) {
  AddPair("a\n", "a\n", "<2cs>");
  ExpectRefused(
      "data.parallel_text.tags[0]: \"<2cs>\"; must be one piece of the tokenizer, which "
      "splits it into \u2581 < 2 c s >: ",
      "train it with the tag as a symbol (stagecoach tokenizer train --user-symbols)");
  data_.tags = {"<pad>"};
  ExpectRefused("data.parallel_text.tags[0]: \"<pad>\"; is padding or an end of a sentence", "");
  data_.tags = {"<unk>"};
  ExpectRefused("data.parallel_text.tags[0]: \"<unk>\"; must be one piece", "");
  data_.tags.clear();
  AddTests("a\n", "a\n");
  data_.test_tags = {"b c"};
  ExpectRefused("data.parallel_text.test_tags[0]: \"b c\"; must be one piece", "");
}

TEST_F(BadParallelText, NothingToTrainOnOrToEvaluateWith) {
  AddPair("a\n", "a\n");
  ExpectFileRefused("sources[0]", "sources0",
                    ": has no pair to train on: of 1 lines 0 are empty, 0 are longer than the "
                    "network's contexts, 1 are held out; give more lines or larger contexts");
  folder_.Write("sources0", "aaa\nb\n");
  folder_.Write("targets0", "a\nb\n");
  form_.source = 4;
  ExpectFileRefused("sources[0]", "sources0", "1 are longer than the network's contexts, 1 are");
  folder_.Write("sources0", "a\nbbb\n");
  ExpectRefused("data.parallel_text: no held-out pair fits the network's contexts; ",
                "or no evaluation (evaluation.every_steps, evaluation.every_epochs)");
  spec_.evaluation = {};
  EXPECT_TRUE(TryOpen().ok()) << TryOpen().status();
}

}  // namespace
}  // namespace stagecoach
