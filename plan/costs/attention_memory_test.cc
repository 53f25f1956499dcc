// Memory of attentions with keys and of cross_attention.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operations/attention/attention_scratch.h"
#include "plan/costs/card_memory.h"
#include "plan/costs/kernel_workspace.h"
#include "plan/costs/keyed_network_testing.h"

namespace stagecoach {
namespace {

TEST(AttentionMemory, OfAThreadFollowsTheColumns) {
  const Network network = MakeKeyedNetwork();
  constexpr int64_t kHeadWidth = kKeyedWidth / 2, kBytes = 4;
  EXPECT_EQ(KernelWorkspaceOf(network, 0, 1, 3, {}).room,
            kBytes * AttentionScratch::Backward(kKeyedRows, kHeadWidth));
  EXPECT_EQ(KernelWorkspaceOf(network, 1, 2, 3, {}).room,
            kBytes * AttentionScratch::Backward(kKeyedColumns, kHeadWidth));
}

TEST(AttentionMemory, OnACardNoLibraryTakesThem) {
  const Network network = MakeKeyedNetwork();
  const AttentionKernels all = {.name = "fused kernels",
                                .precisions = {Precision::kBfloat16},
                                .tile = 1,
                                .widest_head = 128,
                                .head_multiple = 1,
                                .score_bytes = int64_t{1} << 30};
  EXPECT_EQ(AttentionOnCard(all, network),
            "by own, slower kernels, as samples have lengths or documents");
  EXPECT_EQ(AttentionWorkspaceBytes(all, network, 0, 2, 4096, 1), 0);
}

}  // namespace
}  // namespace stagecoach
