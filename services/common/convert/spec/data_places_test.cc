#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/status_is.h"
#include "services/common/convert/spec/convert_kind.h"
#include "services/common/convert/spec/convert_spec.h"
#include "services/common/convert/spec/job_spec_testing.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

v1::Data Text(const std::string& path, const std::string& dataset, const std::string& on_stages) {
  v1::Data data;
  data.mutable_text()->set_path(path);
  data.set_dataset(dataset);
  data.set_on_stages(on_stages);
  return data;
}

std::string PathOf(const absl::StatusOr<DataSpec>& data) {
  if (!data.ok()) return data.status().ToString();
  return std::get<std::string>(*data->attributes.Find("path"));
}

TEST(DataPlaces, PathsAreJoined) {
  EXPECT_EQ(PathOf(DataFromProto(Text("a.txt", "", ""))), "a.txt");
  EXPECT_EQ(PathOf(DataFromProto(Text("/x/a.txt", "", ""))), "/x/a.txt");
  EXPECT_EQ(PathOf(DataFromProto(Text("store:/data/cats/a.txt", "", ""))),
            "store:/data/cats/a.txt");
  EXPECT_EQ(PathOf(DataFromProto(Text("a/b.txt", "cats", ""))), "store:/data/cats/a/b.txt");
  EXPECT_EQ(PathOf(DataFromProto(Text("./a.txt", "cats", ""))), "store:/data/cats/a.txt");
  EXPECT_EQ(PathOf(DataFromProto(Text("a/", "cats", ""))), "store:/data/cats/a");
  EXPECT_EQ(PathOf(DataFromProto(Text(".", "cats", ""))), "store:/data/cats");
  const std::string id(64, 'a');
  EXPECT_EQ(PathOf(DataFromProto(Text("a.txt", id, ""))),
            absl::StrCat("store:/data/", id, "/a.txt"));
  EXPECT_EQ(PathOf(DataFromProto(Text("a.txt", "", "/data"))), "/data/a.txt");
  EXPECT_EQ(PathOf(DataFromProto(Text("a.txt", "", "/data/"))), "/data/a.txt");
  EXPECT_EQ(PathOf(DataFromProto(Text(".", "", "/data"))), "/data");
}

TEST(DataPlaces, FieldsThatWereLeftOutStayEmpty) {
  const auto data = DataFromProto(Text("a.txt", "cats", ""));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(std::get<std::string>(*data->attributes.Find("test")), "");
}

TEST(DataPlaces, ListsOfPaths) {
  v1::Data proto;
  proto.mutable_parallel_text()->add_sources("de.txt");
  proto.mutable_parallel_text()->add_sources("more/de.txt");
  proto.set_dataset("pairs");
  const auto data = DataFromProto(proto);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(std::get<std::vector<std::string>>(*data->attributes.Find("sources")),
              testing::ElementsAre("store:/data/pairs/de.txt", "store:/data/pairs/more/de.txt"));
}

TEST(DataPlaces, RefusesWhatDoesNotFit) {
  const auto says = [](const v1::Data& data, const char* field, const char* why) {
    EXPECT_THAT(DataFromProto(data).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(testing::StartsWith(field), HasSubstr(why))));
  };
  says(Text("a", "cats", "/data"), "data.dataset: ", "give one of them");
  says(Text("/a", "cats", ""), "data.text.path: ", "relative");
  says(Text("/a", "", "/data"), "data.text.path: ", "relative");
  says(Text("store:/data/cats/a", "dogs", ""), "data.text.path: ", "relative");
  says(Text("s3://corpora/a", "dogs", ""), "data.text.path: ", "relative");
  says(Text("s3://corpora/a", "", "/data"), "data.text.path: ", "relative");
  says(Text("../a", "cats", ""), "data.text.path: ", "\"..\"");
  says(Text("a//b", "cats", ""), "data.text.path: ", "none of them empty");
  says(Text("a", "My Cats", ""), "data.dataset: ", "stagecoach data list");
  says(Text("a", "..", ""), "data.dataset: ", "stagecoach data list");
  says(Text("a", "", "data"), "data.on_stages: ", "--data-root");
}

TEST(DataPlaces, OfTheWeightsToBeginWith) {
  v1::JobSpec proto = ToProto(GptJob());
  proto.mutable_initialize()->set_from("bert/model.safetensors");
  proto.mutable_initialize()->set_dataset("weights");
  const auto spec = FromProto(proto);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->initialize.from, "store:/data/weights/bert/model.safetensors");
  EXPECT_EQ(FromProto(ToProto(*spec))->initialize, spec->initialize);
  EXPECT_EQ(ToProto(*spec).initialize().dataset(), "");
  proto.mutable_initialize()->set_from("/bert");
  EXPECT_THAT(FromProto(proto).status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                                  HasSubstr("initialize.from: \"/bert\"")));
}

}  // namespace
}  // namespace stagecoach
