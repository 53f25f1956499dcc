#include "stage/backends/kernel_table.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "operations/norms/rms_norm.h"

namespace stagecoach {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

CallTypes OneActivation() { return {{ActivationType({4})}, {ActivationType({4})}, {}}; }

absl::StatusOr<Kernel> Nothing(Backend&, const Call&, const CallTypes&, DType) {
  return Kernel([](const KernelContext&, const KernelArguments&) {});
}

absl::StatusOr<Kernel> Refuse(Backend&, const Call&, const CallTypes&, DType) {
  return absl::InvalidArgumentError("too wide");
}

TEST(KernelTable, AnOperationWithoutAKernelIsAnErrorThatNamesItAndTheBackEnd) {
  const auto backend = MakeReferenceBackend({});
  const absl::Status status =
      backend->Prepare({.operation = "levitate"}, OneActivation(), DType::kF32).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("the reference back end"), HasSubstr("\"levitate\"")));
}

TEST(KernelTable, HandsOnWhatAKernelCannotDo) {
  const auto backend = MakeReferenceBackend({});
  const KernelTable<Backend> table("made-up", {{{"gelu", Refuse}}});
  EXPECT_EQ(table.Prepare(*backend, {.operation = "gelu"}, OneActivation(), DType::kF32)
                .status()
                .message(),
            "too wide");
  EXPECT_TRUE(table.Has("gelu"));
  EXPECT_FALSE(table.Has("add"));
}

TEST(KernelTable, ListsItsOperationsByName) {
  const KernelTable<Backend> table("made-up", {{{"linear", Nothing}, {"gelu", Nothing}}, {}});
  EXPECT_THAT(table.operations(), ElementsAre("gelu", "linear"));
}

TEST(KernelTable, ListsTheOthersOfTheCatalogue) {
  const KernelTable<Backend> table("made-up", {{{"linear", Nothing}, {"gelu", Nothing}}, {}});
  const std::vector<std::string> without = table.WithoutKernels();
  EXPECT_EQ(without.size(), AllOperations().size() - 2);
  EXPECT_THAT(without, testing::Contains("rms_norm"));
  EXPECT_THAT(without, testing::Not(testing::Contains("gelu")));
  EXPECT_TRUE(table.Check({.operation = "gelu"}).ok());
  EXPECT_EQ(table.Check({.operation = "rms_norm"}).code(), absl::StatusCode::kUnimplemented);
}

// What both of its kernels were given, in the order in which they ran.
std::vector<std::string>* RunParts() {
  static std::vector<std::string> ran;
  return &ran;
}

absl::StatusOr<Kernel> NotePart(Backend&, const Call& call, const CallTypes& types, DType) {
  const std::string text = absl::StrCat(call.operation, " ", FormatAttributes(call.attributes),
                                        " of ", types.inputs.size(), " gives ",
                                        types.outputs.size(), " adds ", types.adds.size());
  return Kernel([text](const KernelContext&, const KernelArguments& a) {
    std::string given;
    for (size_t i = 0; i < a.inputs.size(); ++i) {
      absl::StrAppend(&given, " ", a.inputs[i].shape().elements());
    }
    RunParts()->push_back(absl::StrCat(text, ":", given, ", ", a.outputs.size(), a.adds.size()));
  });
}

TEST(KernelTable, AJointOperationWithoutAKernelOfItsOwnIsItsPartsOneAfterTheOther) {
  const auto backend = MakeReferenceBackend({});
  const KernelTable<Backend> table(
      "made-up", {{{"rms_norm_input_gradient", NotePart}, {"rms_norm_weight_gradient", NotePart}}});
  EXPECT_TRUE(table.Has("rms_norm_gradient"));
  EXPECT_THAT(table.operations(), ElementsAre("rms_norm_gradient", "rms_norm_input_gradient",
                                              "rms_norm_weight_gradient"));
  const CallTypes types = {
      std::vector<ValueType>(5, ActivationType({4})), {ActivationType({4})}, {ActivationType({4})}};
  const Call call = {.operation = "rms_norm_gradient",
                     .attributes = ToAttributes(RmsNormGradientAttributes{.residual = true})};
  const auto kernel = table.Prepare(*backend, call, types, DType::kF32);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  Tensors inputs, outputs(1), adds(1);
  for (const int64_t elements : {1, 2, 3, 4, 5}) {
    inputs.push_back(
        *MakeTensor(backend->allocator(), MemoryKind::kActivations, DType::kF32, {elements}));
  }
  RunParts()->clear();
  (*kernel)({ForwardContext(), 0}, {PlacesOf(inputs), PlacesOf(outputs), PlacesOf(adds)});
  EXPECT_THAT(
      *RunParts(),
      ElementsAre("rms_norm_input_gradient residual=true of 5 gives 1 adds 0: 1 2 3 4 5, 10",
                  "rms_norm_weight_gradient  of 3 gives 0 adds 1: 1 2 4, 01"));
}

TEST(KernelTable, AJointOperationNeedsBothParts) {
  const auto backend = MakeReferenceBackend({});
  const KernelTable<Backend> table("made-up", {{{"rms_norm_input_gradient", Nothing}}});
  EXPECT_FALSE(table.Has("rms_norm_gradient"));
  EXPECT_THAT(
      std::string(
          table.Prepare(*backend, {.operation = "rms_norm_gradient"}, OneActivation(), DType::kF32)
              .status()
              .message()),
      HasSubstr("\"rms_norm_gradient\""));
}

TEST(KernelTableDeathTest, RefusesTwoKernelsForOneOperationAndAnUnknownOperation) {
  using Table = KernelTable<Backend>;
  EXPECT_DEATH(Table("made-up", {{{"gelu", Nothing}}, {{"gelu", Nothing}}}),
               "made-up has two kernels for gelu");
  EXPECT_DEATH(Table("made-up", {{{"levitate", Nothing}}}), "levitate");
}

}  // namespace
}  // namespace stagecoach
