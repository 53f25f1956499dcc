// Documents in JSON lines, as bytes and as ids of a tokenizer, and packed.
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/files/gzip_testing.h"
#include "base/testing/status_is.h"
#include "plan/data/json_lines.h"
#include "stage/data/sources/text_source_testing.h"
#include "stage/tokens/model_file_testing.h"
#include "stage/tokens/tokenizer.h"
#include "stage/tokens/tokenizer_json_testing.h"

namespace stagecoach {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<std::string> kPackedInputs = {"tokens", "targets", "document_starts"};

class JsonLinesSourceTest : public TextSourceTest {
 protected:
  JsonLinesSourceTest() {
    data_.files = {folder_.File("a.jsonl")};
    spec_.training.batch_size = 4;
    spec_.training.micro_batches = 2;
  }
  static std::string Document(const std::string& text) {
    return absl::StrCat("{\"id\": 7, \"text\": \"", text, "\"}\n");
  }
  static std::string Documents(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += Document(absl::StrCat("number ", i));
    return text;
  }
  Network NetworkOf(int64_t context, int64_t vocabulary, bool documents = false) {
    Network network = NetworkOnText(context, vocabulary);
    if (documents) {
      network.inputs.push_back({"document_starts", context});
      network.wires.push_back(network.wires[0]);
    }
    return network;
  }
  absl::StatusOr<std::unique_ptr<BatchSource>> TryOpenJson(const Network& network,
                                                           SourceLook look = SourceLook::kTrain) {
    spec_.data = data_;
    return OpenSource(spec_, network, kPackedInputs, *roots_, look);
  }
  std::unique_ptr<BatchSource> OpenJson(int64_t context, int64_t vocabulary = 256) {
    auto source = TryOpenJson(NetworkOf(context, vocabulary, data_.packed));
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? *std::move(source) : nullptr;
  }
  void ExpectJsonRefused(const std::string& text, const std::vector<std::string>& parts) {
    for (const std::string& stored : {text, Gzipped(text)}) {
      folder_.Write("a.jsonl", stored);
      for (const SourceLook look : {SourceLook::kTrain, SourceLook::kSurvey}) {
        const absl::Status status = TryOpenJson(NetworkOf(4, 256), look).status();
        EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
        EXPECT_THAT(std::string(status.message()), HasSubstr("data.json_lines.files[0] = \""));
        for (const std::string& part : parts) {
          EXPECT_THAT(std::string(status.message()), HasSubstr(part));
        }
      }
    }
  }
  size_t Cached() const {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(cache_)) ++count;
    return count;
  }
  // All that is trained on, by place, in one epoch.
  static std::vector<int32_t> Held(const BatchSource& source) {
    std::vector<int32_t> ids;
    for (int64_t batch = 0; batch < source.evaluation_batches(); ++batch) {
      for (const int i : {0, 1}) {
        const std::vector<int32_t> some = Evaluate(source, static_cast<uint64_t>(batch), i).inputs;
        ids.insert(ids.end(), some.begin(), some.end());
      }
    }
    return ids;
  }

  const std::string cache_ = folder_.MakeFolder("cache");
  const std::unique_ptr<DataRoots> roots_ = DataRoots::Everything({}, cache_);
  JsonLinesData data_;
};

TEST_F(JsonLinesSourceTest, DocumentsFollowEachOtherWithAnEndBetween) {
  folder_.Write("a.jsonl", Documents(20));
  data_.test = {
      folder_.Write("b.jsonl.gz", Gzipped("{\"text\": \"ab\"}\r\n\n{\"x\": [{\"text\": "
                                          "1}], \"text\": \"\"}\n{\"text\": \"c\\u00e9\"}")),
      folder_.Write("c.jsonl", Document("d"))};
  EXPECT_THAT(Held(*OpenJson(4)), ElementsAre('a', 'b', 0, 'c', 0xc3, 0xa9, 0, 'd'));
}

