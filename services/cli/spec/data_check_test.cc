#include "services/cli/spec/data_check.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/gzip_testing.h"
#include "base/testing/status_is.h"
#include "base/testing/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/objectives/cross_entropy.h"
#include "network/zoo/gpt.h"
#include "network/zoo/mlp.h"
#include "plan/data/idx.h"
#include "plan/data/parallel_text.h"
#include "plan/data/text.h"
#include "plan/data/token_file.h"
#include "stage/data/sources/token_file_testing.h"

namespace stagecoach {
namespace {

using testing::AllOf;
using testing::HasSubstr;

absl::Status CheckFilesOf(const JobSpec& spec) {
  ASSIGN_OR_RETURN(const Network network, ExpandJob(spec));
  return CheckDataFiles(spec, network);
}

class CheckData : public testing::Test {
 protected:
  JobSpec JobOn(const std::string& content) const {
    JobSpec spec;
    spec.network = GptSpec{.layers = 1, .width = 4, .heads = 1, .context = 16, .vocabulary = 256};
    spec.data = TextData{.path = folder_.Write("text", content)};
    return spec;
  }
  const TemporaryFolder folder_;
};

// Seen: a gzip file was submitted and trained on as if it were text.
TEST_F(CheckData, ACompressedFileIsRefusedBeforeItIsSubmitted) {
  JobSpec spec = JobOn("\x1f\x8b\x08 and nineteen bytes or more");
  EXPECT_THAT(CheckFilesOf(spec), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr(spec.data.As<TextData>().path)));
  spec.data.attributes.Set("bytes", true);
  EXPECT_TRUE(CheckFilesOf(spec).ok());
}

// Its stages read the tokenizer alone, and the client asked for the data that trained.
TEST_F(CheckData, AJobThatWritesNeedsNoDataButTheTokenizer) {
  JobSpec spec = JobOn("\x1f\x8b\x08 and nineteen bytes or more");
  ASSERT_FALSE(CheckFilesOf(spec).ok());
  spec.write.emplace();
  EXPECT_TRUE(CheckFilesOf(spec).ok());
  spec.data = ParallelTextData{.tokenizer = "/pieces", .sources = {"/a"}, .targets = {"/b"}};
  const std::vector<DataFile> files = FilesRead(spec.data, /*writes=*/true);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].path, "/pieces");
  EXPECT_EQ(FilesRead(spec.data, /*writes=*/false).size(), 3u);
}

// Seen: `validate` and `submit` took an empty file; the job failed when its stages had loaded.
TEST_F(CheckData, ATextWithoutASequenceIsRefusedWithItsSizeAndWhatIsNeeded) {
  for (const int bytes : {0, 18}) {
    EXPECT_THAT(CheckFilesOf(JobOn(std::string(bytes, 'x'))),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(absl::StrCat("of ", bytes, " bytes")),
                               HasSubstr("at least 19 bytes"))));
  }
  JobSpec spec = JobOn(std::string(19, 'x'));
  EXPECT_TRUE(CheckFilesOf(spec).ok());
  spec.evaluation.every_steps = 1;
  EXPECT_THAT(std::string(CheckFilesOf(spec).message()), HasSubstr("at least 161 bytes"));
}

// Of the gzip file's head, and before anything is submitted.
TEST_F(CheckData, ImagesOfAnotherSizeThanTheNetworksAreRefusedByTheirHeader) {
  const std::string images = folder_.File("images");
  const auto check = [&images](std::vector<int64_t> image) {
    JobSpec spec;
    spec.network = MlpNetworkSpec{.image = std::move(image), .hidden = 4, .classes = 10};
    spec.data = IdxData{.images = images, .labels = "/nowhere/labels"};
    return CheckFilesOf(spec);
  };
  const std::string header("\0\0\x08\x03\0\0\0\x02\0\0\0\x03\0\0\0\x02", 16);
  folder_.Write("images", Gzipped(header + "twice six px"));
  EXPECT_TRUE(check({3, 2, 1}).ok()) << check({3, 2, 1});
  EXPECT_THAT(std::string(check({2, 3, 1}).message()),
              AllOf(HasSubstr("data.idx.images = \""),
                    HasSubstr("images [3, 2, 1] (height, width, channels)"),
                    HasSubstr("model.mlp.image = [2, 3, 1]: set it to [3, 2, 1]")));
  folder_.Write("images", header + "five");
  EXPECT_THAT(std::string(check({3, 2, 1}).message()),
              HasSubstr("20 bytes, its header [2, 3, 2] says 28"));
}

// Of parallel text each file is checked; packed ones are fine.
TEST_F(CheckData, EachFileOfAListIsChecked) {
  JobSpec spec;
  spec.network = GptSpec{.layers = 1, .width = 4, .heads = 1, .context = 16, .vocabulary = 256};
  spec.network.objective = CrossEntropySpec{.ignore_index = 0};
  ParallelTextData data{.tokenizer = "/nowhere/tokenizer",
                        .sources = {folder_.Write("a", "a\n"), folder_.Write("b", Gzipped("b\n"))},
                        .targets = {folder_.Write("c", "c\n"), folder_.Write("d", "d\n")}};
  spec.data = data;
  EXPECT_TRUE(CheckFilesOf(spec).ok()) << CheckFilesOf(spec);
  folder_.Write("d", "PK\x03\x04");
  EXPECT_THAT(CheckFilesOf(spec), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("data.parallel_text.targets[1] = \"")));
}

// Symptom: `local` ran a job on a Megatron pair, whose stages were not allowed to read the .bin.
TEST_F(CheckData, AFileBesideIsOneOfTheJobsFilesAndNotCheckedAsOne) {
  JobSpec spec = JobOn("");
  const MegatronPair pair = MegatronFiles({{1, 2}, {3}}, 8);
  const std::string index = folder_.Write("p.idx", pair.index);
  const std::string tokens = folder_.Write("p.bin", pair.tokens);
  spec.data = TokenFileData{.files = {index}};
  EXPECT_TRUE(CheckFilesOf(spec).ok()) << CheckFilesOf(spec);
  const std::vector<DataFile> files = DataFiles(spec.data);
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].path, index);
  EXPECT_EQ(files[1].path, tokens);
  EXPECT_EQ(DataFieldPath(spec.data, files[1]), "data.token_file.files[0]");
}

TEST_F(CheckData, ATextPassesAndSoDoesWhatOnlyTheStagesMaySee) {
  EXPECT_TRUE(CheckFilesOf(JobOn("a text that will do\n")).ok());
  JobSpec elsewhere = JobOn("");
  elsewhere.data = TextData{.path = "/nowhere/text"};
  EXPECT_TRUE(CheckFilesOf(elsewhere).ok());
  elsewhere.data = TextData{.path = "/"};
  EXPECT_TRUE(CheckFilesOf(elsewhere).ok());
}

}  // namespace
}  // namespace stagecoach
