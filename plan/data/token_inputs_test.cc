// Which networks a text trains: each token's target is the token behind it.
#include "plan/data/token_inputs.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layers/attention.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
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

TEST(TokenInputs, ANetworkWithACausalMaskIsTaken) {
  const absl::Status status = ExpandValidJob(JobWithAttention(/*causal=*/true)).status();
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace stagecoach
