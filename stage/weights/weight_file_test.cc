#include "stage/weights/weight_file.h"

#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "checkpoint/content_digest.h"
#include "checkpoint/testing/fault_file_system.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/zoo/gpt.h"
#include "network/zoo/llama.h"
#include "network/zoo/resnet.h"
#include "network/zoo/vit.h"
#include "network/zoo/zoo_testing.h"

namespace stagecoach {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Not;
using testing::Pointwise;

constexpr char kFile[] = "/weights/resnet.safetensors";

Network SmallResnet(int64_t classes = 5) {
  return ExpandedOf(ResnetSpec{.image = {32, 32, 3},
                               .classes = classes,
                               .depth = 18,
                               .width = 2,
                               .form = ResnetForm::kImagenet});
}

// [1 + patches, 4] positions.
Network TransformerOn(int64_t height, int64_t width) {
  return ExpandedOf(VitSpec{
      .image = {height, width, 3}, .classes = 5, .patch = 2, .layers = 1, .width = 4, .heads = 2});
}

Network SmallTransformer() { return TransformerOn(4, 6); }

Network SmallGpt(bool tied = false) {
  return ExpandedOf(GptSpec{
      .layers = 2, .width = 4, .heads = 2, .context = 6, .vocabulary = 7, .tied_embeddings = tied});
}

Network SmallLlama(bool tied = false, int64_t layers = 2) {
  return ExpandedOf(LlamaSpec{.layers = layers,
                              .width = 8,
                              .heads = 4,
                              .key_heads = 2,
                              .hidden = 6,
                              .context = 6,
                              .vocabulary = 7,
                              .tied_embeddings = tied});
}

struct FileTensor {
  Shape shape;
  DType dtype = DType::kF32;
  std::vector<float> values;  // as F32, or 16-bit patterns
};
using FileTensors = std::map<std::string, FileTensor>;

// Every array has numbers of its own, in the other program's layout.
FileTensors TensorsOf(const Network& network, const std::string& table) {
  FileTensors tensors;
  float next = 1;
  const WeightTable names = *WeightNames(network, table);
  for (const WeightName& name : names.names) {
    for (const WeightPart& part : name.parts) {
      FileTensor& tensor = tensors[part.tensor];
      tensor.shape = part.shape;
      for (int64_t i = 0; i < tensor.shape.elements(); ++i) tensor.values.push_back(next++);
    }
  }
  return tensors;
}

class WeightFileTest : public testing::Test {
 protected:
  WeightFileTest() { CHECK_OK(files_.MakeFolders("/weights")); }

  void Write(const FileTensors& tensors, const std::string& path = kFile) {
    CHECK_OK(files_.RemoveAll(path));
    std::vector<TensorSource> sources;
    std::vector<std::vector<std::byte>> bytes;
    for (const auto& [name, tensor] : tensors) {
      bytes.push_back(BytesOf(tensor));
      sources.push_back({name, tensor.dtype, tensor.shape, [&bytes, i = bytes.size() - 1] {
                           return absl::StatusOr<std::span<const std::byte>>(bytes[i]);
                         }});
    }
    CHECK_OK(WriteSafetensors(files_, path, sources, metadata_).status());
  }

  absl::StatusOr<std::unique_ptr<WeightFile>> Open(const Network& network,
                                                   InitializeSpec spec = {}) {
    if (spec.from.empty()) spec.from = kFile;
    return WeightFile::Open(files_, spec, network);
  }

  std::string Refusal(const Network& network, const InitializeSpec& spec = {}) {
    const absl::Status status = Open(network, spec).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  }

  FaultFileSystem files_;
  Metadata metadata_;

