// Shared by tests of trained networks on pictures: a folder with exported weights, drawn and not
// trained, and pictures.
#ifndef STAGECOACH_SERVICES_CLI_PICTURES_TRAINED_PICTURES_TESTING_H_
#define STAGECOACH_SERVICES_CLI_PICTURES_TRAINED_PICTURES_TESTING_H_

#include <algorithm>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/temporary_folder.h"
#include "checkpoint/safetensors/safetensors.h"
#include "gtest/gtest.h"
#include "network/network_kinds.h"
#include "services/cli/spec/spec_reader.h"
#include "stage/cell/initial_value_testing.h"
#include "stage/pictures/picture_testing.h"

namespace stagecoach {

class TrainedPicturesTest : public testing::Test {
 protected:
  std::string PathOf(const std::string& name) const { return folder_.File(name); }
  template <typename Bytes>
  std::string Write(const std::string& name, const Bytes& bytes) const {
    return folder_.Write(name, bytes);
  }

  // Exports a job with this model and data, as YAML: stagecoach.json and model.safetensors.
  void Export(const std::string& model, const std::string& data) {
    Write("stagecoach.json", "name: tiny\nseed: 3\nmodel: " + model + "\ndata: " + data + R"(
training: {steps: 1, batch_size: 1, micro_batches: 1, optimizer: {sgd: {}},
           learning_rate: {constant: {peak: 0.001}}}
pipeline: {stages: 1, schedule: gpipe}
)");
    const auto file = ReadSpecFile(PathOf("stagecoach.json"));
    ASSERT_TRUE(file.ok()) << file.status();
    const auto valid = ValidateSpecFile(*file);
    ASSERT_TRUE(valid.ok()) << valid.status();
    spec_ = valid->job;
    WriteWeights();
  }
  std::string weights_file() const { return PathOf("model.safetensors"); }

  TemporaryFolder folder_;
  JobSpec spec_;

 private:
  void WriteWeights() const {
    const Network network = ExpandNetwork(spec_.network).value();
    std::vector<std::pair<std::string, Shape>> names;
    std::vector<std::vector<float>> values;
    for (const NetworkLayer& layer : network.layers) {
      for (const ParameterSpec& parameter : layer.parameters) {
        names.emplace_back(parameter.name, parameter.shape);
        values.push_back(InitialValue(parameter, 5, layer.index));
        for (float& value : values.back()) value *= 4;  // answers differ
      }
      for (const StateSpec& state : layer.states) {
        names.emplace_back(state.name, state.shape);
        values.emplace_back(static_cast<size_t>(state.shape.elements()), 0.5f);
      }
    }
    std::vector<TensorSource> sources;
    for (size_t i = 0; i < names.size(); ++i) {
      sources.push_back({names[i].first, DType::kF32, names[i].second,
                         [&values, i]() -> absl::StatusOr<std::span<const std::byte>> {
                           return std::as_bytes(std::span<const float>(values[i]));
                         }});
    }
    std::sort(sources.begin(), sources.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    std::filesystem::remove(weights_file());
    ASSERT_TRUE(WriteSafetensors(*PosixFileSystem(), weights_file(), sources, {}).ok());
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_PICTURES_TRAINED_PICTURES_TESTING_H_