TEST_F(JsonLinesSourceTest, ATokenizersEndIdStandsBetween) {
  data_.tokenizer = folder_.Write("model", ModelFileText(LetterPieces()));
  folder_.Write("a.jsonl", Documents(20));
  data_.test = {folder_.Write("b.jsonl", Document("ab") + Document("!") + "\n")};
  const int32_t a = 'a' - '!' + 5;
  EXPECT_THAT(Held(*OpenJson(6, 99)), ElementsAre(4, a, a + 1, 3, 4, 5));
  spec_.network = GptSpec{.vocabulary = 98};
  EXPECT_THAT(TryOpenJson(NetworkOf(6, 98)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("data.json_lines.tokenizer = "), HasSubstr("has 99 ids"))));
}

// A document over 64 KiB is encoded by parts, and no space between them is lost.
TEST_F(JsonLinesSourceTest, ALongDocumentOfATokenizerJsonIsWhole) {
  nlohmann::json file = TokenizerJson({{" ", "w"}, {" w", "ord"}, {"o", "r"}, {"or", "d"}});
  file["added_tokens"] = nlohmann::json::array(
      {AddedTokenJson(static_cast<int>(file["model"]["vocab"].size()), "</s>")});
  data_.tokenizer = folder_.Write("tokenizer.json", file.dump());
  const auto tokenizer = Tokenizer::Parse(file.dump()).value();
  std::string document = "word";
  for (int i = 0; i < 60'000; ++i) document += " word";
  folder_.Write("a.jsonl", Documents(20));
  data_.test = {folder_.Write("b.jsonl", Document(document))};
  spec_.evaluation.batches = 1'000'000;
  std::vector<int32_t> ids = tokenizer->Encode(document).value();
  ids.resize(ids.size() / 6 * 6);
  std::vector<int32_t> held = Held(*OpenJson(6, tokenizer->ids()));
  ASSERT_GT(held.size(), 40'000) << "some parts";
  held.resize(std::min(held.size(), ids.size()));
  EXPECT_EQ(held, ids);
}

TEST_F(JsonLinesSourceTest, RowsKnowTheFirstRowOfTheirDocument) {
  folder_.Write("a.jsonl", Documents(20));
  data_.test = {folder_.Write("b.jsonl", Document("ab") + Document("c") + Document("defg") + "\n")};
  data_.packed = true;
  const auto source = OpenJson(4);
  const HostBatch batch = *source->Evaluation(0, MicroBatchId(0), kPackedInputs);
  ASSERT_EQ(batch.samples, 2);
  const auto ids = [&batch](size_t i) {
    std::vector<int32_t> values(batch.arrays.at(i).size() / sizeof(int32_t));
    std::memcpy(values.data(), batch.arrays[i].data(), batch.arrays[i].size());
    return values;
  };
  EXPECT_THAT(ids(0), ElementsAre('a', 'b', 0, 'c', 0, 'd', 'e', 'f'));
  EXPECT_THAT(ids(2), ElementsAre(0, 0, 0, 3, 0, 1, 1, 1));
}

TEST_F(JsonLinesSourceTest, PackedDataAndTheNetworkMustAgree) {
  folder_.Write("a.jsonl", Documents(20));
  EXPECT_THAT(
      TryOpenJson(NetworkOf(4, 256, true)).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("data.json_lines.packed: false"), HasSubstr("packed: true"))));
  data_.packed = true;
  EXPECT_THAT(
      TryOpenJson(NetworkOf(4, 256)).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("data.json_lines.packed: true"), HasSubstr("documents: true"))));
}

TEST_F(JsonLinesSourceTest, TokensAreMadeOnceForEachFileFieldAndTokenizer) {
  folder_.Write("a.jsonl", Documents(50));
  const auto first = OpenJson(4);
  EXPECT_EQ(Cached(), 1u);
  const auto again = OpenJson(4);
  EXPECT_EQ(Cached(), 1u);
  EXPECT_EQ(again->manifest().sha256, first->manifest().sha256);
  // A source that is opened anew goes on in mid-epoch as the one before.
  EXPECT_EQ(Train(*again, 11, 1).inputs, Train(*first, 11, 1).inputs);
  data_.files.push_back(folder_.Write("b.jsonl", Documents(9)));
  const auto two = OpenJson(4);
  EXPECT_EQ(Cached(), 2u);
  EXPECT_NE(two->manifest().sha256, first->manifest().sha256);
  folder_.Write("c.jsonl",
                "{\"body\": \"x y z\"}\n{\"body\": \"a long body of one document that is it\"}");
  data_.files = {folder_.File("c.jsonl")};
  data_.field = "body";
  OpenJson(2);
  EXPECT_EQ(Cached(), 3u);
}