 private:
  static std::vector<std::byte> BytesOf(const FileTensor& tensor) {
    std::vector<std::byte> bytes;
    for (const float value : tensor.values) {
      const auto append = [&bytes](auto number) {
        const auto* const first = reinterpret_cast<const std::byte*>(&number);
        bytes.insert(bytes.end(), first, first + sizeof(number));
      };
      if (tensor.dtype == DType::kF32) append(value);
      if (DTypeSize(tensor.dtype) == 2) append(static_cast<uint16_t>(value));
      if (DTypeSize(tensor.dtype) == 8) append(static_cast<int64_t>(value));
    }
    return bytes;
  }
};

std::vector<float> ReadOf(WeightFile& file, const WeightName& name) {
  std::vector<float> values(static_cast<size_t>(name.shape.elements()), -1.0f);
  const absl::StatusOr<bool> found = file.Read(name.ours, values);
  EXPECT_TRUE(found.ok() && *found) << name.ours << " " << found.status();
  return values;
}

TEST_F(WeightFileTest, AFolderOfOtherWeightsIsNamed) {
  const auto refusal = [this](const std::string& file) {
    CHECK_OK(files_.RemoveAll("/theirs"));
    CHECK_OK(files_.MakeFolders("/theirs"));
    CHECK_OK(files_.Create("/theirs/" + file).status());
    return Refusal(SmallResnet(), {.from = "/theirs"});
  };
  EXPECT_THAT(refusal("pytorch_model.bin"),
              HasSubstr("initialize.from = \"/theirs\": holds weights in PyTorch's pickle "
                        "(pytorch_model.bin); write safetensors: AutoModelForCausalLM"));
  EXPECT_THAT(refusal("pytorch_model.bin.index.json"),
              HasSubstr("holds sharded weights in PyTorch's pickles"));
  EXPECT_THAT(refusal("consolidated.00.pth"), HasSubstr("PyTorch's pickles, by Meta's names"));
  CHECK_OK(files_.Create("/weights/lfs").status());
  files_.SetContents("/weights/lfs", "version https://git-lfs.github.com/spec/v1\n");
  EXPECT_THAT(Refusal(SmallResnet(), {.from = "/weights/lfs"}),
              HasSubstr("initialize.from = \"/weights/lfs\": a Git LFS pointer, not a safetensors "
                        "file; fetch the file itself (git lfs pull); want"));
}

// Symptom: "the file is not there", of a folder that is.
TEST_F(WeightFileTest, ACheckpointIsRefusedWithWhatIsMeant) {
  for (const char* file : {"MANIFEST.json", "LATEST"}) {
    CHECK_OK(files_.RemoveAll("/checkpoint"));
    CHECK_OK(files_.MakeFolders("/checkpoint"));
    CHECK_OK(files_.Create(absl::StrCat("/checkpoint/", file)).status());
    EXPECT_THAT(Refusal(SmallResnet(), {.from = "/checkpoint"}),
                AllOf(HasSubstr("initialize.from = \"/checkpoint\": is a checkpoint's, and "
                                "initialize begins with weights alone"),
                      HasSubstr("`stagecoach export JOB`"), HasSubstr("set resume.job instead")));
  }
  // A server's own, which no job may read.
  class NoFiles final : public ReadableFiles {
   public:
    absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
      return Look(path);
    }
    absl::Status Look(const std::string&) override {
      return absl::PermissionDeniedError("belongs to a server");
    }
  };
  NoFiles files;
  for (const char* from : {"/run/step-000000000002", "/run/step-000000000002/layer.safetensors"}) {
    EXPECT_THAT(
        std::string(WeightFile::Open(files, {.from = from}, SmallResnet()).status().message()),
        HasSubstr("is a checkpoint's, and initialize begins"));
  }
}

