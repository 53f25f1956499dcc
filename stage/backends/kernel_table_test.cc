#include "stage/backends/kernel_table.h"

#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

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

TEST(KernelTableDeathTest, RefusesTwoKernelsForOneOperationAndAnUnknownOperation) {
  using Table = KernelTable<Backend>;
  EXPECT_DEATH(Table("made-up", {{{"gelu", Nothing}}, {{"gelu", Nothing}}}),
               "made-up has two kernels for gelu");
  EXPECT_DEATH(Table("made-up", {{{"levitate", Nothing}}}), "levitate");
}

}  // namespace
}  // namespace stagecoach
