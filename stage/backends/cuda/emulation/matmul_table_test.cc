#include "stage/backends/cuda/matmul/matmul_table.h"

#include <optional>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach::cuda {
namespace {

using testing::HasSubstr;

const MatmulTableHeader& H100() {
  static const auto* const header = new MatmulTableHeader{.card = "NVIDIA H100 80GB HBM3",
                                                          .compute_capability = 90,
                                                          .library_version = 130100,
                                                          .workspace_bytes = 33554432};
  return *header;
}

MatmulTable TableOfTwo() {
  MatmulTable table(H100());
  EXPECT_TRUE(table.Add({.kind = MatmulKind::kBackwardWeight,
                         .rows = 8192,
                         .in = 1600,
                         .out = 4800,
                         .type = MatmulType::kBfloat16,
                         .out_stride = 4808},
                        {.algorithm = {.id = 66,
                                       .tile = 20,
                                       .stages = 14,
                                       .split_k = 4,
                                       .reduction_scheme = kReductionComputeType,
                                       .swizzle = 1,
                                       .custom_option = 7,
                                       .inner_shape = 2,
                                       .cluster = 3}}));
  EXPECT_TRUE(table.Add({.rows = 8192,
                         .in = 6400,
                         .out = 1600,
                         .type = MatmulType::kBfloat16,
                         .epilogue = MatmulEpilogue::kBias,
                         .residual = true},
                        {.fused = MatmulEpilogue::kBias, .algorithm = {.id = 21, .tile = 5}}));
  return table;
}

constexpr char kTextOfTwo[] =
    R"({"matmul_table": 1, "card": "NVIDIA H100 80GB HBM3", "compute_capability": 90, "cublaslt": 130100, "workspace_bytes": 33554432, "products": [
{"kind": "forward", "rows": 8192, "in": 6400, "out": 1600, "type": "bfloat16", "epilogue": "bias", "residual": true, "out_stride": 0, "fused": "bias", "algorithm": 21, "tile": 5, "stages": 0, "split_k": 1, "reduction_scheme": 0, "swizzle": 0, "custom_option": 0, "inner_shape": 0, "cluster": 0},
{"kind": "backward_weight", "rows": 8192, "in": 1600, "out": 4800, "type": "bfloat16", "epilogue": "none", "residual": false, "out_stride": 4808, "fused": "none", "algorithm": 66, "tile": 20, "stages": 14, "split_k": 4, "reduction_scheme": 2, "swizzle": 1, "custom_option": 7, "inner_shape": 2, "cluster": 3}
]}
)";

// Files of this text are in operators' hands, and its digest is in the fingerprints of their
// checkpoints.
TEST(MatmulTable, ItsTextAndDigestStayAsTheyAre) {
  EXPECT_EQ(TableOfTwo().Format(), kTextOfTwo);
  EXPECT_EQ(TableOfTwo().Digest(),
            "21c67c9336996937e5c1c03194e576ef87080bca720f8ecedeb96b9bffeea394");
  EXPECT_EQ(MatmulTable(H100()).Format().substr(0, 20), R"({"matmul_table": 1, )");
}

TEST(MatmulTable, IsReadAsItWasWritten) {
  const auto read = MatmulTable::Parse(kTextOfTwo);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, TableOfTwo());
  const auto empty = MatmulTable::Parse(MatmulTable(H100()).Format());
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_EQ(*empty, MatmulTable(H100()));
}

TEST(MatmulTable, FindsTheChoiceOfAShapeAndOfNoOther) {
  const MatmulTable table = TableOfTwo();
  MatmulShape shape = {.kind = MatmulKind::kBackwardWeight,
                       .rows = 8192,
                       .in = 1600,
                       .out = 4800,
                       .type = MatmulType::kBfloat16,
                       .out_stride = 4808};
  ASSERT_NE(table.Find(shape), nullptr);
  EXPECT_EQ(table.Find(shape)->algorithm.id, 66);
  shape.rows = 8193;
  EXPECT_EQ(table.Find(shape), nullptr);
}