TEST_F(WeightFileTest, GivesEveryArrayInOurNamesAndLayouts) {
  for (const Network& network : {SmallResnet(), SmallTransformer(), SmallGpt(), SmallLlama()}) {
    for (const std::string& table : WeightTables()) {
      if (!WeightNames(network, table).ok()) continue;
      SCOPED_TRACE(table);
      FileTensors tensors = TensorsOf(network, table);
      tensors["bn1.num_batches_tracked"] = {{}, DType::kI64, {7}};
      Write(tensors);
      const auto file = Open(network, {.names = table});
      ASSERT_TRUE(file.ok()) << file.status();
      const std::vector<WeightName> names = WeightNames(network, table)->names;
      for (const WeightName& name : names) {
        const std::vector<float> ours = ReadOf(**file, name);
        for (size_t part = 0; part < name.parts.size(); ++part) {
          const std::string& tensor = name.parts[part].tensor;
          std::vector<float> back(tensors[tensor].values.size());
          ToTensor(name, part, ours, back);
          EXPECT_EQ(back, tensors[tensor].values) << tensor;
        }
      }
      EXPECT_THAT((*file)->notes(),
                  ElementsAre(absl::StrCat("begins with ", names.size(), " of ", names.size(),
                                           " arrays from ", kFile)));
    }
  }
}

// Symptom: while a share did not answer, the folder itself was opened, and "not a file" ended the
// job for good.
TEST_F(WeightFileTest, AShareThatDoesNotAnswerNowIsAskedAgain) {
  class AwayFiles final : public ReadableFiles {
   public:
    explicit AwayFiles(absl::Status answer) : answer_(std::move(answer)) {}
    absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string&) override {
      return absl::InvalidArgumentError("not a file");
    }
    absl::Status Look(const std::string&) override { return answer_; }

   private:
    const absl::Status answer_;
  };
  for (const absl::Status& answer : {absl::UnavailableError("Stale file handle"),
                                     absl::PermissionDeniedError("is not beneath a data root")}) {
    AwayFiles files(answer);
    const absl::Status status =
        WeightFile::Open(files, {.from = "/exports/trunk"}, SmallResnet()).status();
    EXPECT_EQ(status.code(), answer.code()) << status;
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(HasSubstr(absl::StrCat("initialize.from = \"/exports/trunk\": ", answer.message())),
              HasSubstr("want a safetensors file")));
  }
}

TEST_F(WeightFileTest, AFolderOfExportedWeightsIsItsFile) {
  CHECK_OK(files_.MakeFolders("/exports/trunk"));
  Write(TensorsOf(SmallResnet(), "stagecoach"), "/exports/trunk/model.safetensors");
  EXPECT_TRUE(Open(SmallResnet(), {.from = "/exports/trunk"}).ok());
}

// Earlier versions of torchvision wrote the layers of an MLP so, and the files to download still
// have it.
TEST_F(WeightFileTest, NamesOfEarlierVersionsAreKnown) {
  FileTensors tensors = TensorsOf(SmallTransformer(), "torchvision");
  const std::string block = "encoder.layers.encoder_layer_0.mlp.";
  for (const char* last : {"weight", "bias"}) {
    for (const auto& [now, once] : {std::pair("0.", "linear_1."), std::pair("3.", "linear_2.")}) {
      auto node = tensors.extract(block + now + last);
      node.key() = block + once + last;
      tensors.insert(std::move(node));
    }
  }
  Write(tensors);
  const auto file = Open(SmallTransformer(), {.names = "torchvision"});
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<float> bias(16);
  EXPECT_TRUE(*(*file)->Read("model/0002/mlp.up.bias", bias));
  EXPECT_EQ(bias, tensors[block + "linear_1.bias"].values);
}

TEST_F(WeightFileTest, WhatIsExceptedIsNotTaken) {
  Write(TensorsOf(SmallResnet(7), "torchvision"));
  const Network network = SmallResnet(5);
  for (const char* pattern : {"fc.*", "model/0009/*"}) {
    const auto file = Open(network, {.names = "torchvision", .except = {pattern}});
    ASSERT_TRUE(file.ok()) << file.status();
    std::vector<float> bias(5, -1.0f);
    const absl::StatusOr<bool> found = (*file)->Read("model/0009/linear.bias", bias);
    EXPECT_TRUE(found.ok() && !*found);
    EXPECT_EQ(bias, std::vector<float>(5, -1.0f));
    EXPECT_THAT((*file)->notes(), ElementsAre(HasSubstr("begins with 100 of 102 arrays")));
  }
}

