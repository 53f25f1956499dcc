#include "services/cli/hugging_face/model_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/testing/temporary_folder.h"
#include "stage/files/data_roots.h"
#include "stage/tokens/tokenizer_json_testing.h"

namespace stagecoach {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class ModelFolderTest : public testing::Test {
 protected:
  ModelFolderTest() {
    Config(300);
    folder_.Write("model/model.safetensors", "its content is not looked at here");
    folder_.Write("model/tokenizer.json", Tokenizer());
  }
  static std::string Tokenizer() {
    nlohmann::json file = TokenizerJson();
    file["added_tokens"] = nlohmann::json::array({AddedTokenJson(256, "</s>")});
    return file.dump();
  }
  void Config(int vocabulary) {
    const nlohmann::json config = {
        {"model_type", "gpt2"}, {"n_embd", 32},      {"n_head", 4},
        {"n_layer", 2},         {"n_positions", 64}, {"vocab_size", vocabulary},
        {"resid_pdrop", 0.0},   {"embd_pdrop", 0.0}, {"attn_pdrop", 0.0}};
    folder_.Write("model/config.json", config.dump());
  }
  void Remove(const std::string& file) { std::filesystem::remove(folder_.File("model/" + file)); }
  absl::StatusOr<ModelFolder> Open(const std::string& tokenizer = "") {
    return OpenModelFolder(*DataRoots::Everything(), folder_.File("model"), tokenizer);
  }
  std::string Refusal(const std::string& tokenizer = "") {
    return std::string(Open(tokenizer).status().message());
  }
  const TemporaryFolder folder_;
};

TEST_F(ModelFolderTest, HasNetworkAndTokenizer) {
  EXPECT_TRUE(IsModelFolder(*PosixFileSystem(), folder_.File("model")));
  EXPECT_FALSE(IsModelFolder(*PosixFileSystem(), folder_.File(".")));
  const absl::StatusOr<ModelFolder> folder = Open();
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(folder->path, folder_.File("model"));
  EXPECT_EQ(folder->tokenizer, folder_.File("model/tokenizer.json"));
  EXPECT_EQ(folder->note, "");
  EXPECT_EQ(folder->context(), 64);
  Remove("model.safetensors");
  folder_.Write("model/model.safetensors.index.json", "{}");
  EXPECT_TRUE(Open().ok());
}

// In the Hub's cache every file of a snapshot is a link to one outside.
TEST_F(ModelFolderTest, MayHaveLinks) {
  for (const char* const name : {"config.json", "model.safetensors", "tokenizer.json"}) {
    const std::string file = folder_.File(std::string("model/") + name);
    std::filesystem::create_directories(folder_.File("blobs"));
    std::filesystem::rename(file, folder_.File(std::string("blobs/") + name));
    std::filesystem::create_symlink(std::string("../blobs/") + name, file);
  }
  EXPECT_TRUE(Open().ok()) << Open().status();
}

TEST_F(ModelFolderTest, OfBertNeedsAMaskToken) {
  folder_.Write("model/config.json", R"({"model_type": "bert", "vocab_size": 300})");
  EXPECT_THAT(Refusal(), HasSubstr("tokenizer.json: has no mask token, and the model learns masked "
                                   "tokens; name one with --tokenizer that has it"));
  folder_.Write("model/tokenizer.json", WordPieceJson({"a"}).dump());
  ASSERT_TRUE(Open().ok()) << Open().status();
  Remove("tokenizer.json");
  folder_.Write("model/vocab.txt", "[PAD]");
  EXPECT_THAT(Refusal(),
              HasSubstr("AutoTokenizer.from_pretrained(folder).save_pretrained(folder)"));
}

TEST_F(ModelFolderTest, TakesAnotherTokenizer) {
  const std::string other = folder_.Write("other.json", Tokenizer());
  EXPECT_EQ(Open(other)->tokenizer, other);
  Remove("tokenizer.json");
  EXPECT_EQ(Open(other)->tokenizer, other);
  EXPECT_THAT(Refusal(), EndsWith("model: no tokenizer.json and no tokenizer.model; name the "
                                  "tokenizer's file with --tokenizer"));
  folder_.Write("model/merges.txt", "");
  EXPECT_THAT(Refusal(),
              HasSubstr("AutoTokenizer.from_pretrained(folder).save_pretrained(folder)"));
}

TEST_F(ModelFolderTest, OfAnotherKindSaysWhatIsWrong) {
  Config(255);
  EXPECT_THAT(Refusal(),
              HasSubstr("tokenizer.json: has 257 ids, and the model's vocab_size is 255: "
                        "it is the tokenizer of another model"));
  Config(257);
  folder_.Write("model/tokenizer.json", TokenizerJson().dump());
  EXPECT_THAT(Refusal(), EndsWith("has no end id (eos); name eos_token in tokenizer_config.json"));
  folder_.Write("model/config.json", "{\"model_type\": \"gpt2\",");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("model/config.json: no JSON: "), HasSubstr("line 1")));
  folder_.Write("model/config.json", "version https://git-lfs.github.com/spec/v1\noid sha256:00\n");
  EXPECT_THAT(Refusal(), EndsWith("run `git lfs pull` in its folder"));
  Remove("config.json");
  EXPECT_THAT(Refusal(), HasSubstr("model: no config.json, which says what network"));
  Config(300);
  Remove("model.safetensors");
  EXPECT_THAT(Refusal(), EndsWith("holds neither model.safetensors nor "
                                  "model.safetensors.index.json"));
  folder_.Write("model/pytorch_model.bin", "\x80\x02}q");
  EXPECT_THAT(Refusal(), HasSubstr("holds weights in PyTorch's pickle (pytorch_model.bin); write "
                                   "safetensors: AutoModelForCausalLM"));
  folder_.Write("model/model.safetensors", "");
  folder_.Write("model/tokenizer.json", "{}");
  EXPECT_THAT(Refusal(), StartsWith(folder_.File("model/tokenizer.json")));
}

// An unset variable of a shell ended the program with an exception.
TEST_F(ModelFolderTest, WithoutANameIsNone) {
  EXPECT_EQ(OpenModelFolder(*PosixFileSystem(), "", "").status().message(),
            "\"\": names no folder or file");
}

}  // namespace
}  // namespace stagecoach