TEST(MatmulTable, KeepsTheFirstChoiceOfAShape) {
  MatmulTable table(H100());
  const MatmulShape shape = {.rows = 3, .in = 5, .out = 7};
  EXPECT_TRUE(table.Add(shape, {.algorithm = {.id = 1}}));
  EXPECT_FALSE(table.Add(shape, {.algorithm = {.id = 2}}));
  EXPECT_EQ(table.Find(shape)->algorithm.id, 1);
}

template <typename T>
T Any(std::mt19937_64& random) {
  return static_cast<T>(random());
}

MatmulShape AnyShape(std::mt19937_64& random) {
  using E = MatmulEpilogue;
  MatmulShape shape = {.kind = static_cast<MatmulKind>(random() % 3),
                       .rows = 1 + static_cast<int64_t>(random() % (int64_t{1} << 40)),
                       .in = 1 + static_cast<int64_t>(random() % 64),
                       .out = 1 + static_cast<int64_t>(random() % 64),
                       .type = static_cast<MatmulType>(random() % 3)};
  if (shape.kind == MatmulKind::kForward) {
    constexpr E kForwards[] = {E::kNone, E::kBias, E::kGelu, E::kBiasGelu};
    shape.epilogue = kForwards[random() % 4];
    shape.residual = !HasGelu(shape.epilogue) && random() % 2 == 0;
  } else if (shape.kind == MatmulKind::kBackwardInput && random() % 2 == 0) {
    shape.epilogue = E::kGeluGradient;
  }
  if (shape.epilogue == E::kNone && !shape.residual && random() % 2 == 0) {
    shape.out_stride = shape.out + static_cast<int64_t>(random() % 8);
  }
  return shape;
}

MatmulChoice AnyChoice(const MatmulShape& shape, std::mt19937_64& random) {
  const std::vector<MatmulEpilogue> fused = EpiloguesToTry(shape);
  MatmulAlgorithm a = {.id = Any<int32_t>(random),
                       .tile = Any<uint32_t>(random),
                       .stages = Any<uint32_t>(random),
                       .split_k = Any<int32_t>(random),
                       .reduction_scheme = Any<uint32_t>(random),
                       .swizzle = Any<uint32_t>(random),
                       .custom_option = Any<uint32_t>(random),
                       .inner_shape = Any<uint16_t>(random),
                       .cluster = Any<uint16_t>(random)};
  if (!HasFixedOrder(a)) a.reduction_scheme = kReductionComputeType;
  return {fused[random() % fused.size()], a};
}

TEST(MatmulTable, AnyTableIsReadAsItWasWrittenAndHasADigestOfItsOwn) {
  std::set<std::string> digests;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    MatmulTable table({.card = absl::StrCat("card \"", seed, "\" \\ \n"),
                       .compute_capability = 80,
                       .library_version = 1 + static_cast<int64_t>(random() % 1000000),
                       .workspace_bytes = static_cast<int64_t>(random() % 1000)});
    for (uint64_t i = random() % 20; i > 0; --i) {
      const MatmulShape shape = AnyShape(random);
      table.Add(shape, AnyChoice(shape, random));
    }
    const auto read = MatmulTable::Parse(table.Format());
    ASSERT_TRUE(read.ok()) << "seed " << seed << ": " << read.status();
    EXPECT_EQ(*read, table) << "seed " << seed;
    EXPECT_EQ(read->Format(), table.Format()) << "seed " << seed;
    EXPECT_TRUE(digests.insert(table.Digest()).second) << "seed " << seed;
  }
}

// Whoever sorts or indents a file by hand has the same table.
TEST(MatmulTable, TheLayoutOfAFileDoesNotChangeItsDigest) {
  const std::string indented = absl::StrReplaceAll(kTextOfTwo, {{", ", " ,\n   "}});
  const auto read = MatmulTable::Parse(indented);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->Digest(), TableOfTwo().Digest());
}

