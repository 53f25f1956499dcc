// Attributes: a struct's visit is the text, the comparison and the errors of its fields.
#include "operations/attributes.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "operations/attention/attention.h"

namespace stagecoach {
namespace {

struct EveryField {
  enum class Norm { kNone, kBatch, kGroup };
  std::string path;
  std::string note;
  std::vector<int64_t> widths;
  std::vector<double> weights;
  std::vector<std::string> files;
  Norm norm = Norm::kBatch;
  double epsilon = 1e-8;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Text("path", path, "must name the file");
    visit.Text("note", note);
    visit.Counts("widths", widths, 1, 64, 3);
    visit.Weights("weights", weights, 0.5, 8, 3);
    visit.Texts("files", files, 2, "must name a file");
    visit.Choice("norm", norm, {"none", "batch", "group"});
    visit.Positive("epsilon", epsilon, 1);
  }
};

std::string AttributeRefusal(const char* name, AttributeValue value) {
  Attributes attributes = ToAttributes(EveryField{.path = "file"});
  attributes.Set(name, std::move(value));
  return std::string(FromAttributes<EveryField>(attributes, "data.").status().message());
}

TEST(Attributes, OfAStructAndBackAreTheSame) {
  const AttentionAttributes attention{4, 0.25, 3};
  const Attributes attributes = ToAttributes(attention);
  EXPECT_EQ(FormatAttributes(attributes), "heads=4 dropout=0.25 draw=3");
  const auto back = FromAttributes<AttentionAttributes>(attributes);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(ToAttributes(*back), attributes);
}

TEST(Attributes, TextsListsAndChoicesComeBackToo) {
  const EveryField fields{.path = "/a b",
                          .widths = {8, 64},
                          .weights = {0.5, 0},
                          .files = {"a", "b c"},
                          .norm = EveryField::Norm::kGroup};
  const Attributes attributes = ToAttributes(fields);
  const auto back = FromAttributes<EveryField>(attributes);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(ToAttributes(*back), attributes);
  EXPECT_EQ(back->norm, EveryField::Norm::kGroup);
  EXPECT_NE(ToAttributes(EveryField{.path = "/a b", .widths = {64, 8}}), attributes);
}

TEST(Attributes, TextHasQuotesWhereItIsNoWord) {
  const auto text = [](const EveryField& fields) { return FormatAttributes(ToAttributes(fields)); };
  EXPECT_EQ(text({.path = "/data/a-b_c.gz", .widths = {8, 64}}),
            "path=/data/a-b_c.gz widths=[8,64] norm=batch epsilon=1e-08");
  EXPECT_EQ(text({.path = "f", .weights = {0.5, 8, 0}}),
            "path=f weights=[0.5,8,0] norm=batch epsilon=1e-08");
  EXPECT_EQ(text({.path = "f", .files = {"/a.gz", "b c"}}),
            R"(path=f files=[/a.gz,"b c"] norm=batch epsilon=1e-08)");
  EXPECT_EQ(text({.path = "a b=\"c\"\n", .note = "x"}),
            R"(path="a b=\"c\"\n" note=x norm=batch epsilon=1e-08)");
}

TEST(Attributes, WhatIsLeftOutHasTheStructsDefault) {
  Attributes attributes;
  attributes.Set("path", "file");
  const auto fields = FromAttributes<EveryField>(attributes);
  ASSERT_TRUE(fields.ok()) << fields.status();
  EXPECT_EQ(fields->norm, EveryField::Norm::kBatch);
  EXPECT_EQ(fields->epsilon, 1e-8);
}

TEST(Attributes, WhatIsNotAllowedIsNamedWithWhatIs) {
  const auto refusal = [](Attributes attributes) {
    return std::string(FromAttributes<AttentionAttributes>(attributes).status().message());
  };
  Attributes few, much, kind, unknown;
  few.Set("heads", int64_t{0});
  EXPECT_EQ(refusal(few), "attribute heads: 0; must be >= 1");
  much.Set("dropout", 1.0);
  EXPECT_EQ(refusal(much), "attribute dropout: 1; must be a number in [0, 1)");
  kind.Set("heads", 0.5);
  EXPECT_EQ(refusal(kind), "attribute heads: 0.5; must be a whole number");
  unknown.Set("head", int64_t{2});
  EXPECT_EQ(refusal(unknown), "attribute head is not known; did you mean \"heads\"?");
}

TEST(Attributes, ATextThatIsMissingTooLongOrNoneIsRefused) {
  EXPECT_EQ(AttributeRefusal("path", ""), "data.path: \"\"; must name the file");
  EXPECT_EQ(AttributeRefusal("note", ""), "");
  EXPECT_EQ(AttributeRefusal("note", std::string(kMaxText, 'a')), "");
  EXPECT_EQ(AttributeRefusal("note", std::string(kMaxText + 1, 'a')),
            "data.note: 4097 bytes; must be at most 4096 bytes without NUL");
  EXPECT_EQ(AttributeRefusal("note", std::string("a\0b", 3)),
            "data.note: 3 bytes; must be at most 4096 bytes without NUL");
  EXPECT_EQ(AttributeRefusal("note", int64_t{3}), "data.note: 3; must be a text");
}

TEST(Attributes, AListIsRefusedByItsEntry) {
  EXPECT_EQ(AttributeRefusal("widths", std::vector<int64_t>{1, 64, 7}), "");
  EXPECT_EQ(AttributeRefusal("widths", std::vector<int64_t>{8, 0, 8}),
            "data.widths[1]: 0; must be >= 1");
  EXPECT_EQ(AttributeRefusal("widths", std::vector<int64_t>{65}),
            "data.widths[0]: 65; must be <= 64");
  EXPECT_EQ(AttributeRefusal("widths", std::vector<int64_t>(4, 8)),
            "data.widths: 4 entries; must be at most 3");
  EXPECT_EQ(AttributeRefusal("widths", 1.5), "data.widths: 1.5; must be a list of whole numbers");
}

TEST(Attributes, AWeightIs0OrInItsBounds) {
  const auto refusal = [](std::vector<double> weights) {
    return AttributeRefusal("weights", std::move(weights));
  };
  EXPECT_EQ(refusal({0.5, 0, 8}), "");
  EXPECT_EQ(refusal({0.5, 0.25}), "data.weights[1]: 0.25; must be 0 or a number in [0.5, 8]");
  EXPECT_EQ(refusal({9}), "data.weights[0]: 9; must be 0 or a number in [0.5, 8]");
  EXPECT_EQ(refusal({-0.5}), "data.weights[0]: -0.5; must be 0 or a number in [0.5, 8]");
  EXPECT_EQ(refusal({std::numeric_limits<double>::quiet_NaN()}),
            "data.weights[0]: nan; must be 0 or a number in [0.5, 8]");
  EXPECT_EQ(refusal({std::numeric_limits<double>::infinity()}),
            "data.weights[0]: inf; must be 0 or a number in [0.5, 8]");
  EXPECT_EQ(refusal({1, 1, 1, 1}), "data.weights: 4 entries; must be at most 3");
  EXPECT_EQ(AttributeRefusal("weights", std::vector<int64_t>{1}),
            "data.weights: [1]; must be a list of numbers");
}

TEST(Attributes, ATextOfAListIsRefusedByItsPlace) {
  const auto refusal = [](std::vector<std::string> files) {
    return AttributeRefusal("files", std::move(files));
  };
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal({"a", "b"}), "");
  EXPECT_EQ(refusal({"a", ""}), "data.files[1]: \"\"; must name a file");
  EXPECT_EQ(refusal({std::string("a\0b", 3)}),
            "data.files[0]: 3 bytes; must be at most 4096 bytes without NUL");
  EXPECT_EQ(refusal({"a", "b", "c"}), "data.files: 3 entries; must be at most 2");
  EXPECT_EQ(AttributeRefusal("files", "a"), "data.files: a; must be a list of texts");
}

TEST(Attributes, AChoiceIsOneOfItsNames) {
  EXPECT_EQ(AttributeRefusal("norm", "none"), "");
  EXPECT_EQ(AttributeRefusal("norm", "bach"),
            "data.norm: \"bach\"; must be none, batch or group; did you mean \"batch\"?");
  EXPECT_EQ(AttributeRefusal("norm", int64_t{1}), "data.norm: 1; must be a text");
}

TEST(Attributes, APositiveNumberIsNot0NorNone) {
  EXPECT_EQ(AttributeRefusal("epsilon", 1.0), "");
  EXPECT_EQ(AttributeRefusal("epsilon", 0.0), "data.epsilon: 0; must be a number in (0, 1]");
  EXPECT_EQ(AttributeRefusal("epsilon", std::numeric_limits<double>::quiet_NaN()),
            "data.epsilon: nan; must be a number in (0, 1]");
}

}  // namespace
}  // namespace stagecoach