TEST_F(JsonLinesSourceTest, BadLinesAreNamed) {
  const std::string good = Document("fine");
  ExpectJsonRefused(good + "{\"text\": \"a\"\n",
                    {"line 2: is no JSON at byte ", "must be one whole JSON object"});
  ExpectJsonRefused(good + good + "[1]\n", {"line 3: is no JSON object; each line must be"});
  ExpectJsonRefused(good + "{\"text\": \"a\"} x\n", {"line 2: is no JSON"});
  ExpectJsonRefused(good + "{\"id\": 1, \"body\": {\"text\": \"a\"}}\n",
                    {"line 2: has no field \"text\"", "its fields are \"id\", \"body\"",
                     "data.json_lines.field"});
  ExpectJsonRefused(good + "{\"text\": 5, \"id\": \"a\"}\n",
                    {"line 2: has a number, no string, in its field \"text\"", "\"id\""});
  ExpectJsonRefused(good + "{\"text\": \"caf\xe9\"}\n", {"line 2: is not UTF-8", "iconv"});
  ExpectJsonRefused(good + "{\"text\": \"a\\u0000\"}\n", {"line 2: ", "zero character"});
}

// Symptom: a string without its end came into the error with all its millions of bytes.
TEST_F(JsonLinesSourceTest, ErrorsOfLongLinesAreShort) {
  const std::string many(100'000, 'x');
  for (const std::string& bad :
       {absl::StrCat("{\"text\": \"", many, "\n"), absl::StrCat("{\"", many, "\": 1}\n")}) {
    folder_.Write("a.jsonl", Document("fine") + bad);
    const absl::Status status = TryOpenJson(NetworkOf(4, 256)).status();
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("line 2: "), HasSubstr("xxx...")));
    EXPECT_LT(status.message().size(), 1000u);
  }
}

TEST_F(JsonLinesSourceTest, FilesOfSomethingElseAreNamed) {
  const auto refused = [this](const std::string& stored, const std::string& part) {
    folder_.Write("a.jsonl", stored);
    EXPECT_THAT(TryOpenJson(NetworkOf(4, 256)).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("data.json_lines.files[0] = \""), HasSubstr(part))));
  };
  refused("", "the file is empty");
  refused("[{\"text\": \"a\"}]", "jq -c '.[]'");
  refused("text\n", "something else than a JSON object");
  refused("PK\x03\x04", "zip");
  const std::string packed = Gzipped(Documents(20));
  folder_.Write("a.jsonl", packed.substr(0, packed.size() - 4));
  EXPECT_THAT(TryOpenJson(NetworkOf(4, 256)).status(),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("a.jsonl"), HasSubstr("cut off; give the whole file"))));
  EXPECT_EQ(Cached(), 0u) << "nothing unfinished is left";
  folder_.Write("a.jsonl", Document("a"));
  EXPECT_THAT(TryOpenJson(NetworkOf(4, 256)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("of 2 tokens")));
  EXPECT_THAT(TryOpenJson(NetworkOf(4, 128)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("data.json_lines.tokenizer"), HasSubstr("at least 256"))));
}

TEST_F(JsonLinesSourceTest, ASurveyKeepsNothing) {
  folder_.Write("a.jsonl", Documents(40));
  const auto source = TryOpenJson(NetworkOf(4, 256), SourceLook::kSurvey);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_THAT((*source)->Found(), AllOf(HasSubstr("40 documents"), HasSubstr(" held out")));
  EXPECT_EQ(Cached(), 0u);
}

}  // namespace
}  // namespace stagecoach
