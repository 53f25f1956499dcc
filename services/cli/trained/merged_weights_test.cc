// Adapters of a small Llama, merged with its weights and in peft's form.
#include "services/cli/trained/merged_weights.h"

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/numbers/random.h"
#include "base/testing/file_text.h"
#include "base/testing/temporary_folder.h"
#include "checkpoint/content_digest.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/names/weight_names.h"
#include "network/zoo/gpt.h"
#include "network/zoo/llama.h"
#include "plan/job/job_spec.h"
#include "services/cli/trained/adapter_file.h"
#include "services/cli/trained/peft_folder.h"

namespace stagecoach {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Arrays = std::map<std::string, std::pair<Shape, std::vector<float>>>;

Arrays ReadArrays(const std::string& path) {
  SafetensorsReader reader = *SafetensorsReader::Open(*PosixFileSystem(), path);
  CHECK_OK(CheckContent(reader));
  Arrays arrays;
  for (const TensorEntry& entry : reader.tensors()) {
    std::vector<float> values(static_cast<size_t>(entry.shape.elements()));
    CHECK_OK(reader.Read(entry, std::as_writable_bytes(std::span(values))));
    arrays[entry.name] = {entry.shape, std::move(values)};
  }
  return arrays;
}

class MergedWeightsTest : public testing::Test {
 protected:
  MergedWeightsTest() {
    job_.network = LlamaSpec{.layers = 2,
                             .width = 8,
                             .heads = 4,
                             .key_heads = 2,
                             .hidden = 6,
                             .context = 6,
                             .vocabulary = 7};
    job_.training.lora = {.rank = 2, .alpha = 3, .targets = {"query", "value", "up"}};
    job_.initialize.from = Path("base.safetensors");
  }
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }

  // Files of random numbers: the base, and the adapters.
  void Write(const Metadata& of_adapters = {}) {
    const absl::StatusOr<Network> network = ExpandJob(job_);
    CHECK_OK(network.status());
    Arrays base, adapters;
    uint64_t next = 0;
    for (const NetworkLayer& layer : network->layers) {
      for (const ParameterSpec& parameter : layer.parameters) {
        if (parameter.tied()) continue;
        auto& [shape, values] =
            (parameter.part == ParameterSpec::Part::kBase ? base : adapters)[parameter.name];
        shape = parameter.shape;
        for (int64_t i = 0; i < shape.elements(); ++i) {
          values.push_back(RandomNormal({.seed = 3}, next++));
        }
      }
    }
    WriteArrays("base.safetensors", base, {});
    WriteArrays("adapters.safetensors", adapters, of_adapters);
  }
  void WriteArrays(const std::string& name, const Arrays& arrays, const Metadata& metadata) {
    PosixFileSystem()->RemoveAll(Path(name)).IgnoreError();
    std::vector<TensorSource> sources;
    for (const auto& [tensor, array] : arrays) {
      sources.push_back({tensor, DType::kF32, array.first, [&values = array.second] {
                           return absl::StatusOr<std::span<const std::byte>>(
                               std::as_bytes(std::span(values)));
                         }});
    }
    CHECK_OK(WriteSafetensors(*PosixFileSystem(), Path(name), sources, metadata).status());
  }
  absl::Status Merge(const std::string& target = "merged.safetensors") {
    return WriteMergedWeights(*PosixFileSystem(), job_, Path("adapters.safetensors"), Path(target));
  }
  absl::Status Peft(const std::string& target) {
    return WritePeftFolder(*PosixFileSystem(), job_, Path("adapters.safetensors"), Path(target));
  }

  TemporaryFolder folder_;
  JobSpec job_;
};

TEST_F(MergedWeightsTest, AdaptersAreAddedToTheRowsThatTheyAdapt) {
  for (const std::vector<std::string>& targets : std::vector<std::vector<std::string>>{
           {"query", "value", "up"}, {"key"}, {"qkv", "proj", "gate", "down"}}) {
    job_.training.lora.targets = targets;
    Write();
    const absl::Status merged = Merge(absl::StrCat("merged-", targets[0]));
    ASSERT_TRUE(merged.ok()) << merged;
    Arrays expected = ReadArrays(Path("base.safetensors"));
    const Arrays adapters = ReadArrays(Path("adapters.safetensors"));
    const std::vector<Adapter> all = AdaptersOf(*ExpandJob(job_));
    EXPECT_EQ(all.size(), 2 * targets.size());
    for (const Adapter& adapter : all) {
      auto& [shape, weight] = expected.at(adapter.weight);
      const auto& [a_shape, a] = adapters.at(adapter.a);
      const std::vector<float>& b = adapters.at(adapter.b).second;
      for (int64_t i = 0; i < adapter.rows; ++i) {
        for (int64_t j = 0; j < shape[1]; ++j) {
          double sum = 0;
          for (int64_t k = 0; k < 2; ++k) sum += double{b[i * 2 + k]} * a[k * shape[1] + j];
          weight[(adapter.first_row + i) * shape[1] + j] += static_cast<float>(1.5 * sum);
        }
      }
    }
    const Arrays found = ReadArrays(Path(absl::StrCat("merged-", targets[0])));
    ASSERT_EQ(found.size(), expected.size());
    for (const auto& [name, array] : expected) {
      EXPECT_EQ(found.at(name).first, array.first);
      EXPECT_THAT(found.at(name).second,
                  testing::Pointwise(testing::FloatNear(1e-6f), array.second))
          << name;
    }
  }
}

