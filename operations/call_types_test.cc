// Extents with names: through which calls they go, and how a stage tells them to the next.
#include "operations/call_types.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "operations/attention/attention.h"
#include "operations/attention/embedding.h"
#include "operations/catalogue.h"
#include "operations/linear.h"
#include "operations/losses/cross_entropy.h"
#include "operations/reshape.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

constexpr Extent kSource{12, Length::kSource};
const ValueType kNamedRows = ActivationType(Shape::Of({kSource, {6}}));
const ValueType kNamedIds{Element::kIds, Leading::kSamples, Shape::Of({kSource})};
const ValueType kSixWide = WeightType(Element::kActivation, {50, 6});

absl::StatusOr<std::vector<ValueType>> Types(std::string_view operation,
                                             const Attributes& attributes,
                                             const std::vector<ValueType>& inputs) {
  return TypesOfCall(OperationNamed(operation), attributes, inputs, {});
}

TEST(NamedExtents, GoThroughCallsThatCopyThem) {
  const auto embedded = Types("embedding", ToAttributes(EmbeddingAttributes{}),
                              {kNamedIds, kSixWide, WeightType(Element::kActivation, {12, 6})});
  ASSERT_TRUE(embedded.ok()) << embedded.status();
  EXPECT_EQ(FormatType((*embedded)[0]), "activation[n, source 12, 6]");

  const auto product = Types("linear", ToAttributes(LinearAttributes{}),
                             {kNamedRows, WeightType(Element::kActivation, {18, 6})});
  ASSERT_TRUE(product.ok()) << product.status();
  EXPECT_EQ(FormatType((*product)[0]), "activation[n, source 12, 18]");

  const auto attended = Types("attention", ToAttributes(AttentionAttributes{.heads = 2}), *product);
  ASSERT_TRUE(attended.ok()) << attended.status();
  EXPECT_EQ(FormatType((*attended)[0]), "activation[n, source 12, 6]");
  EXPECT_EQ(FormatType((*attended)[1]), "float32[n, 2, source 12]");

  const auto normed =
      Types("layer_norm", {},
            {kNamedRows, WeightType(Element::kFloat32, {6}), WeightType(Element::kFloat32, {6})});
  ASSERT_TRUE(normed.ok()) << normed.status();
  EXPECT_EQ(FormatType((*normed)[1]), "float32[n, source 12]");
  EXPECT_TRUE(
      Types("cross_entropy", ToAttributes(CrossEntropyAttributes{}), {kNamedRows, kNamedIds}).ok());
}

TEST(NamedExtents, OfTwoNamesAreTwoTypesEvenIfEquallyLong) {
  ValueType other = kNamedRows;
  other.shape = other.shape.With(0, {12, Length::kTarget});
  EXPECT_THAT(std::string(Types("add", {}, {kNamedRows, other}).status().message()),
              HasSubstr("activation[n, target 12, 6]"));
}

TEST(NamedExtents, MayNotBecomeNumbers) {
  const auto flat = Types("reshape", ToAttributes(ReshapeAttributes{{72}}), {kNamedRows});
  EXPECT_EQ(flat.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(flat.status().message()),
              HasSubstr("reshape of activation[n, source 12, 6]"));
}

TEST(SentShape, TellsSamplesAndLengths) {
  Lengths lengths;
  lengths.Set(Length::kSource, 5);
  const Shape sent = SentShape(kNamedRows, {3, lengths});
  EXPECT_EQ(sent, (Shape{3, 5, 6}));
  EXPECT_EQ(RuntimeShape(kNamedRows, {3, lengths}), (Shape{15, 6}));
  Binding found{-1};
  ASSERT_TRUE(ReadSentShape(kNamedRows, sent, &found));
  EXPECT_EQ(found, Binding(3, lengths));
}

TEST(SentShape, IsRefusedIfItContradictsWhatIsKnown) {
  Binding found{-1};
  EXPECT_FALSE(ReadSentShape(kNamedRows, {15, 6}, &found)) << "rows alone do not tell";
  EXPECT_FALSE(ReadSentShape(kNamedRows, {3, 13, 6}, &found)) << "over the largest";
  EXPECT_FALSE(ReadSentShape(kNamedRows, {3, 0, 6}, &found));
  EXPECT_FALSE(ReadSentShape(kNamedRows, {3, 5, 7}, &found)) << "another width";
  EXPECT_EQ(found, Binding(-1)) << "a refused shape tells nothing";
  ASSERT_TRUE(ReadSentShape(kNamedRows, {3, 5, 6}, &found));
  EXPECT_FALSE(ReadSentShape(kNamedRows, {3, 4, 6}, &found)) << "another length";
  EXPECT_FALSE(ReadSentShape(kNamedIds, {2, 5}, &found)) << "other samples";
  EXPECT_TRUE(ReadSentShape(kNamedIds, {3, 5}, &found));
}

}  // namespace
}  // namespace stagecoach
