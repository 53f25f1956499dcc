#include "checkpoint/weight_index.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;

std::string Refusal(const std::string& text) {
  const absl::Status status = ParseWeightIndex(text).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  return std::string(status.message());
}

TEST(WeightIndex, IsReadAsItIsWritten) {
  const WeightIndex index{.total_bytes = 12,
                          .files = {{"a.weight", "model-00001-of-00002.safetensors"},
                                    {"b", "model-00002-of-00002.safetensors"}}};
  const std::string text = FormatWeightIndex(index);
  EXPECT_THAT(text, HasSubstr("\"total_size\": 12"));
  const absl::StatusOr<WeightIndex> back = ParseWeightIndex(text);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->files, index.files);
}

TEST(WeightIndex, OtherMembersAreSkipped) {
  const auto index = ParseWeightIndex(
      R"({"metadata":{"weight_map":{"x":[1,{"y":null}]},"total_size":1e9},"more":[true,-1],)"
      R"("weight_map":{"a":"one.safetensors"}})");
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ(index->files, (std::map<std::string, std::string>{{"a", "one.safetensors"}}));
}

TEST(WeightIndex, BadTextsAreRefusedWithTheirPlace) {
  EXPECT_THAT(Refusal("{}"), HasSubstr("no weight_map"));
  EXPECT_THAT(Refusal(R"({"weight_map":{}})"), HasSubstr("no weight_map"));
  EXPECT_THAT(Refusal(R"({"weight_map":[]})"), HasSubstr("weight_map is an array, want an object"));
  EXPECT_THAT(Refusal(R"({"weight_map":"a"})"), HasSubstr("weight_map is a text"));
  EXPECT_THAT(Refusal(R"({"weight_map":{"a":1}})"),
              HasSubstr("tensor a is a number, want a file's name"));
  EXPECT_THAT(Refusal(R"({"weight_map":{"a":{}}})"), HasSubstr("tensor a is an object"));
  EXPECT_THAT(Refusal(R"({"weight_map":{"a":"x","a":"y"}})"), HasSubstr("tensor a is named twice"));
  EXPECT_THAT(Refusal(R"({"weight_map":{"a":"x"},"weight_map":{"b":"y"}})"),
              HasSubstr("weight_map given twice"));
  for (const char* file : {"../x", "/x", "a/b", "", ".x"}) {
    EXPECT_THAT(Refusal(std::string(R"({"weight_map":{"a":")") + file + "\"}}"),
                HasSubstr("is no file's name in the same folder"));
  }
  EXPECT_THAT(Refusal(R"({"weight_map":{"a":"x"})"), HasSubstr("not JSON at byte"));
  EXPECT_THAT(Refusal("[]"), HasSubstr("not the index of sharded weights"));
  EXPECT_THAT(Refusal(""), HasSubstr("an empty file, not the index"));
  EXPECT_THAT(Refusal(std::string(kMaxWeightIndexBytes + 1, '{')), HasSubstr("over 16 MiB"));
  Refusal("{" + std::string(1 << 20, '['));
}

TEST(WeightIndex, ShardsAreNamedAsHuggingFaceNamesThem) {
  EXPECT_EQ(WeightShardFile(0, 1), "model.safetensors");
  EXPECT_EQ(WeightShardFile(0, 3), "model-00001-of-00003.safetensors");
  EXPECT_EQ(WeightShardFile(2, 3), "model-00003-of-00003.safetensors");
}

}  // namespace
}  // namespace stagecoach
