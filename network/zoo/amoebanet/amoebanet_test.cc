// What weights of an AmoebaNet hang on: layers, names, shapes, and the numbers of parameters that
// were published.
#include "network/zoo/amoebanet/amoebanet.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/golden_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/names/network_text.h"
#include "network/network_kinds.h"
#include "network/zoo/zoo_testing.h"
#include "operations/pointwise/drop_path.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;

AmoebanetDSpec SmallAmoebanet() {
  AmoebanetDSpec spec;
  spec.image = {8, 12, 3};
  spec.classes = 5;
  spec.layers = 3;
  spec.filters = 4;
  spec.stem = AmoebanetStem::kSmall;
  return spec;
}

template <typename Spec>
Spec OnImagenet(int64_t layers, int64_t filters, int64_t side) {
  Spec spec;
  spec.image = {side, side, 3};
  spec.classes = 1000;
  spec.layers = layers;
  spec.filters = filters;
  return spec;
}

int64_t ParametersOfTorchgpipes(int64_t layers, int64_t filters) {
  auto spec = OnImagenet<AmoebanetDSpec>(layers, filters, 224);
  spec.variant = AmoebanetVariant::kTorchgpipe;
  return ParametersOf(ExpandedOf(spec));
}

TEST(Amoebanet, TextStaysAsItIs) {
  ExpectGolden("network_text_amoebanet.txt", CanonicalNetworkText(ExpandedOf(SmallAmoebanet())));
}

TEST(Amoebanet, IsCutBetweenItsCellsWhichHandTwoTensorsOn) {
  const Network network = ExpandedOf(SmallAmoebanet());
  EXPECT_THAT(LabelsOf(network), ElementsAre("stem", "normal_cell", "reduction_cell", "normal_cell",
                                             "reduction_cell", "normal_cell", "head"));
  // The stem's 4 channels alone, as both inputs of the first cell; then the outputs of two cells,
  // of 16 and 24 channels on images of 8x12, 4x6 and 2x3; the last cell's and the logits.
  const int64_t large = 8 * 12, middle = 4 * 6, small = 2 * 3;
  EXPECT_THAT(
      CutBytes(network),
      ElementsAre(4 * 4 * large, 4 * (4 + 16) * large, 4 * (16 * large + 24 * middle),
                  4 * (24 + 32) * middle, 4 * (32 * middle + 48 * small), 4 * 64 * small, 4 * 5));
}

AmoebanetDSpec WithAuxiliary() {
  AmoebanetDSpec spec = SmallAmoebanet();
  spec.image = {24, 16, 3};
  spec.auxiliary_weight = 0.4;
  spec.auxiliary_scale = 0.04;
  return spec;
}

TEST(Amoebanet, TextStaysAsItIsWithAnAuxiliaryHead) {
  ExpectGolden("network_text_amoebanet_auxiliary.txt",
               CanonicalNetworkText(ExpandedOf(WithAuxiliary())));
}

// What is trained with a head can go on without it: all other parameters have the same names and
// beginnings.
TEST(Amoebanet, AnAuxiliaryHeadBelongsToTheCellInFrontOfTheSecondReduction) {
  const AmoebanetDSpec spec = WithAuxiliary();
  AmoebanetDSpec plain = spec;
  plain.auxiliary_weight = 0;
  plain.auxiliary_scale = 1;
  const Network with = ExpandedOf(spec), without = ExpandedOf(plain);
  ASSERT_EQ(with.layers.size(), without.layers.size());
  for (size_t i = 0; i < with.layers.size(); ++i) {
    std::vector<ParameterSpec> others = with.layers[i].parameters;
    std::erase_if(others, [](const ParameterSpec& parameter) {
      return parameter.name.starts_with("model/0003/auxiliary.");
    });
    EXPECT_EQ(others, without.layers[i].parameters) << "layer " << i;
  }
  EXPECT_THAT(LabelsOf(with),
              ElementsAre("stem", "normal_cell", "reduction_cell", "normal_cell(auxiliary_head)",
                          "reduction_cell", "normal_cell", "head"));
  // Its logits, five numbers, are in every cut from there on, and with the others in what the loss
  // reads.
  std::vector<int64_t> more = CutBytes(with);
  const std::vector<int64_t> before = CutBytes(without);
  for (size_t i = 0; i < more.size(); ++i) more[i] -= before[i];
  EXPECT_THAT(more, ElementsAre(0, 0, 0, 20, 20, 20, 20));
  EXPECT_EQ(with.objective.auxiliary_weight, 0.4);
  EXPECT_EQ(with.wire(with.objective.auxiliary).maker, 3);
  EXPECT_FALSE(without.objective.auxiliary.valid());
}