struct BadText {
  const char *from, *to, *error;
};

class MatmulTableRefusal : public testing::TestWithParam<BadText> {};

TEST_P(MatmulTableRefusal, NamesFieldValueAndRemedy) {
  const BadText& bad = GetParam();
  std::string text = kTextOfTwo;
  const size_t at = text.find(bad.from);
  ASSERT_NE(at, std::string::npos) << bad.from;
  text.replace(at, std::string(bad.from).size(), bad.to);
  const absl::Status status = MatmulTable::Parse(text).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(bad.error));
}

INSTANTIATE_TEST_SUITE_P(
    Texts, MatmulTableRefusal,
    testing::Values(
        BadText{"{\"matmul", "{{\"matmul", "the table: no JSON; make one on this card"},
        BadText{"]}\n", "]", "the table: no JSON"}, BadText{kTextOfTwo, "", "the table: no JSON"},
        BadText{kTextOfTwo, "[]", "a list; must be an object"},
        BadText{"\"matmul_table\": 1", "\"matmul_table\": 2", "matmul_table: 2; must be 1"},
        BadText{"\"card\": \"NVIDIA H100 80GB HBM3\", ", "", "card: missing; make one"},
        BadText{"\"NVIDIA H100 80GB HBM3\"", "3", "card: 3; must be a text"},
        BadText{"\"NVIDIA H100 80GB HBM3\"", "\"\"", "card: \"\"; must be a text"},
        BadText{"\"cublaslt\": 130100", "\"cublaslt\": \"13.1\"", "cublaslt: \"13.1\"; must be"},
        BadText{"\"cublaslt\"", "\"cublas\"", "cublaslt: missing"},
        BadText{"33554432", "-1", "workspace_bytes: -1; must be a whole number from 0"},
        BadText{"33554432", "18446744073709551615",
                "workspace_bytes: 18446744073709551615; must be"},
        BadText{
            "33554432,", "33554432, \"workspace_byte\": 1,",
            "\"workspace_byte\": no such field; leave it out; did you mean \"workspace_bytes\"?"},
        BadText{"33554432,", "33554432, \"card\": \"another\",",
                "\"card\": stands twice in one object; leave one of them"},
        BadText{"\"products\": [", "\"products\": 7, \"others\": [", "products: 7; must be a list"},
        BadText{"[\n{", "[7,\n{", "products[0]: 7; must be an object"},
        BadText{"\"forward\"", "\"sideways\"",
                "products[0].kind: \"sideways\"; must be one of forward, backward_input, "
                "backward_weight"},
        BadText{"\"rows\": 8192", "\"rows\": 0",
                "products[0].rows: 0; must be a whole number from 1 to 1099511627776"},
        BadText{"\"rows\": 8192", "\"rows\": 8192.5", "products[0].rows: 8192.5; must be"},
        BadText{"\"rows\": 8192", "\"rows\": 1e400", "the table: no JSON"},
        BadText{"\"type\": \"bfloat16\"", "\"type\": \"float16\"",
                "products[0].type: \"float16\"; must be one of float32, tensorfloat32, bfloat16"},
        BadText{"\"epilogue\": \"bias\"", "\"epilogue\": \"gelu_gradient\"",
                "products[0].epilogue: gelu_gradient; a product of kind forward has none of it"},
        BadText{"\"epilogue\": \"bias\"", "\"epilogue\": \"bias_gelu\"",
                "products[0].residual: true; only a forward product without a GELU has one"},
        BadText{"\"epilogue\": \"none\", \"residual\": false",
                "\"epilogue\": \"none\", \"residual\": true", "products[1].residual: true"},
        BadText{"\"out_stride\": 4808", "\"out_stride\": 4799",
                "products[1].out_stride: 4799; must be 0, or at least `out`"},
        BadText{"\"out_stride\": 0", "\"out_stride\": 1608", "products[0].out_stride: 1608"},
        BadText{"\"residual\": true", "\"residual\": 1",
                "products[0].residual: 1; must be true or false"},
        BadText{"\"fused\": \"bias\"", "\"fused\": \"gelu\"",
                "products[0].fused: gelu; must be one of bias, none"},
        BadText{"\"tile\": 5", "\"tile\": 4294967296",
                "products[0].tile: 4294967296; must be a whole number from 0 to 4294967295"},
        BadText{"\"cluster\": 3", "\"cluster\": 65536", "products[1].cluster: 65536; must be"},
        BadText{"\"algorithm\": 21", "\"algorithm\": [21]", "products[0].algorithm: a list; must"},
        BadText{"\"split_k\": 1", "\"split_k\": 2",
                "products[0].reduction_scheme: 0; with a split_k of 2 it must be 2"},
        BadText{"\"reduction_scheme\": 2", "\"reduction_scheme\": 1",
                "products[1].reduction_scheme: 1; with a split_k of 4 it must be 2"},
        BadText{"\"tile\": 5, ", "", "products[0].tile: missing; make one"},
        BadText{"\"tile\": 5", "\"tile\": 5, \"tile\": 6", "\"tile\": stands twice"},
        BadText{"\"tile\": 5", "\"tile\": 5, \"title\": 6",
                "products[0].\"title\": no such field; leave it out; did you mean \"tile\"?"}));

