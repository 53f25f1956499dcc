// Networks as messages: each comes back as it was, and what does not hold is refused with the layer
// and a remedy.
#include "services/common/convert/network/convert_network.h"

#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/limits.h"
#include "network/network_kinds.h"
#include "network/network_testing.h"
#include "network/objective_kind.h"
#include "network/objectives/cross_entropy.h"
#include "network/objectives/mean_squared_error.h"
#include "network/passes/freeze.h"
#include "network/passes/lora.h"
#include "network/zoo/every_network_testing.h"
#include "network/zoo/gpt.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Network Expanded(const NetworkSpec& spec, Precision precision = Precision::kFloat32) {
  absl::StatusOr<Network> network = ExpandNetwork(spec, precision);
  CHECK_OK(network.status());
  return *std::move(network);
}

// Without what is named by `chosen`.
template <typename Chosen>
Network Frozen(const NetworkSpec& spec, Chosen chosen) {
  Network network = Expanded(spec);
  std::vector<std::string> names;
  for (const NetworkLayer& layer : network.layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      if (chosen(parameter, static_cast<int>(names.size()))) names.push_back(parameter.name);
    }
  }
  absl::StatusOr<Network> frozen = Freeze(std::move(network), names, "freeze");
  CHECK_OK(frozen.status());
  return *std::move(frozen);
}

NetworkSpec Gpt(int64_t layers = 2) {
  return GptSpec{
      .layers = layers, .width = 8, .heads = 2, .context = 4, .vocabulary = 10, .dropout = 0.1};
}
NetworkSpec Images() {
  return ResnetSpec{.image = {8, 8, 3}, .classes = 4, .depth = 8, .width = 4};
}

void ExpectComesBack(const Network& network) {
  const v1::Network proto = ToProto(network);
  const absl::StatusOr<Network> back = NetworkFromProto(proto);
  ASSERT_TRUE(back.ok()) << back.status();
  ExpectSameNetwork(*back, network);
  EXPECT_EQ(ToProto(*back).SerializeAsString(), proto.SerializeAsString());
}

TEST(ConvertNetwork, EveryNetworkOfTheZooComesBackAsItWas) {
  for (const ZooEntry& entry : ZooEntries()) {
    SCOPED_TRACE(entry.name);
    ExpectComesBack(Expanded(entry.spec, Precision::kBfloat16));
    absl::StatusOr<Network> frozen = Freeze(Expanded(entry.spec), entry.frozen, "freeze");
    ASSERT_TRUE(frozen.ok()) << frozen.status();
    ExpectComesBack(*frozen);
    ExpectComesBack(FreezeAll(Expanded(entry.spec)).value());
  }
}

TEST(ConvertNetwork, EveryKindOfLayerComesBackAsItWas) {
  for (const ListedKinds& kinds : ListsOfEveryKind()) {
    SCOPED_TRACE(kinds.name);
    ExpectComesBack(Expanded(kinds.list));
    ExpectComesBack(Frozen(kinds.list, [](const auto&, int before) { return before < 3; }));
    ExpectComesBack(Frozen(kinds.list, [](const auto& p, int) { return p.index % 2 == 1; }));
  }
}

TEST(ConvertNetwork, AdaptersComeBackAsTheyWere) {
  const LoraSpec lora = {.rank = 2, .alpha = 3, .dropout = 0.5, .targets = {"value", "up"}};
  const Network network = AddAdapters(Expanded(Gpt()), lora, "lora").value();
  ExpectComesBack(network);
  const Network back = NetworkFromProto(ToProto(network)).value();
  EXPECT_EQ(AdaptersOf(back).size(), AdaptersOf(network).size());
  EXPECT_TRUE(HasBase(back));
}