TEST_F(WeightFileTest, WhatDoesNotFitIsRefusedWithBothShapesAndTheRemedy) {
  Write(TensorsOf(SmallResnet(7), "torchvision"));
  EXPECT_EQ(Refusal(SmallResnet(5), {.names = "torchvision"}),
            "initialize.from = \"/weights/resnet.safetensors\": tensor fc.weight is F32 [7, 16], "
            "where the job's model/0009/linear.weight has F32 [5, 16]; put \"fc.weight\" into "
            "initialize.except to begin it with the seed's values (and 1 more that do not fit)");

  FileTensors tensors = TensorsOf(SmallResnet(), "torchvision");
  tensors["conv1.weight"].dtype = DType::kI64;
  Write(tensors);
  EXPECT_THAT(Refusal(SmallResnet(), {.names = "torchvision"}),
              AllOf(HasSubstr("tensor conv1.weight is I64 [2, 3, 7, 7], where"),
                    HasSubstr("write it as F32, F16 or BF16")));
}

TEST_F(WeightFileTest, WhatIsMissingIsRefusedAndMayBeExcepted) {
  FileTensors tensors = TensorsOf(SmallResnet(), "torchvision");
  tensors.erase("fc.bias");
  Write(tensors);
  EXPECT_THAT(Refusal(SmallResnet(), {.names = "torchvision"}),
              HasSubstr("there is no tensor fc.bias [5], which the job's model/0009/linear.bias "
                        "begins with; put \"fc.bias\" into initialize.except"));
  EXPECT_TRUE(Open(SmallResnet(), {.names = "torchvision", .except = {"fc.bias"}}).ok());
}

TEST_F(WeightFileTest, WhatTheFileAloneHasIsRefusedAndMayBeExcepted) {
  FileTensors tensors = TensorsOf(SmallTransformer(), "timm");
  tensors["head_dist.weight"] = {{1}, DType::kF32, {1}};
  Write(tensors);
  EXPECT_THAT(Refusal(SmallTransformer(), {.names = "timm"}),
              HasSubstr("tensor head_dist.weight [1] is none of the job's by the names of timm; "
                        "put \"head_dist.weight\" into initialize.except to leave it out"));
  EXPECT_TRUE(Open(SmallTransformer(), {.names = "timm", .except = {"head_dist.*"}}).ok());
}

TEST_F(WeightFileTest, APatternHasToMatchAndToLeaveSomething) {
  Write(TensorsOf(SmallResnet(), "torchvision"));
  EXPECT_THAT(Refusal(SmallResnet(), {.names = "torchvision", .except = {"fc.*", "head.*"}}),
              HasSubstr("initialize.except[1]: \"head.*\"; must match a name"));
  EXPECT_THAT(Refusal(SmallResnet(), {.names = "torchvision", .except = {"*"}}),
              HasSubstr("initialize.except: 1 patterns; must leave something"));
}

// Symptom: patterns of names that are in the file were refused as ones that match nothing.
TEST_F(WeightFileTest, APatternMayNameAllThatTheFileHas) {
  FileTensors tensors = TensorsOf(SmallResnet(), "torchvision");
  tensors["bn1.num_batches_tracked"] = {{}, DType::kI64, {7}};
  Write(tensors);
  EXPECT_TRUE(
      Open(SmallResnet(), {.names = "torchvision", .except = {"*num_batches_tracked"}}).ok());
  tensors = TensorsOf(SmallTransformer(), "torchvision");
  auto node = tensors.extract("encoder.layers.encoder_layer_0.mlp.0.bias");
  node.key() = "encoder.layers.encoder_layer_0.mlp.linear_1.bias";
  tensors.insert(std::move(node));
  Write(tensors);
  const auto file =
      Open(SmallTransformer(), {.names = "torchvision", .except = {"*.linear_1.bias"}});
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<float> bias(16);
  EXPECT_FALSE(*(*file)->Read("model/0002/mlp.up.bias", bias));
}