TEST(MatmulTable, AShapeThatIsThereTwiceIsRefused) {
  const std::string text = kTextOfTwo;
  const size_t begin = text.find("{\"kind\"");
  const std::string line = text.substr(begin, text.find('\n', begin) - begin);
  const absl::Status status = MatmulTable::Parse(std::string(text).insert(begin, line)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("products[1]: forward of 8192 x 6400 by 1600, bfloat16, bias and a "
                        "residual; it has a choice already: leave one of them"));
}

// Broken off anywhere, or with any byte changed, a text is a table or refused, and nothing else.
TEST(MatmulTable, DamagedTextsAreRefusedOrTables) {
  const std::string text = kTextOfTwo;
  for (size_t length = 0; length + 2 < text.size(); ++length) {
    EXPECT_FALSE(MatmulTable::Parse(text.substr(0, length)).ok()) << length;
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = text;
    damaged[random() % damaged.size()] = static_cast<char>(random());
    const auto read = MatmulTable::Parse(damaged);
    if (read.ok()) {
      EXPECT_EQ(*MatmulTable::Parse(read->Format()), *read);
    } else {
      EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument) << damaged;
    }
  }
  EXPECT_FALSE(MatmulTable::Parse(std::string(1 << 20, '[')).ok());
}

TEST(MatmulTable, OfAnotherCardOrLibraryDoesNotFitAndSaysOfWhichItIs) {
  const MatmulTable table = TableOfTwo();
  EXPECT_TRUE(table.CheckFits(H100()).ok());
  MatmulTableHeader card = H100(), capability = H100(), library = H100(), workspace = H100();
  card.card = "NVIDIA H200";
  capability.compute_capability = 100;
  library.library_version = 130200;
  workspace.workspace_bytes = 1;
  for (const auto& [here, text] :
       {std::pair(card, "here is NVIDIA H200 (compute capability 9.0)"),
        std::pair(capability, "(compute capability 10.0)"), std::pair(library, "cuBLASLt 130200"),
        std::pair(workspace, "a workspace of 1 bytes")}) {
    const absl::Status status = table.CheckFits(here);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("the table is of NVIDIA H100 80GB HBM3 (compute capability 9.0), "
                          "cuBLASLt 130100, a workspace of 33554432 bytes"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("gpu-operations --matmul-table-out=FILE"));
  }
}

}  // namespace
}  // namespace stagecoach::cuda