TEST(ConvertNetwork, EveryObjectiveComesBackAsItWas) {
  NetworkSpec classes = Images();
  classes.objective = CrossEntropySpec{.label_smoothing = 0.1, .ignore_index = 3, .top = 2};
  ExpectComesBack(Expanded(classes));
  NetworkSpec numbers =
      SequenceSpec{.layers = {ConvolutionSpec{.out = 5, .kernel = {3}, .padding = {1}}, ReluSpec{},
                              ConvolutionSpec{.out = 3, .kernel = {3}, .padding = {1}}},
                   .image = {6, 7, 3},
                   .classes = 2};
  numbers.objective = MeanSquaredErrorSpec{};
  ExpectComesBack(Expanded(numbers));
  classes.objective = CrossEntropySpec{.class_weights = {1, 0, 0.1, 1e9}};
  for (const NetworkSpec& spec : {classes, numbers}) {
    const auto weighted = WithSampleWeights(Expanded(spec), "data.idx.weights");
    ASSERT_TRUE(weighted.ok()) << weighted.status();
    ExpectComesBack(*weighted);
  }
  ExpectComesBack(Expanded(classes));
}

TEST(ConvertNetwork, EqualLayersAreOneForm) {
  const v1::Network proto = ToProto(Expanded(Gpt(1000)));
  EXPECT_EQ(proto.layers_size(), 2003);
  EXPECT_EQ(proto.forms_size(), 5);  // embedding, two residuals, norm, head
  const Network back = NetworkFromProto(proto).value();
  EXPECT_EQ(back.layers[1].lists, back.layers[3].lists);
}

// The bound of a message is kControlMessageBytes, 32 MiB.
TEST(ConvertNetwork, LargeNetworksAreSmallMessages) {
  const Network gpt3 = Expanded(
      GptSpec{.layers = 96, .width = 12288, .heads = 96, .context = 2048, .vocabulary = 50257});
  const size_t bytes = ToProto(gpt3).ByteSizeLong();
  const size_t most_layers = ToProto(Expanded(Gpt(4998))).ByteSizeLong();
  RecordProperty("gpt3_bytes", std::to_string(bytes));
  RecordProperty("most_layers_bytes", std::to_string(most_layers));
  EXPECT_LT(bytes, 8 << 10);
  EXPECT_LT(most_layers, 128 << 10);
}

class RefusedNetwork : public testing::Test {
 protected:
  std::string Refusal() const {
    const absl::Status status = NetworkFromProto(proto_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                AllOf(::testing::StartsWith("network: "), HasSubstr("upgrade the older")));
    return std::string(status.message());
  }
  v1::Network::Operation* OperationCalled(const std::string& name) {
    for (v1::Network::Operation& operation : *proto_.mutable_operations()) {
      if (operation.name() == name) return &operation;
    }
    ADD_FAILURE() << "no " << name;
    return nullptr;
  }
  // The layer norm in front of the head.
  v1::Network::Call* CallOfNorm() {
    for (v1::Network::Entry& entry : *proto_.mutable_forms(3)->mutable_entries()) {
      if (entry.has_call()) return entry.mutable_call();
    }
    return nullptr;
  }

  v1::Network proto_ = ToProto(Expanded(Gpt()));
};

TEST_F(RefusedNetwork, IsOneWithAnOperationThatIsNotKnownHere) {
  OperationCalled("attention")->set_name("attentio2");
  EXPECT_THAT(Refusal(),
              HasSubstr("layer 1 (residual(layer_norm, attention, dropout)): there is no operation "
                        "\"attentio2\"; did you mean \"attention\"?"));
}

TEST_F(RefusedNetwork, IsOneWithANewerOperation) {
  OperationCalled("attention")->set_version(2);
  EXPECT_THAT(Refusal(),
              HasSubstr("layer 1 (residual(layer_norm, attention, dropout)): attention: version "
                        "2; this program has version 1"));
}

TEST_F(RefusedNetwork, IsOneWithANewerLoss) {
  OperationCalled("cross_entropy")->set_name("cross_entropy_2");
  EXPECT_THAT(Refusal(), HasSubstr("objective: there is no operation \"cross_entropy_2\""));
}

