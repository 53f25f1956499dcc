// Memory of attentions with keys and of attention across two sequences.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operations/attention/attention_scratch.h"
#include "plan/costs/card_memory.h"
#include "plan/costs/host_memory.h"
#include "plan/costs/keyed_network_testing.h"

namespace stagecoach {
namespace {

TEST(KeyedAttention, TakesOfAThreadWhatItsColumnsNeed) {
  const Network network = MakeKeyedNetwork();
  constexpr int64_t kHeadWidth = kKeyedWidth / 2, kBytes = 4;
  EXPECT_EQ(HostWorkspace(network, 0, 1, 3, {}).room,
            kBytes * AttentionScratch::Backward(kKeyedRows, kHeadWidth));
  // The loss, which the last layer has beside, takes less.
  EXPECT_EQ(HostWorkspace(network, 1, 2, 3, {}).room,
            kBytes * AttentionScratch::Backward(kKeyedColumns, kHeadWidth));
}

TEST(KeyedAttention, GoesByOwnKernelsOnACard) {
  const Network network = MakeKeyedNetwork();
  const CardProfile card = {.attention = AttentionKernels{.name = "fused kernels",
                                                          .precisions = {Precision::kBfloat16},
                                                          .tile = 1,
                                                          .widest_head = 128,
                                                          .head_multiple = 1,
                                                          .score_bytes = int64_t{1} << 30}};
  EXPECT_EQ(KernelsOnCard(card, network),
            "attention: by own, slower kernels, as samples have lengths or documents");
  EXPECT_EQ(CallBytesOnCard(card, network, 0, 2, 4096, 1), 0);
}

}  // namespace
}  // namespace stagecoach