constexpr char kPositions[] = "model/0000/position";

// The number of the file in row and column of the grid is 10 row + column, plus 100 channel: a plane,
// which a resampled grid has too but at its edges.
std::vector<float> PlaneWithToken(int64_t height, int64_t width) {
  std::vector<float> values = {-1, -2, -3, -4};
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t channel = 0; channel < 4; ++channel) {
        values.push_back(static_cast<float>(10 * y + x + 100 * channel));
      }
    }
  }
  return values;
}

TEST_F(WeightFileTest, PositionsOfAnotherImageSizeAreResampled) {
  for (const auto& [table, tensor] : {std::pair("timm", "pos_embed"),
                                      {"torchvision", "encoder.pos_embedding"},
                                      {"stagecoach", kPositions}}) {
    FileTensors tensors = TensorsOf(TransformerOn(12, 12), table);
    tensors[tensor].values = PlaneWithToken(6, 6);
    Write(tensors);
    for (const auto& [height, width] : {std::pair(24, 24), {6, 6}, {6, 32}}) {
      SCOPED_TRACE(absl::StrCat(table, " ", height, "x", width));
      const Network network = TransformerOn(height, width);
      const auto file = Open(network, {.names = table});
      ASSERT_TRUE(file.ok()) << file.status();
      ASSERT_TRUE(*(*file)->Read(kPositions, {}));
      EXPECT_THAT((*file)->notes(), ElementsAre(HasSubstr("begins with"))) << "nothing is read";
      const int64_t rows = height / 2, columns = width / 2;
      std::vector<float> values(static_cast<size_t>((1 + rows * columns) * 4));
      ASSERT_TRUE(*(*file)->Read(kPositions, values));
      EXPECT_THAT(std::vector(values.begin(), values.begin() + 4), ElementsAre(-1, -2, -3, -4));
      const auto at = [&values, columns = columns](int64_t y, int64_t x, int64_t channel) {
        return values[static_cast<size_t>((1 + y * columns + x) * 4 + channel)];
      };
      // Only the middle is without edges, if there are few rows.
      const auto old = [](int64_t i, int64_t count) {
        return (static_cast<double>(i) + 0.5) * 6 / static_cast<double>(count) - 0.5;
      };
      const int64_t y = rows / 2, x = columns / 2;
      for (int64_t channel = 0; channel < 4; ++channel) {
        EXPECT_NEAR(at(y, x, channel),
                    10 * old(y, rows) + old(x, columns) + 100 * static_cast<double>(channel), 0.4);
      }
      EXPECT_THAT(
          (*file)->notes(),
          ElementsAre(HasSubstr("begins with"),
                      absl::StrCat("resampled the positions model/0000/position from 6x6 to ", rows,
                                   "x", columns, " patches")));
      // The digests are those of the file.
      const WeightsRead read = *(*file)->Finish();
      ASSERT_EQ(read.read.size(), 1u);
      EXPECT_EQ(read.read[0].sha256, BytesSha256(std::as_bytes(std::span(tensors[tensor].values))));
    }
  }
}

// By PyTorch's interpolate(mode="bicubic", antialias=True), from 3x3 to 2x4.
TEST_F(WeightFileTest, ResampledPositionsArePyTorchs) {
  FileTensors tensors = TensorsOf(TransformerOn(6, 6), "timm");
  const std::vector<float> grid = {1, -2, 5, 3, 0, 7, -4, 2, 6};
  tensors["pos_embed"].values.assign(4, 9.0f);
  for (const float number : grid) {
    for (const float factor : {1, 2, -1, 0}) {
      tensors["pos_embed"].values.push_back(factor * number);
    }
  }
  Write(tensors);
  const auto file = Open(TransformerOn(4, 8), {.names = "timm"});
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<float> values(9 * 4), expected(4, 9.0f);
  ASSERT_TRUE(*(*file)->Read(kPositions, values));
  for (const float number :
       {2.15632112311636f, -0.6254386346880643f, 1.0414227304737178f, 6.111928319877339f,
        -1.6192233056227687f, -0.03788962847623162f, 3.465223795659674f, 6.69396995759565f}) {
    for (const float factor : {1, 2, -1, 0}) expected.push_back(factor * number);
  }
  EXPECT_THAT(values, Pointwise(FloatNear(2e-6f), expected));
}