TEST_F(RefusedNetwork, IsOneWithAnAttributeThatIsNotKnownHere) {
  v1::Network::Attribute* const attribute = CallOfNorm()->add_attributes();
  attribute->set_name("window");
  attribute->set_count(3);
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("layer 5 ("), HasSubstr("layer_norm: attribute window")));
}

TEST_F(RefusedNetwork, IsOneWithAFieldThatIsNotKnownHere) {
  v1::Network::Parameter* const parameter =
      proto_.mutable_forms(0)->mutable_entries(1)->mutable_parameter();
  parameter->GetReflection()->MutableUnknownFields(parameter)->AddVarint(99, 1);
  EXPECT_THAT(Refusal(),
              HasSubstr("network.forms[0].entries[1].parameter: has field 99, which this "
                        "version does not know"));
}

TEST_F(RefusedNetwork, IsOneWhoseTypesAreNotThoseOfItsOperations) {
  CallOfNorm()->mutable_outputs(0)->set_extents(1, 7);
  EXPECT_THAT(Refusal(),
              HasSubstr("layer_norm: gives activation[n, 4, 7] here and activation[n, 4, "
                        "8] by its rule"));
}

TEST_F(RefusedNetwork, IsOneThatReadsWhatIsNotThere) {
  proto_.mutable_layers(2)->set_inputs(0, 77);
  EXPECT_THAT(Refusal(),
              HasSubstr("layer 2 (residual(layer_norm, mlp, dropout)): reads wire 77 of 4"));
  proto_ = ToProto(Expanded(Gpt()));
  CallOfNorm()->set_inputs(1, 4);
  EXPECT_THAT(Refusal(), HasSubstr("layer_norm: reads value 4 of 3"));
  proto_ = ToProto(Expanded(Gpt()));
  proto_.mutable_layers(3)->set_form(-1);
  EXPECT_THAT(Refusal(), HasSubstr("layer 3: form -1 of 5"));
}

TEST_F(RefusedNetwork, IsOneThatLooksUpIdsBeyondItsTable) {
  proto_.mutable_inputs(0)->set_classes(11);
  EXPECT_THAT(Refusal(),
              HasSubstr("layer 0 (embedding): embedding: reads ids below 11; must be ids "
                        "of the data source below 10"));
}

TEST_F(RefusedNetwork, IsOneThatLeftSomethingOut) {
  proto_.mutable_objective()->mutable_attributes()->DeleteSubrange(0, 1);
  EXPECT_THAT(Refusal(), HasSubstr("its digest is "));
}

TEST_F(RefusedNetwork, IsOneWhoseTiesDoNotHold) {
  const auto tie = [this](const std::string& parameter, const std::string& owner) {
    v1::Network::Tie* const made = proto_.add_tied();
    made->set_parameter(parameter);
    made->set_owner(owner);
    return Refusal();
  };
  const std::string token = "model/0000/token.weight", head = "model/0006/weight";
  EXPECT_THAT(tie(head, "model/0000/tokens.weight"),
              HasSubstr("tied: \"model/0000/tokens.weight\"; there is no such parameter; did you "
                        "mean \"model/0000/token.weight\"?"));
  proto_ = ToProto(Expanded(Gpt()));
  EXPECT_THAT(tie(token, head), HasSubstr("a parameter of a layer in front of its own"));
  proto_ = ToProto(Expanded(Gpt()));
  EXPECT_THAT(tie(head, token), HasSubstr("its digest is ")) << "another network";
  for (int i = 1; i < kMaxTiedUses; ++i) *proto_.add_tied() = proto_.tied(0);
  EXPECT_THAT(Refusal(), HasSubstr("its digest is ")) << "one tie, said 64 times";
  EXPECT_THAT(tie(head, token), HasSubstr("65 tied parameters; must be at most 64"));
}