// An image that is smaller than the window of its pool is one window, and a larger one is convolved
// as a whole.
TEST(Amoebanet, AnAuxiliaryHeadHasTheParametersOfTheReferences) {
  const auto more = [](auto spec, double scale) {
    const int64_t plain = ParametersOf(ExpandedOf(spec));
    spec.auxiliary_weight = 0.4;
    spec.auxiliary_scale = scale;
    return ParametersOf(ExpandedOf(spec)) - plain;
  };
  const auto head = [](int64_t in, int64_t first, int64_t area, int64_t second, int64_t classes) {
    return in * first + 2 * first + first * area * second + 2 * second + (second + 1) * classes;
  };
  auto d = OnImagenet<AmoebanetDSpec>(18, 208, 225);
  d.classes = 1001;
  EXPECT_EQ(more(d, 0.4), head(4 * 416, 51, 4 * 4, 307, 1001));
  EXPECT_EQ(more(d, 1), head(4 * 416, 128, 4 * 4, 768, 1001));
  d.auxiliary_weight = 0.4;
  d.auxiliary_scale = 0.4;
  EXPECT_EQ(ParametersOf(ExpandedOf(d)), 81'785'166);
  EXPECT_EQ(more(SmallAmoebanet(), 1), head(4 * 8, 128, 1, 768, 5)) << "of 4x6";
}