TEST_F(WeightFileTest, PositionsOfAsManyPatchesStayAsTheyAre) {
  FileTensors tensors = TensorsOf(TransformerOn(8, 8), "timm");
  Write(tensors);
  const auto file = Open(TransformerOn(4, 16), {.names = "timm"});
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<float> values(17 * 4);
  ASSERT_TRUE(*(*file)->Read(kPositions, values));
  EXPECT_EQ(values, tensors["pos_embed"].values);
  EXPECT_EQ((*file)->notes().size(), 1u);
}

TEST_F(WeightFileTest, PositionsThatDoNotFitOtherwiseAreRefused) {
  const auto refusal = [this](Shape shape, DType dtype = DType::kF32) {
    FileTensors tensors = TensorsOf(SmallTransformer(), "timm");
    const auto numbers = static_cast<size_t>(shape.elements());
    tensors["pos_embed"] = {std::move(shape), dtype, std::vector<float>(numbers, 1)};
    Write(tensors);
    return Refusal(SmallTransformer(), {.names = "timm"});
  };
  EXPECT_EQ(
      refusal({1, 19, 4}),
      "initialize.from = \"/weights/resnet.safetensors\": tensor pos_embed is F32 [1, 19, 4], "
      "where the job's model/0000/position has F32 [1, 7, 4], and positions of 18 patches, "
      "which is not a square, are not resampled; set the image size of the file, or put "
      "\"pos_embed\" into initialize.except to begin it with the seed's values");
  EXPECT_THAT(refusal({1, 17, 8}),
              HasSubstr("is F32 [1, 17, 8], where the job's model/0000/position has F32 [1, 7, 4]; "
                        "put \"pos_embed\" into"));
  EXPECT_THAT(refusal({17, 4}), HasSubstr("is F32 [17, 4], where"));
  EXPECT_THAT(refusal({1, 1, 4}), HasSubstr("is F32 [1, 1, 4], where"));
  EXPECT_THAT(refusal({1, 0, 4}), HasSubstr("is F32 [1, 0, 4], where"));
  EXPECT_THAT(refusal({1, 17, 4}, DType::kI64), HasSubstr("write it as F32, F16 or BF16"));
}

// Symptom: the first name was called missing, and 101 more, with the advice to except them.
TEST_F(WeightFileTest, NamesOfAnotherTableAreToldAsWhatTheyAre) {
  Write(TensorsOf(SmallResnet(), "torchvision"));
  EXPECT_EQ(Refusal(SmallResnet(7)),
            "initialize.from = \"/weights/resnet.safetensors\": its tensors have the names of "
            "torchvision, not of stagecoach; set initialize.names: torchvision");
  Write(TensorsOf(SmallTransformer(), "timm"));
  EXPECT_THAT(Refusal(SmallTransformer(), {.names = "torchvision"}),
              HasSubstr("set initialize.names: timm"));
  Write(TensorsOf(SmallTransformer(), "stagecoach"));
  EXPECT_THAT(Refusal(SmallTransformer(), {.names = "torchvision"}),
              HasSubstr("set initialize.names: stagecoach"));
}