TEST_F(RefusedNetwork, IsOneWithWeightsThatDoNotHold) {
  NetworkSpec classes = Images();
  classes.objective = CrossEntropySpec{.class_weights = {1, 0, 0.1, 2}};
  const v1::Network whole = ToProto(*WithSampleWeights(Expanded(classes), "weights"));
  const auto refused = [&](auto change) {
    proto_ = whole;
    change(*proto_.mutable_objective());
    return Refusal();
  };
  using Proto = v1::Network::Objective;
  EXPECT_THAT(refused([](Proto& proto) { proto.set_weights(3); }),
              HasSubstr("objective: weights are wire 3; must be an input"));
  EXPECT_THAT(refused([](Proto& proto) { proto.set_weights(0); }),
              HasSubstr("objective: weights are \"images\", activation[n, 8, 8, 3]; must be "
                        "float32[n]"));
  EXPECT_THAT(refused([](Proto& proto) { proto.mutable_class_weights()->RemoveLast(); }),
              HasSubstr("objective.class_weights: 3 numbers; must be one for each of the 4"));
  EXPECT_THAT(refused([](Proto& proto) { proto.set_class_weights(1, -2); }),
              HasSubstr("objective.class_weights[1]: -2; must be 0 or a number in"));
  EXPECT_THAT(refused([](Proto& proto) { proto.set_class_weights(3, NAN); }),
              HasSubstr("objective.class_weights[3]: nan"));
  EXPECT_THAT(refused([](Proto& proto) {
                for (float& weight : *proto.mutable_class_weights()) weight = 0;
              }),
              HasSubstr("objective.class_weights: all 0"));
  EXPECT_THAT(refused([](Proto& proto) {
                proto.clear_weights();
                proto.clear_class_weights();
              }),
              HasSubstr("must be weighted if and only if there are weights"));
  EXPECT_THAT(refused([](Proto& proto) { proto.set_class_weights(2, 0.25f); }),
              HasSubstr("its digest is "));
}

TEST_F(RefusedNetwork, IsOneWithAnAuxiliaryOutputThatDoesNotHold) {
  const v1::Network whole = ToProto(Expanded(AmoebanetWithAuxiliary()));
  const auto refused = [&](auto change) {
    proto_ = whole;
    change(*proto_.mutable_objective());
    return Refusal();
  };
  using Proto = v1::Network::Objective;
  EXPECT_THAT(refused([](Proto& proto) { proto.set_auxiliary(0); }),
              HasSubstr("objective: its auxiliary output is wire 0; must be what a layer gives"));
  EXPECT_THAT(refused([](Proto& proto) { proto.set_auxiliary(4321); }),
              HasSubstr("objective: reads wire 4321"));
  EXPECT_THAT(refused([](Proto& proto) { proto.clear_auxiliary(); }),
              HasSubstr("which nothing reads"));
  EXPECT_THAT(refused([](Proto& proto) { proto.set_auxiliary(proto.output()); }),
              HasSubstr("which nothing reads"));
  EXPECT_THAT(refused([](Proto& proto) { proto.set_auxiliary_weight(NAN); }),
              HasSubstr("objective: the auxiliary output weighs nan"));
  EXPECT_THAT(refused([](Proto& proto) { proto.clear_auxiliary_weight(); }),
              HasSubstr("objective: the auxiliary output weighs 0"));
  EXPECT_THAT(refused([](Proto& proto) { proto.set_auxiliary_weight(0.5); }),
              HasSubstr("its digest is "));
}

TEST_F(RefusedNetwork, IsOneWithAnOperationOfTheBackwardInItsForward) {
  v1::Network::Form* const form = proto_.mutable_forms(1);
  OperationCalled("layer_norm")->set_name("layer_norm_input_gradient");
  EXPECT_THAT(Refusal(), HasSubstr("layer_norm_input_gradient"));
  form->clear_entries();
  EXPECT_THAT(Refusal(), HasSubstr("reads value"));
}

}  // namespace
}  // namespace stagecoach
