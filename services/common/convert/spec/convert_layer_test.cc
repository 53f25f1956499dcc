// A kind of layer or network is a message and a struct: both sides have the same fields, for every
// kind.
#include "services/common/convert/spec/convert_layer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "network/layer_kinds.h"
#include "network/layers/activations.h"
#include "network/layers/attention.h"
#include "network/layers/linear.h"
#include "network/layers/residual.h"
#include "network/network_kinds.h"
#include "network/objective_kind.h"
#include "network/objectives/cross_entropy.h"
#include "network/zoo/gpt.h"
#include "network/zoo/sequence.h"
#include "services/common/convert/fields/convert_fields.h"
#include "services/common/convert/fields/field_problems_testing.h"
#include "services/common/convert/spec/other_value_testing.h"

namespace stagecoach {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using testing::ElementsAre;
using testing::IsEmpty;

// `Kind` is LayerKind, NetworkKind or ObjectiveKind, `choice` the message with a field for each.
template <typename Kind>
void ExpectAMessageEach(const std::vector<const Kind*>& kinds, const Descriptor& choice) {
  std::vector<std::string> names, messages;
  for (const Kind* kind : kinds) names.emplace_back(kind->name());
  const google::protobuf::OneofDescriptor& fields = *choice.FindOneofByName("kind");
  for (int i = 0; i < fields.field_count(); ++i) messages.push_back(fields.field(i)->name());
  EXPECT_THAT(messages, testing::UnorderedElementsAreArray(names));
}

TEST(LayerMessages, EveryKindHasOneAndEachIsAKinds) {
  ExpectAMessageEach(AllLayerKinds(), *v1::Layer::descriptor());
  ExpectAMessageEach(AllNetworkKinds(), *v1::Model::descriptor());
  ExpectAMessageEach(AllObjectiveKinds(), *v1::Objective::descriptor());
}

// The fields that are lists of layers. Only networks have an encoder.
template <typename Kind>
std::vector<std::string> ListsOf(const Kind& kind) {
  std::vector<std::string> names;
  if (kind.HasLayers()) names.emplace_back(kInnerLayers);
  if constexpr (requires { kind.HasEncoder(); }) {
    if (kind.HasEncoder()) names.emplace_back(kEncoderLayers);
  }
  return names;
}

template <typename Kind>
void ExpectTheFieldsOfTheStructs(const std::vector<const Kind*>& kinds, const Descriptor& choice) {
  for (const Kind* kind : kinds) {
    const FieldDescriptor* field = choice.FindFieldByName(std::string(kind->name()));
    ASSERT_NE(field, nullptr) << kind->name();
    const Descriptor& message = *field->message_type();
    const std::vector<std::string> inner = ListsOf(*kind);
    EXPECT_THAT(FieldProblems(message, kind->Defaults(), inner), IsEmpty());
    for (const std::string& name : inner) {
      const FieldDescriptor* list = message.FindFieldByName(name);
      ASSERT_NE(list, nullptr) << message.full_name() << "." << name;
      EXPECT_TRUE(list->is_repeated());
      EXPECT_EQ(list->message_type(), v1::Layer::descriptor());
    }
  }
}

TEST(LayerMessages, HaveTheFieldsOfTheirStructs) {
  ExpectTheFieldsOfTheStructs(AllLayerKinds(), *v1::Layer::descriptor());
  ExpectTheFieldsOfTheStructs(AllNetworkKinds(), *v1::Model::descriptor());
}

TEST(ObjectiveMessages, HaveTheFieldsOfTheirStructs) {
  for (const ObjectiveKind* kind : AllObjectiveKinds()) {
    const FieldDescriptor* field =
        v1::Objective::descriptor()->FindFieldByName(std::string(kind->name()));
    ASSERT_NE(field, nullptr) << kind->name();
    EXPECT_THAT(FieldProblems(*field->message_type(), kind->Defaults()), IsEmpty());
  }
}

TEST(ObjectiveMessages, ComeBackEqualWithTheirNetwork) {
  NetworkSpec spec = GptSpec{.layers = 1, .width = 8, .heads = 2, .context = 4, .vocabulary = 16};
  EXPECT_FALSE(ModelToProto(spec).has_objective()) << "a network's own";
  spec.objective = CrossEntropySpec{.label_smoothing = 0.1, .ignore_index = 0, .top = 3};
  const absl::StatusOr<NetworkSpec> back = ModelFromProto(ModelToProto(spec));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(*back == spec);
  v1::Model none = ModelToProto(spec);
  none.mutable_objective()->Clear();
  EXPECT_EQ(ModelFromProto(none).status().message(),
            "model.objective: not set, want cross_entropy or mean_squared_error");
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

// The kind with its defaults and with listed layers if it has any, and for each field one in which
// it alone is something else. `Spec` is LayerSpec or NetworkSpec.
template <typename Spec, typename Kind>
std::vector<Spec> OneForEachField(const Kind& kind, const Descriptor& choice) {
  const Descriptor& message = *choice.FindFieldByName(std::string(kind.name()))->message_type();
  const Attributes defaults = kind.Defaults();
  std::vector<Spec> specs(1);
  specs[0].kind = kind.name();
  specs[0].attributes = defaults;
  for (const Attributes::Entry& entry : defaults.entries()) {
    specs.push_back(specs[0]);
    const FieldDescriptor* field = message.FindFieldByName(entry.name);
    specs.back().attributes.Set(entry.name, OtherValue(entry.value, *field));
    EXPECT_NE(specs.back(), specs[0]) << entry.name;
  }
  if (kind.HasLayers()) specs[0].layers = {GeluSpec{}, LinearSpec{.out = 3}};
  if constexpr (requires { specs[0].encoder; }) {
    if (kind.HasEncoder()) specs[0].encoder = {LinearSpec{.out = 5}, ReluSpec{}};
  }
  return specs;
}

TEST(LayerMessages, CarryEveryFieldOfEveryKind) {
  for (const LayerKind* kind : AllLayerKinds()) {
    for (const LayerSpec& layer : OneForEachField<LayerSpec>(*kind, *v1::Layer::descriptor())) {
      v1::Layer proto;
      LayerToProto(layer, &proto);
      const absl::StatusOr<LayerSpec> back = LayerFromProto(proto, "layer");
      ASSERT_TRUE(back.ok()) << back.status();
      EXPECT_EQ(*back, layer) << proto.DebugString();
    }
  }
  for (const NetworkKind* kind : AllNetworkKinds()) {
    for (const NetworkSpec& spec : OneForEachField<NetworkSpec>(*kind, *v1::Model::descriptor())) {
      const absl::StatusOr<NetworkSpec> back = ModelFromProto(ModelToProto(spec));
      ASSERT_TRUE(back.ok()) << back.status();
      EXPECT_EQ(*back, spec) << ModelToProto(spec).DebugString();
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
  const std::string attention("\x1a\x0f\x08\x02\x11\0\0\0\0\0\0\xe0\x3f\x40\x01\x50\x01", 17);
  const std::string linear("\x2a\x04\x08\x03\x10\x01", 6);
  const std::string inner = "\x0a\x11" + attention + "\x0a\x06" + linear;
  EXPECT_EQ(proto.SerializeAsString(), "\x42\x1b" + inner);
  // From before attention had `causal` and `rotary_scaling`.
  const std::string older("\x1a\x0b\x08\x02\x11\0\0\0\0\0\0\xe0\x3f", 13);
  v1::Layer stored;
  ASSERT_TRUE(stored.ParseFromString("\x42\x17\x0a\x0d" + older + "\x0a\x06" + linear));
  const absl::StatusOr<LayerSpec> read = LayerFromProto(stored, "layer");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, layer);
  const GptSpec gpt{2, 32, 4, 16, 256, 0.5};
  const std::string fields("\x08\x02\x10\x20\x18\x04\x20\x10\x28\x80\x02\x31\0\0\0\0\0\0\xe0\x3f",
                           20);
  const std::string epsilon("\x51\xf1\x68\xe3\x88\xb5\xf8\xe4\x3e");
  EXPECT_EQ(ModelToProto(gpt).SerializeAsString(), "\x0a\x1d" + fields + epsilon);
  // From before gpt had `epsilon`.
  v1::Model stored_gpt;
  ASSERT_TRUE(stored_gpt.ParseFromString("\x0a\x14" + fields));
  const absl::StatusOr<NetworkSpec> read_gpt = ModelFromProto(stored_gpt);
  ASSERT_TRUE(read_gpt.ok()) << read_gpt.status();
  EXPECT_EQ(*read_gpt, NetworkSpec(gpt));
  const SequenceSpec list{
      .width = 3, .context = 4, .vocabulary = 5, .layers = {LinearSpec{3, false}}};
  EXPECT_EQ(ModelToProto(list).SerializeAsString(),
            "\x12\x0e\x08\x03\x10\x04\x18\x05\x22\x06" + linear);
}

}  // namespace
}  // namespace stagecoach