// As DistributedDataParallel's state_dict has them, or a network within another one.
TEST_F(WeightFileTest, NamesBehindAPrefixAreToldAsWhatTheyAre) {
  for (const char* prefix : {"module.", "model.backbone."}) {
    FileTensors prefixed;
    for (auto& [name, tensor] : TensorsOf(SmallResnet(), "torchvision")) {
      prefixed[prefix + name] = tensor;
    }
    Write(prefixed);
    for (const char* table : {"torchvision", "stagecoach"}) {
      EXPECT_THAT(Refusal(SmallResnet(), {.names = table}),
                  HasSubstr(absl::StrCat("its tensors have the names of torchvision behind \"",
                                         prefix, "\"; write the file without that")));
    }
  }
}

TEST_F(WeightFileTest, WhatIsOfAnotherNetworkIsNotGuessedAt) {
  Write({{"embeddings.word.weight", {{2}, DType::kF32, {1, 2}}}});
  EXPECT_THAT(
      Refusal(SmallResnet(), {.names = "torchvision"}),
      AllOf(HasSubstr("there is no tensor conv1.weight"),
            HasSubstr("of 102 arrays 0 fit: give the weights of this network"),
            Not(HasSubstr("initialize.except")), HasSubstr("(and 102 more that do not fit)")));
}

TEST_F(WeightFileTest, HalfTheBytesAreWidened) {
  const Network network = SmallTransformer();
  FileTensors tensors = TensorsOf(network, "timm");
  tensors["head.bias"] = {{5}, DType::kF16, {0x3c00, 0xc000, 0x0001, 0x7bff, 0x8000}};
  tensors["norm.bias"] = {{4}, DType::kBF16, {0x3f80, 0xc000, 0x0001, 0x7f7f}};
  Write(tensors);
  const auto file = Open(network, {.names = "timm"});
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<float> head(5), norm(4);
  ASSERT_TRUE(*(*file)->Read("model/0003/linear.bias", head));
  EXPECT_EQ(head, (std::vector<float>{1, -2, 0x1p-24f, 65504, 0}));
  EXPECT_TRUE(std::signbit(head[4]));
  ASSERT_TRUE(*(*file)->Read("model/0003/layer_norm.bias", norm));
  EXPECT_EQ(norm, (std::vector<float>{1, -2, 0x1p-133f, 0x1.fep127f}));
}

TEST_F(WeightFileTest, ANumberThatIsNoneIsRefusedWithItsPlace) {
  FileTensors tensors = TensorsOf(SmallResnet(), "torchvision");
  tensors["fc.bias"].values[3] = std::numeric_limits<float>::infinity();
  Write(tensors);
  const auto file = Open(SmallResnet(), {.names = "torchvision"});
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<float> values(5);
  EXPECT_THAT(std::string((*file)->Read("model/0009/linear.bias", values).status().message()),
              HasSubstr("number 3 of tensor fc.bias is inf; weights are finite"));
}

TEST_F(WeightFileTest, AFileThatIsNoneIsRefusedWithWhatWouldBe) {
  CHECK_OK(files_.Create(kFile).status());
  files_.SetContents(kFile, "PK\x03\x04 and so on, as PyTorch's own files begin");
  EXPECT_THAT(Refusal(SmallResnet()),
              AllOf(HasSubstr("initialize.from = \"/weights/resnet.safetensors\": "),
                    HasSubstr("want a safetensors file"), HasSubstr("docs/formats.md")));
  const absl::Status absent = Open(SmallResnet(), {.from = "/weights/none"}).status();
  EXPECT_TRUE(absl::IsNotFound(absent)) << absent;
  EXPECT_THAT(std::string(absent.message()), HasSubstr("/weights/none"));
}

// Reads every array, as a stage with the whole network does.
absl::StatusOr<WeightsRead> ReadAll(WeightFile& file, const Network& network,
                                    const std::string& names) {
  const WeightTable table = *WeightNames(network, names);
  for (const WeightName& name : table.names) {
    std::vector<float> values(static_cast<size_t>(name.shape.elements()));
    RETURN_IF_ERROR(file.Read(name.ours, values).status());
  }
  return file.Finish();
}