TEST_F(MergedWeightsTest, OtherBasesAndOtherAdaptersAreRefused) {
  Write({{kBaseDigestKey, "abc"}});
  EXPECT_THAT(std::string(Merge().message()),
              AllOf(HasSubstr("initialize.from = \""), HasSubstr("the adapters were trained with "
                                                                 "sha256 abc")));
  Write();
  job_.training.lora.rank = 1;
  EXPECT_THAT(std::string(Merge("other").message()),
              AllOf(HasSubstr("adapters.safetensors: tensor model/0001/attention.query.lora_a"),
                    HasSubstr("[2, 8], the job's is F32 [1, 8]")));
  job_.training.lora.targets = {"key"};
  EXPECT_THAT(std::string(Merge("other").message()),
              HasSubstr("no tensor model/0001/attention.key.lora_a.weight"));
  CHECK_OK(PosixFileSystem()->RemoveAll(Path("base.safetensors")));
  job_.training.lora = {.rank = 2, .alpha = 3, .targets = {"query", "value", "up"}};
  EXPECT_THAT(std::string(Merge("other").message()), HasSubstr("initialize.from = \""));
}

TEST_F(MergedWeightsTest, PeftHasTheModulesByTheirNames) {
  Write();
  const absl::Status written = Peft("peft/");
  ASSERT_TRUE(written.ok()) << written;
  EXPECT_EQ(FileText(Path("peft/adapter_config.json")), R"({
  "peft_type": "LORA",
  "task_type": "CAUSAL_LM",
  "base_model_name_or_path": null,
  "r": 2,
  "lora_alpha": 3,
  "lora_dropout": 0.0,
  "target_modules": [
    "q_proj",
    "up_proj",
    "v_proj"
  ],
  "bias": "none",
  "fan_in_fan_out": false,
  "init_lora_weights": true,
  "inference_mode": true
}
)");
  const Arrays ours = ReadArrays(Path("adapters.safetensors"));
  const Arrays theirs = ReadArrays(Path("peft/adapter_model.safetensors"));
  EXPECT_EQ(theirs.size(), ours.size());
  const std::string layer = "base_model.model.model.layers.1.";
  EXPECT_EQ(theirs.at(layer + "self_attn.v_proj.lora_A.weight"),
            ours.at("model/0003/attention.value.lora_a.weight"));
  EXPECT_EQ(theirs.at(layer + "mlp.up_proj.lora_B.weight"),
            ours.at("model/0004/swiglu.up.lora_b.weight"));
  EXPECT_TRUE(absl::IsAlreadyExists(Peft("peft")));
}

TEST_F(MergedWeightsTest, WherePeftCannotHaveThemItIsSaid) {
  job_.training.lora.targets = {"qkv"};
  Write();
  EXPECT_EQ(Peft("peft").message(),
            "training.lora.targets: an adapter of qkv: peft has one for each of query, key and "
            "value: train those");
  job_.network = GptSpec{.layers = 2, .width = 8, .heads = 2, .context = 6, .vocabulary = 7};
  job_.training.lora.targets = {"value"};
  Write();
  EXPECT_EQ(Peft("peft").message(),
            "training.lora.targets: an adapter of value: peft has one for all of c_attn: train "
            "qkv");
  // Two layers of a block have one name's end: the adapted ones are told whole.
  job_.training.lora = {.rank = 2, .targets = {"attention.proj"}};
  Write();
  job_.initialize.names = std::string(kHuggingFaceNames);
  const absl::Status written = Peft("whole");
  ASSERT_TRUE(written.ok()) << written;
  EXPECT_THAT(
      FileText(Path("whole/adapter_config.json")),
      AllOf(HasSubstr("\"transformer.h.0.attn.c_proj\",\n    "
                      "\"transformer.h.1.attn.c_proj\""),
            HasSubstr("\"fan_in_fan_out\": true"), HasSubstr("\"lora_alpha\": 2,"),
            HasSubstr(absl::StrCat("\"base_model_name_or_path\": \"", folder_.path(), "\""))))
      << "the folder of the file";
}

}  // namespace
}  // namespace stagecoach