// GPipe's table 1 in the form that torchgpipe measured: its memory of parameters is 12 bytes for
// each of these.
TEST(Amoebanet, HasTheParametersOfTorchgpipesNetworks) {
  EXPECT_EQ(ParametersOfTorchgpipes(18, 208), 81'505'540);
  EXPECT_EQ(ParametersOfTorchgpipes(18, 416), 319'024'120);
  EXPECT_EQ(ParametersOfTorchgpipes(18, 544), 542'734'840);
  EXPECT_EQ(ParametersOfTorchgpipes(36, 544), 1'055'832'376);
  EXPECT_EQ(ParametersOfTorchgpipes(72, 512), 1'844'858'344);
  EXPECT_EQ(ParametersOfTorchgpipes(18, 256), 122'470'120);
  EXPECT_EQ(ParametersOfTorchgpipes(18, 128), 31'694'440);
}

TEST(Amoebanet, HasTheParametersOfTorchgpipesLayers) {
  auto spec = OnImagenet<AmoebanetDSpec>(18, 256, 224);
  spec.variant = AmoebanetVariant::kTorchgpipe;
  std::vector<int64_t> parameters;
  for (const NetworkLayer& layer : ExpandedOf(spec).layers) {
    parameters.push_back(OwnElements(layer));
  }
  EXPECT_THAT(parameters,
              ElementsAre(1'856, 74'304, 343'168, 676'096, 839'936, 905'472, 905'472, 905'472,
                          905'472, 1'956'096, 2'826'752, 3'351'040, 3'613'184, 3'613'184, 3'613'184,
                          3'613'184, 7'811'584, 11'289'600, 13'386'752, 14'435'328, 14'435'328,
                          14'435'328, 14'435'328, 4'097'000));
}

// Published: 557 million for B, GPipe's best on ImageNet; for D in millions 81.1, 317.5, 540.2,
// 1053.3 and 1842.6. The reference's labels are those of ImageNet and one for none of them.
TEST(Amoebanet, HasTheParametersOfTheReferencesNetworks) {
  const auto parameters = [](auto spec) {
    spec.classes = 1001;
    return ParametersOf(ExpandedOf(spec));
  };
  const auto d = [&parameters](int64_t layers, int64_t filters) {
    return parameters(OnImagenet<AmoebanetDSpec>(layers, filters, 225));
  };
  EXPECT_EQ(d(18, 208), 81'140'766);
  EXPECT_EQ(d(18, 416), 317'548'353);
  EXPECT_EQ(d(18, 544), 540'204'945);
  EXPECT_EQ(d(36, 544), 1'053'302'481);
  EXPECT_EQ(d(72, 512), 1'842'618'441);
  EXPECT_EQ(parameters(OnImagenet<AmoebanetBSpec>(18, 512, 481)), 557'286'057);
}

// As the reference does: cells are counted with the reductions, those of the stem too, the last one
// has the whole rate, and identities are never left out. It is how a network is trained: weights do
// not hang on it.
TEST(Amoebanet, LeavesPiecesOutTheMoreTheDeeperTheCell) {
  auto spec = OnImagenet<AmoebanetDSpec>(3, 16, 65);
  spec.drop_path = 0.35;
  const Network network = ExpandedOf(spec);
  std::vector<std::string> found;
  for (const NetworkLayer& layer : network.layers) {
    std::string rates;
    int pieces = 0;
    for (const Call& call : layer.graph->calls) {
      if (call.operation != "drop_path") continue;
      DropPathAttributes attributes = *FromAttributes<DropPathAttributes>(call.attributes);
      EXPECT_EQ(attributes.draw, pieces++) << "a stream of its own";
      rates = absl::StrFormat("%s %d x %.2f", layer.label, pieces, attributes.rate);
    }
    if (pieces > 0) found.push_back(rates);
  }
  EXPECT_THAT(found,
              ElementsAre("reduction_cell 8 x 0.05", "reduction_cell 8 x 0.10",
                          "normal_cell 8 x 0.15", "reduction_cell 8 x 0.20", "normal_cell 8 x 0.25",
                          "reduction_cell 8 x 0.30", "normal_cell 8 x 0.35"));
  spec.drop_path = 0;
  EXPECT_EQ(CanonicalNetworkText(ExpandedOf(spec)), CanonicalNetworkText(network));
}

TEST(Amoebanet, RefusesWhatItsCellsCannotHalve) {
  const auto refusal = [](void (*spoil)(AmoebanetDSpec&)) {
    AmoebanetDSpec spec = SmallAmoebanet();
    spoil(spec);
    return std::string(ExpandNetwork(spec).status().message());
  };
  EXPECT_EQ(refusal([](AmoebanetDSpec& s) { s.layers = 4; }),
            "model.amoebanet_d.layers: 4; must be a multiple of 3, as a third of the cells is in "
            "each section");
  EXPECT_EQ(refusal([](AmoebanetDSpec& s) { s.filters = 6; }),
            "model.amoebanet_d.filters: 6; must be a multiple of 4 with this stem");
  EXPECT_EQ(refusal([](AmoebanetDSpec& s) {
              s.stem = AmoebanetStem::kImagenet;
              s.filters = 24;
            }),
            "model.amoebanet_d.filters: 24; must be a multiple of 16 with this stem");
  EXPECT_EQ(refusal([](AmoebanetDSpec& s) {
              s.image = {28, 30, 1};
            }),
            "model.amoebanet_d.image: 28x30; a reduction cell cannot halve the 14x15 that is left "
            "of it; give a height and a width that are multiples of 4");
  EXPECT_EQ(refusal([](AmoebanetDSpec& s) {
              s.stem = AmoebanetStem::kImagenet;
              s.filters = 16;
              s.image = {224, 224, 3};
            }),
            "model.amoebanet_d.image: 224x224; a reduction cell cannot halve the 111x111 that is "
            "left of it; give a height and a width that are 1 or 2 more than multiples of 32, as "
            "225");
}

TEST(Amoebanet, RefusesAnAuxiliaryHeadOfNoWeightOrSize) {
  const auto refusal = [](double weight, double scale) {
    AmoebanetDSpec spec = SmallAmoebanet();
    spec.auxiliary_weight = weight;
    spec.auxiliary_scale = scale;
    return std::string(ExpandNetwork(spec).status().message());
  };
  EXPECT_EQ(refusal(0.4, 0.4), "");
  EXPECT_EQ(refusal(-0.4, 1),
            "model.amoebanet_d.auxiliary_weight: -0.4; must be 0 or a number in [1e-06, 1000]");
  EXPECT_EQ(refusal(0.4, 0),
            "model.amoebanet_d.auxiliary_scale: 0; must be a number in [0.01, 16]");
  EXPECT_EQ(refusal(0.4, 17),
            "model.amoebanet_d.auxiliary_scale: 17; must be a number in [0.01, 16]");
  EXPECT_EQ(refusal(0, 0.4),
            "model.amoebanet_d.auxiliary_scale: 0.4; there is no auxiliary head to scale: give "
            "auxiliary_weight, as 0.4, or leave it out");
}

}  // namespace
}  // namespace stagecoach
