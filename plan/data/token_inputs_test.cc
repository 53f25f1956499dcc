// Which networks a text trains: each token's target is the token behind it.
#include "plan/data/token_inputs.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layers/attention.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/objectives/cross_entropy.h"
#include "network/zoo/bert.h"
#include "network/zoo/sequence.h"
#include "plan/data/json_lines.h"
#include "plan/data/text.h"
#include "plan/data/token_file.h"
#include "plan/plan.h"

namespace stagecoach {
namespace {

JobSpec JobWithAttention(bool causal) {
  JobSpec spec;
  spec.name = "text";
  spec.network =
      SequenceSpec{.width = 8,
                   .context = 4,
                   .vocabulary = 256,
                   .layers = {EmbeddingSpec{}, AttentionSpec{.heads = 2, .causal = causal},
                              LinearSpec{.out = 256}}};
  spec.data = TextData{.path = "/text"};
  spec.training.steps = 1;
  spec.training.batch_size = 1;
  spec.training.micro_batches = 1;
  spec.pipeline.stages = 1;
  return spec;
}

// It would have a loss near zero, and write nothing but what it was given.
TEST(TokenInputs, ANetworkThatReadsItsTargetsIsRefusedForEveryText) {
  JobSpec spec = JobWithAttention(/*causal=*/false);
  TokenFileData tokens;
  tokens.files = {"/tokens"};
  for (const auto& [data, prefix] :
       {std::pair(DataSpec(TextData{.path = "/text"}), "data.text"),
        std::pair(DataSpec(JsonLinesData{.files = {"/lines"}, .tokenizer = "/pieces.model"}),
                  "data.json_lines"),
        std::pair(DataSpec(tokens), "data.token_file")}) {
    spec.data = data;
    const absl::Status status = ExpandValidJob(spec).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_EQ(std::string(status.message()),
              std::string(prefix) +
                  ": gives the token behind each token as its target; the network reads that token "
                  "too (layer 1, attention, by attention without a causal mask), so it would learn "
                  "to copy it: take a layer that looks back only, as attention with its causal "
                  "mask");
  }
}

JobSpec MaskedJob() {
  JobSpec spec = JobWithAttention(/*causal=*/false);
  spec.network.objective.kind = CrossEntropySpec::kKind;
  spec.network.objective.attributes = ToAttributes(CrossEntropySpec{.ignore_index = 0});
  spec.data = TextData{.path = "/text", .tokenizer = "/tokenizer.json", .masked = 0.15};
  return spec;
}

std::string RefusalOf(const JobSpec& spec) {
  return std::string(ExpandValidJob(spec).status().message());
}

TEST(TokenInputs, MaskedTokensTrainANetworkThatSeesBothSides) {
  JobSpec spec = MaskedJob();
  EXPECT_EQ(RefusalOf(spec), "");
  spec.data = JsonLinesData{.files = {"/lines"}, .tokenizer = "/tokenizer.json", .masked = 0.15};
  EXPECT_EQ(RefusalOf(spec), "");
  spec.network = BertSpec{.layers = 1, .width = 8, .heads = 2, .context = 4, .vocabulary = 256};
  spec.network.objective = MaskedJob().network.objective;
  EXPECT_EQ(RefusalOf(spec), "");
}

TEST(TokenInputs, MaskedTokensNeedATokenizerAndTargetsThatDoNotCount) {
  JobSpec spec = MaskedJob();
  spec.data.attributes.Set("tokenizer", std::string());
  EXPECT_EQ(RefusalOf(spec),
            "data.text.tokenizer: not given; masked tokens become the tokenizer's mask token: give "
            "a tokenizer");
  spec = MaskedJob();
  spec.network.objective = {};
  EXPECT_EQ(RefusalOf(spec),
            "data.text.masked: 0.15; tokens that are not masked have no target: set "
            "model.objective.cross_entropy.ignore_index to the tokenizer's padding");
  spec = MaskedJob();
  spec.network = JobWithAttention(/*causal=*/true).network;
  spec.network.objective = MaskedJob().network.objective;
  EXPECT_EQ(RefusalOf(spec),
            "data.text.masked: 0.15; the network sees no token behind a masked one: take one that "
            "does, as bert, or leave out masked");
}

TEST(TokenInputs, MaskedTokensAreNotPacked) {
  JobSpec spec = MaskedJob();
  spec.data = JsonLinesData{
      .files = {"/lines"}, .tokenizer = "/tokenizer.json", .packed = true, .masked = 0.15};
  EXPECT_EQ(RefusalOf(spec),
            "data.json_lines.packed: true; keeps documents apart in networks that look back, and "
            "masked tokens are for others: leave out one of the two");
}

TEST(TokenInputs, ABertNeedsMaskedTokens) {
  JobSpec spec = MaskedJob();
  spec.network = BertSpec{.layers = 1, .width = 8, .heads = 2, .context = 4, .vocabulary = 256};
  spec.network.objective = MaskedJob().network.objective;
  spec.data.attributes.Set("masked", 0.0);
  EXPECT_EQ(RefusalOf(spec),
            "data.text.masked: 0; the network learns masked tokens: set masked: 0.15");
}

TEST(TokenInputs, ANetworkWithACausalMaskIsTaken) {
  const absl::Status status = ExpandValidJob(JobWithAttention(/*causal=*/true)).status();
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace stagecoach
