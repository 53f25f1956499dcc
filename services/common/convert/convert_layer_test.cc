// A kind of layer is a message and a struct: both sides have the same fields, for every kind.
#include "services/common/convert/convert_layer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "network/layer_kinds.h"
#include "network/layers/attention.h"
#include "network/layers/gelu.h"
#include "network/layers/linear.h"
#include "network/layers/residual.h"
#include "services/common/convert/convert_fields.h"

namespace stagecoach {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using testing::ElementsAre;
using testing::IsEmpty;

const Descriptor& MessageOf(const LayerKind& kind) {
  const FieldDescriptor* field = v1::Layer::descriptor()->FindFieldByName(std::string(kind.name()));
  CHECK(field != nullptr) << kind.name();
  return *field->message_type();
}

TEST(LayerMessages, EveryKindHasOneAndEachIsAKinds) {
  std::vector<std::string> kinds, messages;
  for (const LayerKind* kind : AllLayerKinds()) kinds.emplace_back(kind->name());
  const Descriptor& layer = *v1::Layer::descriptor();
  for (int i = 0; i < layer.field_count(); ++i) {
    ASSERT_NE(layer.field(i)->real_containing_oneof(), nullptr) << layer.field(i)->name();
    messages.push_back(layer.field(i)->name());
  }
  EXPECT_THAT(messages, testing::UnorderedElementsAreArray(kinds));
}

TEST(LayerMessages, HaveTheFieldsOfTheirStructs) {
  for (const LayerKind* kind : AllLayerKinds()) {
    const Descriptor& message = MessageOf(*kind);
    const std::vector<std::string> inner(kind->HasLayers() ? 1 : 0, kInnerLayers);
    EXPECT_THAT(FieldProblems(message, kind->Defaults(), inner), IsEmpty());
    if (!kind->HasLayers()) continue;
    const FieldDescriptor* list = message.FindFieldByName(kInnerLayers);
    ASSERT_NE(list, nullptr) << message.full_name();
    EXPECT_TRUE(list->is_repeated());
    EXPECT_EQ(list->message_type(), v1::Layer::descriptor());
  }
}

// What the test above would say of a field that one side forgot or has of another type.
TEST(LayerMessages, AFieldThatOneSideLacksIsTold) {
  const Descriptor& linear = *v1::LinearLayer::descriptor();
  Attributes fields = ToAttributes(LinearSpec());
  ASSERT_THAT(FieldProblems(linear, fields), IsEmpty());
  fields.Set("groups", int64_t{0});
  EXPECT_THAT(FieldProblems(linear, fields),
              ElementsAre("stagecoach.v1.LinearLayer.groups is missing"));
  EXPECT_THAT(FieldProblems(linear, {}),
              ElementsAre("stagecoach.v1.LinearLayer.out is not in the struct",
                          "stagecoach.v1.LinearLayer.no_bias is not in the struct"));
  fields = ToAttributes(LinearSpec());
  fields.Set("out", 0.0);
  EXPECT_THAT(FieldProblems(linear, fields),
              ElementsAre("stagecoach.v1.LinearLayer.out is int64; the struct has double"));
  fields = ToAttributes(LinearSpec());
  fields.Set("no_bias", true);
  EXPECT_THAT(
      FieldProblems(linear, fields),
      ElementsAre("stagecoach.v1.LinearLayer.no_bias must be optional: its default is not 0"));
  EXPECT_THAT(FieldProblems(*v1::ResidualLayer::descriptor(), {}),
              ElementsAre("stagecoach.v1.ResidualLayer.layers is not in the struct"));
}

// Each field by itself is set to something else than its default, goes over and comes back.
TEST(LayerMessages, CarryEveryFieldOfEveryKind) {
  for (const LayerKind* kind : AllLayerKinds()) {
    const Attributes defaults = kind->Defaults();
    std::vector<LayerSpec> layers(1);
    layers[0].kind = kind->name();
    layers[0].attributes = defaults;
    for (const Attributes::Entry& entry : defaults.entries()) {
      layers.push_back(layers[0]);
      AttributeValue other = entry.value;
      if (bool* flag = std::get_if<bool>(&other)) *flag = !*flag;
      if (int64_t* count = std::get_if<int64_t>(&other)) *count += 7;
      if (double* number = std::get_if<double>(&other)) *number += 0.25;
      layers.back().attributes.Set(entry.name, other);
      ASSERT_NE(layers.back(), layers[0]) << entry.name;
    }
    if (kind->HasLayers()) layers[0].layers = {GeluSpec{}, LinearSpec{.out = 3}};
    for (const LayerSpec& layer : layers) {
      v1::Layer proto;
      LayerToProto(layer, &proto);
      const absl::StatusOr<LayerSpec> back = LayerFromProto(proto, "layer");
      ASSERT_TRUE(back.ok()) << back.status();
      EXPECT_EQ(*back, layer) << proto.DebugString();
    }
  }
}

TEST(LayerMessages, AFieldThatWasLeftOutHasTheStructsDefault) {
  for (const LayerKind* kind : AllLayerKinds()) {
    v1::Layer proto;
    proto.GetReflection()->MutableMessage(
        &proto, v1::Layer::descriptor()->FindFieldByName(std::string(kind->name())));
    const absl::StatusOr<LayerSpec> layer = LayerFromProto(proto, "layer");
    ASSERT_TRUE(layer.ok()) << layer.status();
    EXPECT_EQ(layer->attributes, kind->Defaults()) << kind->name();
  }
}

// Bytes of stored jobs: numbers of fields and kinds stay what they are.
TEST(LayerMessages, HaveTheBytesThatStoredJobsHave) {
  const LayerSpec layer = ResidualSpec{{AttentionSpec{2, 0.5}, LinearSpec{3, false}}};
  v1::Layer proto;
  LayerToProto(layer, &proto);
  const std::string attention("\x1a\x0b\x08\x02\x11\0\0\0\0\0\0\xe0\x3f", 13);
  const std::string linear("\x2a\x04\x08\x03\x10\x01", 6);
  const std::string inner = "\x0a\x0d" + attention + "\x0a\x06" + linear;
  EXPECT_EQ(proto.SerializeAsString(), "\x42\x17" + inner);
}

}  // namespace
}  // namespace stagecoach
