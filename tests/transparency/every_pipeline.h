// One network in every pipeline: up to four stages and six, schedules, rematerialization modes,
// threads, and devices, micro-batches of 2, 2 and 1 samples. What the tests of kinds of layers and
// of networks share.
#ifndef STAGECOACH_TESTS_TRANSPARENCY_EVERY_PIPELINE_H_
#define STAGECOACH_TESTS_TRANSPARENCY_EVERY_PIPELINE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/errors/check.h"
#include "base/sanitized.h"
#include "gtest/gtest.h"
#include "network/network.h"
#include "plan/schedules/schedule_kinds.h"
#include "stage/testing/pipeline_harness.h"

namespace stagecoach {

// Devices without a card; all variants of one must give the same bits.
struct PipelineDevice {
  std::string name;
  std::vector<std::function<std::unique_ptr<Backend>()>> variants;
};

#ifdef STAGECOACH_CPU_BACKEND
inline PipelineDevice CpuDevice() {
  return {"cpu",
          {[] { return MakeCpuBackend({.threads = 1}); },
           [] { return MakeCpuBackend({.threads = 3}); }}};
}
#endif

inline std::vector<PipelineDevice> PipelineDevices() {
  std::vector<PipelineDevice> devices = {{"reference", {[] { return MakeReferenceBackend({}); }}}};
#ifdef STAGECOACH_CPU_BACKEND
  devices.push_back(CpuDevice());
#endif
  return devices;
}

inline HarnessResult TrainThreeSteps(HarnessOptions options, const Network& network) {
  options.network = network;
  options.precision = network.precision;
  options.batch_size = 5;
  options.micro_batches = 3;
  options.lengths_vary = true;
  auto result = PipelineHarness(options).Train(3);
  CHECK_OK(result.status());
  return *std::move(result);
}

// Samples of `source`, or made up ones.
inline void ExpectTheSameBitsInEveryPipeline(
    const Network& network, const std::shared_ptr<const BatchSource>& source = nullptr,
    const OptimizerSpec& optimizer = OptimizerSpec(),
    const std::vector<PipelineDevice>& devices = PipelineDevices()) {
  // Sanitized, all code runs; that all agree is the release build's to find.
  std::vector<int> counts = {3};
  if (!kSanitized) counts = {1, 2, 3, 4};
  if (!kSanitized && network.layers.size() >= 6) counts.push_back(6);
  for (const PipelineDevice& device : devices) {
    HarnessOptions options{
        .rematerialization = Rematerialization::kNever, .optimizer = optimizer, .source = source};
    options.make_backend = device.variants.front();
    const HarnessResult truth = TrainThreeSteps(options, network);
    for (size_t variant = 0; variant < device.variants.size(); ++variant) {
      options.make_backend = device.variants[variant];
      for (const int stages : counts) {
        options.stages = stages;
        for (const std::string& schedule : SchedulesFor(network.layers.size(), stages)) {
          options.schedule = schedule;
          for (const auto mode : {Rematerialization::kAlways, Rematerialization::kExceptFirst,
                                  Rematerialization::kNever}) {
            options.rematerialization = mode;
            ++options.order_seed;
            // Some of them, others for another variant and another number of layers;
            // transparency_test.cc has all. A schedule changes float32 wherever it changes bfloat16.
            const bool some = network.precision == Precision::kBfloat16;
            const uint64_t turns = !kSanitized && some ? 11 : 5;
            if ((options.order_seed + variant + network.layers.size()) % turns != 0) continue;
            EXPECT_TRUE(TrainThreeSteps(options, network) == truth)
                << device.name << " variant " << variant << ", K=" << options.stages << ", "
                << schedule << ", " << RematerializationName(mode);
          }
        }
      }
    }
  }
}

struct DeviceRun {
  std::string name;
  HarnessResult result;
};
// The reference device first.
inline std::vector<DeviceRun> TrainOnEachDevice(
    const Network& network, const std::shared_ptr<const BatchSource>& source = nullptr) {
  std::vector<DeviceRun> runs;
  for (const PipelineDevice& device : PipelineDevices()) {
    HarnessOptions options{.source = source};
    options.make_backend = device.variants.front();
    runs.push_back({device.name, TrainThreeSteps(options, network)});
  }
  return runs;
}
inline double LossTolerance(const Network& network) {
  return network.precision == Precision::kBfloat16 ? 1e-2 : 1e-5;
}

// Each step's loss and gradient norm beside those of the reference device, whatever the threads.
inline void ExpectTheReferencesLosses(const Network& network,
                                      const std::shared_ptr<const BatchSource>& source = nullptr) {
  const double tolerance = LossTolerance(network);
  const std::vector<DeviceRun> runs = TrainOnEachDevice(network, source);
  const HarnessResult& reference = runs.front().result;
  for (const auto& [name, result] : runs) {
    for (size_t step = 0; step < reference.losses.size(); ++step) {
      const double loss = reference.losses[step], norm = reference.squared_norms[step];
      EXPECT_NEAR(result.losses[step], loss, tolerance * loss) << name;
      EXPECT_NEAR(result.squared_norms[step], norm, 10 * tolerance * norm) << name;
    }
  }
}

// Of the first step alone, where both devices have the same weights; a gradient that rounding gave
// to another number is in the norm.
inline void ExpectTheReferencesFirstStep(const Network& network) {
  const std::vector<DeviceRun> runs = TrainOnEachDevice(network);
  const HarnessResult& reference = runs.front().result;
  const double loss = reference.losses[0], norm = reference.squared_norms[0];
  const double of_norm = network.precision == Precision::kBfloat16 ? 0.2 : 1e-2;
  for (const auto& [name, result] : runs) {
    EXPECT_NEAR(result.losses[0], loss, LossTolerance(network) * loss) << name;
    EXPECT_NEAR(result.squared_norms[0], norm, of_norm * norm) << name;
  }
}

}  // namespace stagecoach

#endif  // STAGECOACH_TESTS_TRANSPARENCY_EVERY_PIPELINE_H_
