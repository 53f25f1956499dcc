#include "checkpoint/manifest.h"

#include <bit>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/files/hash.h"
#include "base/numbers/random.h"
#include "checkpoint/testing/toy_checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

Manifest FullManifest() {
  Manifest manifest = ToyManifest("job-1", 3, 12);
  manifest.shards = {{.file = "layer-0000-0001.safetensors",
                      .bytes = 100,
                      .sha256 = Sha256Hex("a"),
                      .tensors = {{{"model/0000/w", DType::kF32, {2, 3}, 0, 24}, Sha256Hex("w")},
                                  {{"opt/m/0000/w", DType::kBF16, {}, 24, 26}, Sha256Hex("m")}}},
                     {.file = "layer-0001-0002.safetensors", .bytes = 8, .sha256 = Sha256Hex("b")}};
  return manifest;
}

// The text with its digest computed anew: what somebody who edits a manifest on purpose would
// write.
std::string Sealed(const std::string& body) {
  return absl::StrCat(body, ",\"zz_sha256\":\"", Sha256Hex(body), "\"}");
}

std::string BodyOf(const Manifest& manifest) {
  const std::string text = FormatManifest(manifest);
  return text.substr(0, text.find(",\"zz_sha256\""));
}

TEST(Manifest, GivesBackEveryField) {
  const Manifest manifest = FullManifest();
  absl::StatusOr<Manifest> parsed = ParseManifest(FormatManifest(manifest));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, manifest);
}

TEST(Manifest, KeepsWhatTheDataTold) {
  Manifest manifest = FullManifest();
  manifest.facts = {.classes = {"ape", "b\u00e9e"}, .mean = {0.1, 0.25}, .deviation = {1.0 / 3, 2}};
  absl::StatusOr<Manifest> parsed = ParseManifest(FormatManifest(manifest));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, manifest);
  EXPECT_THAT(BodyOf(manifest), HasSubstr(R"("dataset":{"bytes":4,"classes":["ape",)"));
  EXPECT_THAT(BodyOf(manifest), HasSubstr(R"("mean":["0x1.999999999999ap-4","0x1p-2"])"));
  const std::string numbers = absl::StrReplaceAll(BodyOf(manifest), {{R"(["ape",)", R"([1,)"}});
  EXPECT_THAT(std::string(ParseManifest(Sealed(numbers)).status().message()),
              HasSubstr("\"classes\" holds no texts"));
}

// The bytes of version 1 must never change: old checkpoints are read by new programs.
TEST(Manifest, IsThisText) {
  Manifest manifest = ToyManifest("job-1", 3, 2);
  manifest.model_sha256 = "m";
  manifest.dataset_sha256 = "d";
  manifest.shards = {{.file = "layer-0000-0001.safetensors",
                      .bytes = 100,
                      .sha256 = "s",
                      .tensors = {{{"model/0000/w", DType::kF32, {2, 3}, 0, 24}, "t"}}}};
  EXPECT_EQ(
      BodyOf(manifest),
      R"({"dataset":{"bytes":4,"sha256":"d"},"fingerprint":"reference","format_version":1,)"
      R"("job":"job-1","model_sha256":"m","shards":[{"bytes":100,)"
      R"("file":"layer-0000-0001.safetensors","sha256":"s","tensors":[{"data_offsets":[0,24],)"
      R"("dtype":"F32","name":"model/0000/w","sha256":"t","shape":[2,3]}]}],"stages":2,)"
      R"("state":{"batch_size":8,"consecutive_nonfinite":2,"last_loss":"0x1.999999999999ap-3",)"
      R"("micro_batches":4,"optimizer_start":0,"seed":18364758544493064720,)"
      R"("sequences_consumed":16,"skipped_steps":1,)"
      R"("step":2},"term":3)");
}

TEST(Manifest, KeepsTheDigestOfTheWeightsThatAdaptersBelongTo) {
  Manifest manifest = FullManifest();
  EXPECT_THAT(FormatManifest(manifest), testing::Not(HasSubstr("base_sha256")));
  manifest.base_sha256 = "b";
  const absl::StatusOr<Manifest> parsed = ParseManifest(FormatManifest(manifest));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->base_sha256, "b");
  EXPECT_THAT(FormatManifest(manifest), HasSubstr(R"({"base_sha256":"b","dataset":)"));
}

TEST(Manifest, TellsWhenTheOptimizerBeganAnew) {
  Manifest manifest = ToyManifest("job-1", 3, 12);  // one of its steps was skipped
  EXPECT_THAT(FormatManifest(manifest), HasSubstr(R"("optimizer_start":0,)"));
  EXPECT_EQ(OptimizerSteps(manifest.state), 11u);
  manifest.state.optimizer_start = 4;
  EXPECT_THAT(FormatManifest(manifest), HasSubstr(R"("optimizer_start":4,)"));
  absl::StatusOr<Manifest> parsed = ParseManifest(FormatManifest(manifest));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->state.optimizer_start, 4u);
  EXPECT_EQ(OptimizerSteps(parsed->state), 7u);
  manifest.state.optimizer_start = 12;
  EXPECT_TRUE(absl::IsDataLoss(ParseManifest(FormatManifest(manifest)).status()));
}

