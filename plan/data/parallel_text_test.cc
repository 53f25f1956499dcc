#include "plan/data/parallel_text.h"

#include <string>
#include <utility>
#include <vector>

#include "base/testing/status_is.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/objectives/cross_entropy.h"
#include "network/zoo/gpt.h"
#include "network/zoo/listed_transformer_testing.h"
#include "plan/decoding_checks.h"
#include "plan/job/data_kinds.h"

namespace stagecoach {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

ParallelTextData Pairs() {
  return {.tokenizer = "/t", .sources = {"/a", "/b"}, .targets = {"/c", "/d"}};
}

// source of this length name, its length, tokens and targets.
Network PairNetwork(int64_t source, int64_t target, Length source_name = Length::kSource) {
  const auto ids = [](Shape shape) {
    return Wire{.type = {Element::kIds, Leading::kSamples, std::move(shape)}};
  };
  const Shape tokens = Shape::Of({{target, Length::kTarget}});
  Network network;
  network.inputs = {
      {"source", 100}, {"source_length", source + 1}, {"tokens", 100}, {"targets", 100}};
  network.wires = {ids(Shape::Of({{source, source_name}})), ids({}), ids(tokens), ids(tokens)};
  network.objective.ignored = 0;
  return network;
}

void ExpectRefused(const ParallelTextData& data, const Network& network,
                   const std::string& message) {
  EXPECT_THAT(ValidateData(data, network),
              StatusIs(absl::StatusCode::kInvalidArgument, StartsWith(message)));
}

TEST(ParallelText, ListsAreOfOneLength) {
  const Network network = PairNetwork(8, 9);
  EXPECT_TRUE(ValidateData(Pairs(), network).ok()) << ValidateData(Pairs(), network);
  ParallelTextData data = Pairs();
  data.targets.clear();
  EXPECT_TRUE(ValidateData(data, network).ok()) << "each line has a tab";
  data.targets = {"/c"};
  ExpectRefused(data, network,
                "data.parallel_text.targets: 1 entries; must be as many as sources, 2, or none");
  data = Pairs();
  data.tags = {"a", "b", "c"};
  ExpectRefused(data, network,
                "data.parallel_text.tags: 3 entries; must be as many as sources, 2, or none");
  data = Pairs();
  data.test_targets = {"/e"};
  ExpectRefused(data, network,
                "data.parallel_text.test_targets: 1 entries; must be as many as test_sources, 0");
  data = Pairs();
  data.test_tags = {"a"};
  ExpectRefused(data, network, "data.parallel_text.test_tags: 1 entries; must be as many as test_");
  data = Pairs();
  data.tags = {"<2de>", "<2fr>"};
  data.test_sources = {"/e"};
  ExpectRefused(data, network, "data.parallel_text.test_tags: missing; sentences to train on have");
  data = Pairs();
  data.sources.clear();
  ExpectRefused(data, network, "data.parallel_text.sources: []; must name the files to train on");
  data = Pairs();
  data.sources[1].clear();
  ExpectRefused(data, network, "data.parallel_text.sources[1]: \"\"; must name a file");
}

TEST(ParallelText, FieldsHaveRanges) {
  const Network network = PairNetwork(8, 9);
  DataSpec data = Pairs();
  data.attributes.Set("sampling", 1.5);
  EXPECT_THAT(std::string(ValidateData(data, network).message()),
              HasSubstr("data.parallel_text.sampling: 1.5; must be a number in [0, 1]"));
  data = Pairs();
  data.attributes.Set("buckets", int64_t{65});
  EXPECT_THAT(std::string(ValidateData(data, network).message()),
              HasSubstr("data.parallel_text.buckets: 65; must be <= 64"));
}

TEST(ParallelText, ANetworkWithOtherInputsIsRefused) {
  Network network = PairNetwork(8, 9);
  network.wires[2].type.shape = {7};
  ExpectRefused(Pairs(), network,
                "data.parallel_text: gives as many targets as tokens; the network reads tokens ");
  ExpectRefused(Pairs(), PairNetwork(8, 9, Length::kTarget),
                "data.parallel_text: gives source of length source; the network reads ids[");
  network = PairNetwork(8, 9);
  network.objective.ignored.reset();
  ExpectRefused(Pairs(), network, "data.parallel_text: pads targets; ");
  network = PairNetwork(8, 9);
  network.inputs[0].name = "images";
  ExpectRefused(Pairs(), network,
                "data.parallel_text: gives source, source_length, tokens and targets; the network "
                "reads \"images\"");
}

// A language model on the targets alone.
TEST(ParallelText, ANetworkWithoutASourceMustNotLookAhead) {
  JobSpec spec;
  GptSpec gpt{.layers = 1, .width = 4, .heads = 1, .context = 16, .vocabulary = 256};
  spec.network = gpt;
  spec.network.objective = CrossEntropySpec{.ignore_index = 0};
  spec.data = Pairs();
  const absl::StatusOr<Network> network = ExpandJob(spec);
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_TRUE(ValidateData(spec.data, *network).ok()) << ValidateData(spec.data, *network);
}

// The network's inputs count, not its kind.
TEST(ParallelText, AListWithAnEncoderReadsPairs) {
  JobSpec spec;
  spec.network = ListedTransformer({.vocabulary = 16,
                                    .source_context = 8,
                                    .target_context = 9,
                                    .width = 4,
                                    .heads = 1,
                                    .encoder_layers = 1,
                                    .decoder_layers = 1});
  spec.network.objective = CrossEntropySpec{.ignore_index = 0};
  spec.data = Pairs();
  const absl::StatusOr<Network> network = ExpandJob(spec);
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_TRUE(ValidateData(spec.data, *network).ok()) << ValidateData(spec.data, *network);
  EXPECT_EQ(PairLimitsOf(*network).source, 8);
  EXPECT_EQ(PairLimitsOf(*network).target, 9);
  EXPECT_TRUE(CheckTranslates(spec, *network).ok()) << CheckTranslates(spec, *network);
  EXPECT_THAT(CheckWritesText(spec, *network),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not on pairs")));
}

TEST(ParallelText, LimitsAreThoseOfTheInputs) {
  PairLimits limits = PairLimitsOf(PairNetwork(8, 9));
  EXPECT_EQ(limits.source, 8);
  EXPECT_EQ(limits.target, 9);
  Network network = PairNetwork(8, 9);
  network.inputs[1].classes = 6;  // lengths up to 5
  EXPECT_EQ(PairLimitsOf(network).source, 5);
}

TEST(ParallelText, AFileIsCheckedByItsHead) {
  const DataKind& kind = DataKinds().Named("parallel_text");
  JobSpec spec;
  spec.data = Pairs();
  const auto check = [&](const char* field, const std::string& head) {
    return kind.CheckFile(spec, PairNetwork(8, 9), {.field = field, .path = "/x"}, head,
                          std::ssize(head));
  };
  EXPECT_TRUE(check("sources[1]", "A sentence.\n").ok());
  EXPECT_TRUE(check("sources[1]", "\x1f\x8b\x08 and more").ok()) << "gzip is unpacked";
  EXPECT_THAT(check("sources[1]", "PK\x03\x04"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       StartsWith("data.parallel_text.sources[1] = \"/x\": looks like a zip")));
  EXPECT_THAT(check("test_targets[0]", ""),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       StartsWith("data.parallel_text.test_targets[0] = \"/x\": the file is empty; "
                                  "give a file with a sentence a line")));
  EXPECT_THAT(check("tokenizer", "PK\x03\x04"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(StartsWith("data.parallel_text.tokenizer = \"/x\": a zip"),
                             HasSubstr("not a SentencePiece model"))));
  EXPECT_TRUE(check("tokenizer", "\n\x0d\n\x05<unk>").ok());
}

TEST(ParallelText, NamesItsFilesByPlace) {
  ParallelTextData data = Pairs();
  data.test_sources = {"/e"};
  std::vector<std::string> fields, paths;
  for (const DataFile& file : DataFiles(data)) {
    EXPECT_FALSE(file.folder);
    fields.push_back(DataFieldPath(data, file));
    paths.push_back(file.path);
  }
  EXPECT_THAT(paths, ElementsAre("/t", "/a", "/b", "/c", "/d", "/e"));
  EXPECT_THAT(fields,
              ElementsAre("data.parallel_text.tokenizer", "data.parallel_text.sources[0]",
                          "data.parallel_text.sources[1]", "data.parallel_text.targets[0]",
                          "data.parallel_text.targets[1]", "data.parallel_text.test_sources[0]"));
}

TEST(ParallelText, EachPathCanBeChanged) {
  DataSpec data = Pairs();
  ChangeDataPaths([](const std::string& path) { return "/moved" + path; }, &data);
  const auto changed = data.As<ParallelTextData>();
  EXPECT_EQ(changed.tokenizer, "/moved/t");
  EXPECT_THAT(changed.sources, ElementsAre("/moved/a", "/moved/b"));
  EXPECT_THAT(changed.targets, ElementsAre("/moved/c", "/moved/d"));
  EXPECT_TRUE(changed.test_sources.empty());
}

}  // namespace
}  // namespace stagecoach
