// What commands read beside trained weights comes from the data set that the job read it in.
#include "services/cli/trained/job_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/testing/file_text.h"
#include "base/testing/status_is.h"
#include "base/testing/temporary_folder.h"
#include "plan/data/text.h"
#include "services/cli/data/file_set.h"
#include "services/cli/data/upload.h"
#include "services/cli/testing/fake_data_client.h"
#include "services/cli/trained/decoding_network.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;

class JobInputsTest : public testing::Test {
 protected:
  JobInputsTest() {
    for (const char* const name :
         {"0/pieces.model", "1/hf/tokenizer.json", "1/hf/tokenizer_config.json", "1/hf/config.json",
          "1/hf/a.safetensors", "2/m.safetensors"}) {
      source_.Write(name, absl::StrCat("content of ", name));
    }
    FileSet set;
    EXPECT_TRUE(set.Add(source_.path(), "").ok());
    EXPECT_TRUE(set.Sort().ok());
    const auto parts = MakeParts(set, [](int64_t, int64_t) { return true; });
    EXPECT_TRUE(parts.ok()) << parts.status();
    const auto put = Upload(
        client_, *parts, {}, [](int64_t, int64_t) {}, &stop_);
    EXPECT_TRUE(put.ok()) << put.status();
    id_ = put->id();
  }
  std::string In(const std::string& path) const { return absl::StrCat("store:/data/", id_, path); }
  v1::JobSpec Job(const std::string& tokenizer, const std::string& from = "") const {
    v1::JobSpec spec;
    spec.mutable_data()->mutable_text()->set_path(In("/0/text"));
    spec.mutable_data()->mutable_text()->set_tokenizer(tokenizer);
    if (!from.empty()) spec.mutable_initialize()->set_from(from);
    return spec;
  }

  const TemporaryFolder source_, to_;
  FakeDataClient client_;
  StopSignal stop_;
  std::string id_;
};

TEST_F(JobInputsTest, ATokenizerComesBesideTheWeights) {
  v1::JobSpec spec = Job(In("/0/pieces.model"), In("/2/m.safetensors"));
  ASSERT_TRUE(InputsAreInCluster(spec, {}));
  ASSERT_TRUE(FetchInputs(client_, {}, to_.path(), &spec).ok());
  EXPECT_EQ(spec.data().text().tokenizer(), "pieces.model");
  EXPECT_EQ(FileText(to_.File("pieces.model")), "content of 0/pieces.model");
  EXPECT_EQ(spec.data().text().path(), In("/0/text")) << "is not read";
  EXPECT_EQ(spec.initialize().from(), In("/2/m.safetensors"));
  EXPECT_FALSE(InputsAreInCluster(spec, {}));
}

TEST_F(JobInputsTest, AFolderOfAnotherProgramKeepsItsTokenizer) {
  v1::JobSpec spec = Job(In("/1/hf/tokenizer.json"), In("/1/hf"));
  v1::JobSpec config = spec;
  ASSERT_TRUE(FetchInputs(client_, {.weights = true}, to_.File("all"), &spec).ok());
  EXPECT_EQ(spec.initialize().from(), "initialize/hf");
  EXPECT_EQ(spec.data().text().tokenizer(), "initialize/hf/tokenizer.json");
  EXPECT_EQ(FileText(to_.File("all/initialize/hf/a.safetensors")), "content of 1/hf/a.safetensors");
  EXPECT_EQ(FileText(to_.File("all/initialize/hf/tokenizer_config.json")),
            "content of 1/hf/tokenizer_config.json");
  ASSERT_TRUE(FetchInputs(client_, {.config = true}, to_.File("config"), &config).ok());
  EXPECT_EQ(FileText(to_.File("config/initialize/hf/config.json")), "content of 1/hf/config.json");
  EXPECT_FALSE(PosixFileSystem()->Exists(to_.File("config/initialize/hf/a.safetensors")));
}

TEST_F(JobInputsTest, AFileOfWeights) {
  v1::JobSpec spec = Job("", In("/2/m.safetensors"));
  EXPECT_FALSE(InputsAreInCluster(spec, {}));
  ASSERT_TRUE(FetchInputs(client_, {.weights = true}, to_.path(), &spec).ok());
  EXPECT_EQ(spec.initialize().from(), "initialize/m.safetensors");
  EXPECT_EQ(FileText(to_.File("initialize/m.safetensors")), "content of 2/m.safetensors");
}

TEST_F(JobInputsTest, WhatIsGoneNamesTheFieldAndTheRemedy) {
  v1::JobSpec spec = Job(In("/0/none.model"));
  EXPECT_THAT(FetchInputs(client_, {}, to_.path(), &spec),
              StatusIs(absl::StatusCode::kNotFound,
                       testing::AllOf(HasSubstr("tokenizer: store:/data/"),
                                      HasSubstr("has no 0/none.model"), HasSubstr("--tokenizer"))));
  client_.sets.clear();
  EXPECT_TRUE(absl::IsNotFound(FetchInputs(client_, {}, to_.path(), &spec)));
  const v1::JobSpec here = Job("/here/pieces.model", "/here/m.safetensors");
  EXPECT_FALSE(InputsAreInCluster(here, {.weights = true, .config = true}));
}

TEST(TokenizerOfJob, InABucketIsRefusedWithTheRemedy) {
  JobSpec spec;
  spec.data = TextData{.path = "a", .tokenizer = "s3://corpora/pieces.model"};
  for (const auto& [given, field] :
       {std::pair("", "data.text.tokenizer = \"s3://corpora/pieces"),
        std::pair("s3://a/b.model", "--tokenizer = \"s3://a/b.model")}) {
    EXPECT_THAT(TokenizerOfJob(spec, given).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         testing::AllOf(HasSubstr(field), HasSubstr("is in a bucket"),
                                        HasSubstr("--tokenizer names it on this machine"))));
  }
}

}  // namespace
}  // namespace stagecoach
