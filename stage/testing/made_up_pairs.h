// MadeUpPairs: pairs of sequences drawn from a seed, for networks that read "source"; the same
// pairs for every M. Each mini-batch may have lengths of its own. An input of one id a sample is the
// length of its source.
// Ownership, threads: as BatchSource.
#ifndef STAGECOACH_STAGE_TESTING_MADE_UP_PAIRS_H_
#define STAGECOACH_STAGE_TESTING_MADE_UP_PAIRS_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/errors/check.h"
#include "base/numbers/random.h"
#include "network/network.h"
#include "stage/data/batch_source.h"

namespace stagecoach {

class MadeUpPairs final : public BatchSource {
 public:
  struct Sizes {
    int64_t batch_size = 0, micro_batches = 0, evaluation_samples = 0;
    bool lengths_vary = false;  // else all mini-batches have the largest, or these
    Lengths lengths = {};
  };
  // With `padding`, ids of "source" from the sample's length on are that one, and targets from the
  // middle on are 0. Without, they are drawn as all others.
  MadeUpPairs(const Network& network, const Sizes& sizes, int32_t padding = -1)
      : sizes_(sizes), padding_(padding) {
    for (size_t i = 0; i < network.inputs.size(); ++i) {
      const ValueType& type = network.wires[i].type;
      CHECK(type.element == Element::kIds) << network.inputs[i].name;
      const bool length = type.shape.rank() == 0;
      inputs_.push_back({network.inputs[i].name, length ? Extent{1} : type.shape.extent(0), length,
                         network.inputs[i].classes});
    }
  }

  const DatasetManifest& manifest() const override { return manifest_; }
  absl::StatusOr<HostBatch> Train(uint64_t step, MicroBatchId micro_batch,
                                  std::span<const std::string> names) const override {
    return Draw(FirstOf(micro_batch), SizeOf(micro_batch),
                {.seed = 83, .step = static_cast<uint32_t>(step)}, names);
  }
  absl::StatusOr<HostBatch> Evaluation(uint64_t batch, MicroBatchId micro_batch,
                                       std::span<const std::string> names) const override {
    const int64_t first = static_cast<int64_t>(batch) * sizes_.batch_size + FirstOf(micro_batch);
    const int64_t left = std::max<int64_t>(sizes_.evaluation_samples - first, 0);
    return Draw(first, std::min(SizeOf(micro_batch), left), {.seed = 84}, names);
  }
  int64_t evaluation_batches() const override {
    return (sizes_.evaluation_samples + sizes_.batch_size - 1) / sizes_.batch_size;
  }

 private:
  struct Input {
    std::string name;
    Extent extent;  // of a sample
    bool length = false;
    int64_t classes = 0;
  };

  int64_t SizeOf(MicroBatchId id) const {
    return MicroBatchSize(sizes_.batch_size, sizes_.micro_batches, id.value);
  }
  int64_t FirstOf(MicroBatchId id) const {
    int64_t first = 0;
    for (int i = 0; i < id.value; ++i) first += SizeOf(MicroBatchId(i));
    return first;
  }

  // From half of the largest on.
  Lengths LengthsOf(RandomStream stream) const {
    Lengths lengths;
    for (const Input& input : inputs_) {
      if (input.extent.length == Length::kNone) continue;
      if (sizes_.lengths.of(input.extent.length) > 0) return sizes_.lengths;
      const int64_t least = sizes_.lengths_vary ? (input.extent.size + 1) / 2 : input.extent.size;
      stream.operation = 64 + static_cast<uint32_t>(input.extent.length);
      const auto bits = static_cast<int64_t>(RandomBits(stream, 0));
      lengths.Set(input.extent.length, least + bits % (input.extent.size - least + 1));
    }
    return lengths;
  }

  HostBatch Draw(int64_t first, int64_t samples, RandomStream stream,
                 std::span<const std::string> names) const {
    HostBatch batch{.samples = samples, .lengths = LengthsOf(stream), .arrays = {}};
    if (samples == 0) return batch;
    for (const std::string& name : names) {
      std::vector<int32_t> ids;
      for (int64_t sample = first; sample < first + samples; ++sample) {
        stream.micro_batch = static_cast<uint32_t>(sample);
        const Extent& extent = Named(name).extent;
        const int64_t bound = batch.lengths.of(extent.length);
        for (int64_t i = 0; i < (bound > 0 ? bound : extent.size); ++i) {
          ids.push_back(IdOf(name, i, batch.lengths, stream));
        }
      }
      const auto bytes = std::as_bytes(std::span(ids));
      batch.arrays.emplace_back(bytes.begin(), bytes.end());
    }
    return batch;
  }

  const Input& Named(const std::string& name) const {
    const auto found = std::find_if(inputs_.begin(), inputs_.end(),
                                    [&name](const Input& input) { return input.name == name; });
    CHECK(found != inputs_.end()) << name;
    return *found;
  }

  int32_t IdOf(const std::string& name, int64_t i, const Lengths& lengths,
               RandomStream stream) const {
    const Input& input = Named(name);
    if (padding_ >= 0) {
      if (name == "source" && i >= IdOf("source_length", 0, lengths, stream)) return padding_;
      if (name == "targets" && i >= input.extent.size / 2) return 0;
    }
    stream.operation = static_cast<uint32_t>(&input - inputs_.data());
    const auto bits = static_cast<int64_t>(RandomBits(stream, static_cast<uint64_t>(i)));
    const int64_t source = lengths.of(Length::kSource);
    const int64_t longest = source > 0 ? source : input.classes - 1;
    return static_cast<int32_t>(input.length ? 1 + bits % longest : bits % input.classes);
  }

  const Sizes sizes_;
  const int32_t padding_;
  std::vector<Input> inputs_;
  DatasetManifest manifest_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TESTING_MADE_UP_PAIRS_H_