TEST(Manifest, KeepsEveryBitOfTheLoss) {
  std::vector<double> losses = {0.0,
                                -0.0,
                                std::numeric_limits<double>::infinity(),
                                -std::numeric_limits<double>::infinity(),
                                std::numeric_limits<double>::denorm_min(),
                                std::numeric_limits<double>::max(),
                                0.1};
  const RandomStream stream{.seed = 5};
  for (uint64_t i = 0; i < 2000; ++i) {
    const uint64_t bits = uint64_t{RandomBits(stream, 2 * i)} << 32 | RandomBits(stream, 2 * i + 1);
    losses.push_back(std::bit_cast<double>(bits));
  }
  Manifest manifest = ToyManifest("job-1", 1, 1);
  for (const double loss : losses) {
    manifest.state.last_loss = loss;
    absl::StatusOr<Manifest> parsed = ParseManifest(FormatManifest(manifest));
    ASSERT_TRUE(parsed.ok()) << loss << parsed.status();
    if (std::isnan(loss)) {
      EXPECT_TRUE(std::isnan(parsed->state.last_loss));
    } else {
      EXPECT_EQ(std::bit_cast<uint64_t>(parsed->state.last_loss), std::bit_cast<uint64_t>(loss));
    }
  }
}

TEST(Manifest, RefusesEveryChangedBitAndEveryTruncation) {
  const std::string text = FormatManifest(FullManifest());
  for (size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = text;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      EXPECT_TRUE(absl::IsDataLoss(ParseManifest(changed).status())) << i << " bit " << bit;
    }
    EXPECT_TRUE(absl::IsDataLoss(ParseManifest(text.substr(0, i)).status())) << i;
  }
  EXPECT_TRUE(absl::IsDataLoss(ParseManifest(text + "\n").status()));
}

// With a digest that fits: the digest proves that nothing was damaged, not that it makes sense.
TEST(Manifest, RefusesWhatIsNotCanonicalOrNotLegal) {
  const std::string body = BodyOf(FullManifest());
  const std::vector<std::pair<std::string, std::string>> edits = {
      {"\"stages\":2", "\"stages\":2.0"},
      {"\"stages\":2", "\"stages\": 2"},
      {"\"stages\":2", "\"stages\":02"},
      {"\"stages\":2", "\"stages\":\"2\""},
      {"\"stages\":2", "\"stages\":2,\"stages\":2"},
      {"\"stages\":2", "\"stages\":2,\"unknown\":2"},
      {"\"stages\":2", "\"stages\":99999999999"},
      {",\"stages\":2", ""},
      {"\"step\":12", "\"step\":-12"},
      {"\"job\":\"job-1\"", "\"job\":\"../x\""},
      {"\"job\":\"job-1\"", "\"job\":\"\""},
      {"layer-0000-0001.safetensors", "../layer-0000-0001"},
      {"layer-0000-0001.safetensors", "/etc/passwd"},
      {"layer-0000-0001.safetensors", ".hidden"},
      {"layer-0000-0001.safetensors", "MANIFEST.json"},
      {"layer-0000-0001.safetensors", "z"},
      {"layer-0000-0001.safetensors", "layer-0001-0002.safetensors"},
      {"\"dtype\":\"F32\"", "\"dtype\":\"F8\""},
      {"\"shape\":[2,3]", "\"shape\":[2,4]"},
      {"\"shape\":[2,3]", "\"shape\":[-2,-3]"},
      {"\"shape\":[2,3]", "\"shape\":[4611686018427387904,4]"},
      {"\"data_offsets\":[0,24]", "\"data_offsets\":[0,24,24]"},
      {"\"data_offsets\":[0,24]", "\"data_offsets\":[-24,0]"},
      {"\"fingerprint\":\"reference\"", "\"fingerprint\":[[[[[[[[[[[[]]]]]]]]]]]]"},
      {"\"last_loss\":\"0x", "\"last_loss\":\"0X"},
      {"\"last_loss\":\"0x1.", "\"last_loss\":\"1."},
  };
  ASSERT_TRUE(ParseManifest(Sealed(body)).ok());
  for (const auto& [from, to] : edits) {
    const std::string edited = absl::StrReplaceAll(body, {{from, to}});
    ASSERT_NE(edited, body) << from;
    EXPECT_TRUE(absl::IsDataLoss(ParseManifest(Sealed(edited)).status()))
        << to << ": " << ParseManifest(Sealed(edited)).status();
  }
  EXPECT_TRUE(absl::IsDataLoss(ParseManifest(Sealed(std::string(1 << 20, '['))).status()));
}

TEST(Manifest, NamesAFormatVersionThatItDoesNotRead) {
  const std::string body = absl::StrReplaceAll(BodyOf(FullManifest()),
                                               {{"\"format_version\":1", "\"format_version\":2"}});
  const absl::Status status = ParseManifest(Sealed(body)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("format_version 2"));
}

}  // namespace
}  // namespace stagecoach
