// What a table of operations has as rows, counted by hand.
#include "bench/operations/network_calls.h"

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/network_kinds.h"
#include "network/zoo/gpt.h"
#include "network/zoo/resnet.h"

namespace stagecoach {
namespace {

std::map<std::string, int64_t> TimesByOperation(const std::vector<NetworkCall>& calls) {
  std::map<std::string, int64_t> times;
  for (const NetworkCall& call : calls) times[call.call.operation] += call.times;
  return times;
}

const NetworkCall& First(const std::vector<NetworkCall>& calls, const std::string& operation) {
  for (const NetworkCall& call : calls) {
    if (call.call.operation == operation) return call;
  }
  ADD_FAILURE() << "no " << operation;
  return calls.front();
}

// Three blocks: what they have in common is one row, whatever numbers their dropouts draw.
TEST(NetworkCalls, OfAGptAreEachKindOnceWithItsNumberInAMicroBatch) {
  const GptSpec gpt{
      .layers = 3, .width = 8, .heads = 2, .context = 4, .vocabulary = 11, .dropout = 0.1};
  const std::vector<NetworkCall> calls = NetworkCalls(*ExpandNetwork(gpt), 3);
  const std::map<std::string, int64_t> times = TimesByOperation(calls);
  EXPECT_EQ(times.at("attention"), 3);
  EXPECT_EQ(times.at("attention_gradient"), 3);
  EXPECT_EQ(times.at("layer_norm"), 7);
  EXPECT_EQ(times.at("linear"), 3 * 4 + 1);
  EXPECT_EQ(times.at("linear_weight_gradient"), 3 * 4 + 1);
  EXPECT_EQ(times.at("embedding"), 1);
  EXPECT_EQ(times.at("embedding_weight_gradient"), 1);
  EXPECT_EQ(times.at("cross_entropy"), 1);
  EXPECT_EQ(First(calls, "attention").times, 3) << "one row";
  EXPECT_EQ(First(calls, "layer_norm").times, 7);
  // qkv, out, expand, contract, head
  int64_t linears = 0;
  for (const NetworkCall& call : calls) linears += call.call.operation == "linear" ? 1 : 0;
  EXPECT_EQ(linears, 5);
}

TEST(NetworkCalls, OfAnImageNetworkHaveGradientsOfAllConvolutions) {
  const ResnetSpec resnet{.image = {8, 8, 3}, .classes = 10, .depth = 8, .width = 8};
  const auto times = TimesByOperation(NetworkCalls(*ExpandNetwork(resnet), 3));
  EXPECT_EQ(times.at("convolution"), times.at("convolution_weight_gradient"));
  EXPECT_EQ(times.at("convolution_input_gradient"), times.at("convolution") - 1)
      << "not of the image";
}

TEST(NetworkCalls, CountEveryOperandOnceAndWhatIsAddedToTwice) {
  const GptSpec gpt{.layers = 1, .width = 8, .heads = 2, .context = 4, .vocabulary = 100};
  const std::vector<NetworkCall> calls = NetworkCalls(*ExpandNetwork(gpt, Precision::kBfloat16), 3);
  const CallTypes& head = First(calls, "attention").types;
  // [4, 24] in, [4, 8] out, in 2 bytes each, and a float32 statistic of each row and head, of 3
  // samples
  EXPECT_EQ(LeastBytes(head, 3, DType::kBF16), 3 * (2 * 4 * 24 + 2 * 4 * 8 + 4 * 2 * 4));
  // Three samples look up 12 of the 100 tokens and all of the 4 positions.
  const CallTypes& embedding = First(calls, "embedding").types;
  EXPECT_EQ(LeastBytes(embedding, 3, DType::kBF16), 4 * 12 + 2 * 8 * (12 + 4) + 2 * 12 * 8);
  const CallTypes& gradient = First(calls, "embedding_weight_gradient").types;
  EXPECT_EQ(LeastBytes(gradient, 3, DType::kBF16), 4 * 12 + 2 * 12 * 8 + 2 * 4 * 8 * (12 + 4));
}

TEST(NetworkCalls, KnowWhichOperandsMayHavePaddedRows) {
  const GptSpec gpt{.layers = 1, .width = 8, .heads = 2, .context = 4, .vocabulary = 100};
  int inputs = 0, outputs = 0;
  for (const NetworkCall& call : NetworkCalls(*ExpandNetwork(gpt), 3)) {
    inputs += call.padded_input;
    outputs += call.padded_output;
  }
  EXPECT_EQ(inputs, 3) << "of the loss and of both gradients of the head";
  EXPECT_EQ(outputs, 2) << "of the head and of the loss";
}

// Five samples of four tokens are 20 rows: two chunks of 8 and one of 4.
TEST(NetworkCalls, OfAHeadByChunksHaveRowsInThePlaceOfSamples) {
  const GptSpec gpt{.layers = 1, .width = 8, .heads = 2, .context = 4, .vocabulary = 100};
  const Network network = *ExpandNetwork(gpt);
  std::map<std::string, std::map<int64_t, int64_t>> times;  // by operation and samples
  for (const NetworkCall& call : NetworkCalls(network, 5, HeadChunkLimits{.least_rows = 8})) {
    const bool of_head = call.padded_input || call.padded_output;
    EXPECT_EQ(call.samples == 5, !of_head) << call.call.operation;
    if (!of_head) continue;
    times[call.call.operation][call.samples] += call.times;
    EXPECT_EQ(call.types.inputs[0].shape.rank(), 1) << call.call.operation << ": one row";
  }
  const std::map<int64_t, int64_t> chunks = {{8, 2}, {4, 1}};
  EXPECT_EQ(times.size(), 4u);
  for (const auto& [operation, runs] : times) EXPECT_EQ(runs, chunks) << operation;
  EXPECT_EQ(TimesByOperation(NetworkCalls(network, 5, kCardHeadChunks)),
            TimesByOperation(NetworkCalls(network, 5)))
      << "all in one";
}

TEST(NetworkCalls, AreBoundedByTheSlowerOfArithmeticAndMemory) {
  EXPECT_DOUBLE_EQ(FloorSeconds(2e12, 1e9, 1e12, 1e12), 2.0);
  EXPECT_DOUBLE_EQ(FloorSeconds(0, 3e12, 1e12, 1e12), 3.0);
}

}  // namespace
}  // namespace stagecoach
