// Fields of every type of attribute between messages and structs. What kinds of layers have is in
// convert_layer_test.cc.
#include "services/common/convert/fields/convert_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "services/common/convert/fields/enum_name.h"
#include "services/common/convert/fields/field_problems_testing.h"
#include "stagecoach/v1/data.pb.h"
#include "stagecoach/v1/model.pb.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// What stands for stagecoach.v1.Partition, which has a choice and a list.
struct SpreadFields {
  enum class Rule { kAuto, kUniform };
  Rule rule = Rule::kAuto;
  std::vector<int64_t> cuts;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Choice("rule", rule, {"auto", "uniform"});
    visit.Counts("cuts", cuts, 1, 100, 3);
  }
};

// What stands for stagecoach.v1.TextData.
struct PathFields {
  std::string path;
  bool bytes = false;
  std::string tokenizer, test;
  double masked = 0;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Text("path", path);
    visit.Flag("bytes", bytes);
    visit.Text("tokenizer", tokenizer);
    visit.Text("test", test);
    visit.Rate("masked", masked);
  }
};

std::vector<std::string> SpreadProblems(const Attributes& fields) {
  return FieldProblems(*v1::Partition::descriptor(), fields);
}

TEST(ConvertFields, AChoiceAListAndATextGoOverAndComeBack) {
  const Attributes spread =
      ToAttributes(SpreadFields{.rule = SpreadFields::Rule::kUniform, .cuts = {3, 1 << 20}});
  v1::Partition partition;
  SetFields(spread, &partition);
  EXPECT_EQ(partition.rule(), v1::PARTITION_RULE_UNIFORM);
  EXPECT_THAT(partition.cuts(), ElementsAre(3, 1 << 20));
  SetFields(spread, &partition);  // the list is set anew, not longer
  EXPECT_THAT(partition.cuts(), ElementsAre(3, 1 << 20));
  EXPECT_EQ(FieldsOf(partition, ToAttributes(SpreadFields())), spread);

  const Attributes path = ToAttributes(PathFields{.path = "a \xc3\xa4", .bytes = true});
  v1::TextData text;
  SetFields(path, &text);
  EXPECT_EQ(text.path(), "a \xc3\xa4");
  EXPECT_EQ(FieldsOf(text, ToAttributes(PathFields())), path);
}

TEST(ConvertFields, AChoiceThatWasLeftOutIsTheStructsDefault) {
  const Attributes uniform = ToAttributes(SpreadFields{.rule = SpreadFields::Rule::kUniform});
  EXPECT_EQ(FieldsOf(v1::Partition(), uniform), uniform);
}

// A newer client's value: kept as its number, refused by the struct, and handed on as it came.
TEST(ConvertFields, AChoiceThatThisVersionDoesNotKnowIsRefusedByItsNumber) {
  v1::Partition partition;
  partition.set_rule(static_cast<v1::PartitionRule>(77));
  const Attributes fields = FieldsOf(partition, ToAttributes(SpreadFields()));
  EXPECT_EQ(FromAttributes<SpreadFields>(fields, "pipeline.partition.").status().message(),
            "pipeline.partition.rule: \"77\"; must be auto or uniform");
  v1::Partition again;
  SetFields(fields, &again);
  EXPECT_EQ(again.rule(), 77);
}

TEST(ConvertFields, WhatAStructAndItsMessageDoNotHaveInCommonIsTold) {
  ASSERT_THAT(SpreadProblems(ToAttributes(SpreadFields())), IsEmpty());
  ASSERT_THAT(FieldProblems(*v1::TextData::descriptor(), ToAttributes(PathFields())), IsEmpty());

  Attributes fields = ToAttributes(SpreadFields());
  fields.Set("cuts", int64_t{0});
  EXPECT_THAT(SpreadProblems(fields),
              ElementsAre("stagecoach.v1.Partition.cuts is repeated int64; the struct has int64"));
  fields = ToAttributes(SpreadFields());
  fields.Set("cuts", std::vector<int64_t>{1});
  EXPECT_THAT(SpreadProblems(fields),
              ElementsAre(HasSubstr("Partition.cuts must be empty by default")));
  fields = ToAttributes(SpreadFields());
  fields.Set("rule", "by_hand");
  EXPECT_THAT(SpreadProblems(fields), ElementsAre("stagecoach.v1.Partition.rule has no value "
                                                  "by_hand, which is the default"));
  fields = ToAttributes(PathFields());
  fields.Set("path", "x");
  EXPECT_THAT(FieldProblems(*v1::TextData::descriptor(), fields),
              ElementsAre("stagecoach.v1.TextData.path must be optional: its default is not 0"));
  fields.Set("path", std::vector<int64_t>());
  EXPECT_THAT(FieldProblems(*v1::TextData::descriptor(), fields),
              ElementsAre("stagecoach.v1.TextData.path is string; the struct has repeated int64"));
}

TEST(EnumNames, OfUnspecifiedNoNumberIsFound) {
  const auto& rules = *v1::PartitionRule_descriptor();
  EXPECT_EQ(ShortEnumName(*rules.FindValueByNumber(v1::PARTITION_RULE_UNIFORM)), "uniform");
  EXPECT_EQ(EnumNumber(rules, "uniform"), v1::PARTITION_RULE_UNIFORM);
  EXPECT_EQ(EnumNumber(rules, "unspecified"), std::nullopt);
  EXPECT_EQ(EnumNumber(rules, "uni"), std::nullopt);
}

}  // namespace
}  // namespace stagecoach
