// What weights of a bert hang on: layers, names, shapes and their number.
#include "network/zoo/bert.h"

#include <string>

#include "base/golden_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/lists/lists.h"
#include "network/names/network_text.h"
#include "network/network_kinds.h"
#include "network/passes/later_rows.h"
#include "network/zoo/zoo_testing.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

BertSpec SmallBert() {
  return {.layers = 2, .width = 16, .heads = 4, .context = 8, .vocabulary = 40, .hidden = 24};
}

TEST(Bert, TextStaysAsItIs) {
  ExpectGolden("network_text_bert.txt", CanonicalNetworkText(ExpandedOf(SmallBert())));
}

TEST(Bert, ListsStayAsTheyAre) {
  BertSpec spec = SmallBert();
  spec.dropout = 0.1;
  const Network network = ExpandedOf(spec);
  ExpectGolden("lists/bert_embedding.txt", FormatLists(*network.layers[0].lists));
  ExpectGolden("lists/bert_mlp.txt", FormatLists(*network.layers[2].lists));
  ExpectGolden("lists/bert_transform.txt", FormatLists(*network.layers[5].lists));
}

TEST(Bert, HasANormBehindEachSum) {
  EXPECT_THAT(LabelsOf(ExpandedOf(SmallBert())),
              ElementsAre("embedding, layer_norm", "residual(attention), layer_norm",
                          "residual(mlp), layer_norm", "residual(attention), layer_norm",
                          "residual(mlp), layer_norm", "linear, gelu, layer_norm", "linear"));
}

// bert-base-uncased of 2018: 109,514,298 parameters with the head of masked tokens, without the
// pooler.
TEST(Bert, BaseHasItsParameters) {
  const BertSpec base{.layers = 12, .width = 768, .heads = 12, .context = 512, .vocabulary = 30522};
  EXPECT_EQ(ParametersOf(ExpandedOf(base)), 109'514'298);
}

TEST(Bert, SeesBothSidesOfAToken) {
  EXPECT_THAT(ReaderOfLaterRows(ExpandedOf(SmallBert())),
              HasSubstr("attention without a causal mask"));
}

TEST(Bert, HeadsMustDivideTheWidth) {
  BertSpec spec = SmallBert();
  spec.heads = 5;
  EXPECT_EQ(ExpandNetwork(spec).status().message(),
            "model.bert.heads: 5; must divide the width 16");
}

}  // namespace
}  // namespace stagecoach
