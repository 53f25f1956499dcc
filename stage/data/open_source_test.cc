// Data and network that do not go together are told with what each has and what to do.
#include "stage/data/open_source.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/data/text.h"
#include "plan/job/data_kinds.h"
#include "stage/files/any_file_testing.h"

namespace stagecoach {
namespace {

struct ReadInput {
  const char* name;
  ValueType type;
};
const ValueType kIds8{Element::kIds, Leading::kSamples, {8}};

std::string RefusalOfText(const std::vector<ReadInput>& inputs) {
  JobSpec spec;
  spec.data = TextData{.path = "/nowhere/text"};
  Network network;
  for (const ReadInput& input : inputs) {
    network.inputs.push_back({.name = input.name, .classes = 10});
    network.wires.push_back({.type = input.type});
  }
  const absl::Status status = OpenSource(spec, network, {}, AnyFile()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(OpenSource, ATextForANetworkOfSomethingElseIsToldWhatItReads) {
  const ValueType image = ActivationType({28, 28, 1});
  EXPECT_THAT(
      RefusalOfText({{"sounds", image}, {"targets", kIds8}}),
      testing::StartsWith(
          "data.text: gives tokens, targets and segments; the network reads \"sounds\": no data "
          "source gives all its inputs"));
  EXPECT_EQ(RefusalOfText({{"source", kIds8},
                           {"source_length", {Element::kIds, Leading::kSamples, {}}},
                           {"tokens", kIds8},
                           {"targets", kIds8}}),
            "data.text: gives tokens, targets and segments; the network reads \"source\": give it "
            "data.parallel_text");
  EXPECT_EQ(RefusalOfText({{"images", image}, {"labels", {Element::kIds, Leading::kSamples, {}}}}),
            "data.text: gives tokens, targets and segments; the network reads \"images\": give it "
            "data.cifar "
            "or data.idx or data.image_folder or data.webdataset");
  EXPECT_THAT(RefusalOfText({{"tokens", image}, {"targets", kIds8}}),
              testing::StartsWith("data.text: gives tokens as ids[context]; the network reads "
                                  "activation[n, 28, 28, 1]"));
  EXPECT_THAT(RefusalOfText({{"tokens", {Element::kIds, Leading::kSamples, {4, 2}}}}),
              testing::HasSubstr("the network reads ids[n, 4, 2]"));
  EXPECT_EQ(RefusalOfText({{"targets", kIds8}}),
            "data.text: gives tokens and targets; the network does not read tokens: give data "
            "that it reads");
  EXPECT_EQ(
      RefusalOfText({{"tokens", kIds8}, {"targets", {Element::kIds, Leading::kSamples, {7}}}}),
      "data.text: gives as many targets as tokens; the network reads tokens ids[n, 8] and "
      "targets ids[n, 7]");
}

TEST(DataKinds, AnUnknownOneIsAnsweredWithTheNearest) {
  EXPECT_EQ(DataKinds().Find("txet").status().message(),
            "data: there is no data source \"txet\"; did you mean \"text\"?");
}

}  // namespace
}  // namespace stagecoach