TEST_F(WeightFileTest, AnotherFileHasOtherDigests) {
  const Network network = SmallResnet();
  FileTensors tensors = TensorsOf(network, "torchvision");
  Write(tensors);
  const auto read = [&] {
    return *ReadAll(**Open(network, {.names = "torchvision"}), network, "torchvision");
  };
  const WeightsRead first = read();
  EXPECT_EQ(first.bytes, static_cast<int64_t>(files_.Contents(kFile).size()));
  EXPECT_EQ(first.tensors, std::ssize(tensors));
  EXPECT_EQ(first.read.size(), tensors.size());
  EXPECT_EQ(first.named_sha256, "");
  EXPECT_EQ(read(), first);
  for (float& value : tensors["layer4.1.conv2.weight"].values) value += 1;
  Write(tensors);
  const WeightsRead other = read();
  EXPECT_EQ(other.header_sha256, first.header_sha256);
  for (size_t i = 0; i < first.read.size(); ++i) {
    EXPECT_EQ(other.read[i] != first.read[i], first.read[i].name == "layer4.1.conv2.weight");
  }
  // A row more is another header.
  tensors["fc.bias"] = {{6}, DType::kF32, std::vector<float>(6)};
  Write(tensors);
  const auto wider = Open(network, {.names = "torchvision", .except = {"fc.bias"}});
  ASSERT_TRUE(wider.ok()) << wider.status();
  EXPECT_NE((*wider)->Finish()->header_sha256, first.header_sha256);
}

TEST_F(WeightFileTest, WhatIsReadIsTold) {
  const Network network = SmallResnet();
  Write(TensorsOf(network, "torchvision"));
  const auto file = Open(network, {.names = "torchvision"});
  std::vector<float> values(5);
  ASSERT_TRUE(*(*file)->Read("model/0009/linear.bias", {})) << "nothing is read";
  EXPECT_TRUE((*file)->Finish()->read.empty());
  ASSERT_TRUE(*(*file)->Read("model/0009/linear.bias", values));
  const WeightsRead read = *(*file)->Finish();
  ASSERT_EQ(read.read.size(), 1u);
  EXPECT_EQ(read.read[0].name, "fc.bias");
  EXPECT_EQ(read.read[0].dtype, "F32");
  EXPECT_EQ(read.read[0].shape, "[5]");
  EXPECT_EQ(read.read[0].sha256, BytesSha256(std::as_bytes(std::span(values))));
}

// Symptom: one bit of an export changed, and a job began with it and succeeded.
TEST_F(WeightFileTest, AnExportThatChangedIsRefusedWithBothDigests) {
  const Network network = SmallResnet();
  Write(TensorsOf(network, "torchvision"));
  std::vector<TensorDigest> content;
  const WeightsRead before =
      *ReadAll(**Open(network, {.names = "torchvision"}), network, "torchvision");
  for (const WeightsRead::Tensor& tensor : before.read) {
    content.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.sha256});
  }
  const std::string digest = ContentDigest(content);
  metadata_ = {{"content_sha256", digest}};
  Write(TensorsOf(network, "torchvision"));
  const auto whole = Open(network, {.names = "torchvision"});
  ASSERT_TRUE(whole.ok()) << whole.status();
  const auto read = ReadAll(**whole, network, "torchvision");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->named_sha256, digest);

  std::string bytes = files_.Contents(kFile);
  bytes[bytes.size() - 5000] ^= 1;
  files_.SetContents(kFile, bytes);
  const auto damaged = Open(network, {.names = "torchvision"});
  ASSERT_TRUE(damaged.ok()) << damaged.status();
  const absl::Status refused = ReadAll(**damaged, network, "torchvision").status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("its tensors have sha256 "), HasSubstr("written with " + digest),
                    HasSubstr("the file is damaged")));
  // What was read already is not given in another form.
  const absl::Status changed = ReadAll(**whole, network, "torchvision").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(changed)) << changed;
  EXPECT_THAT(std::string(changed.message()), HasSubstr("changed while it was read"));
}

}  // namespace
}  // namespace stagecoach
