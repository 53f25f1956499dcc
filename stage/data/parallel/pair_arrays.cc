#include "stage/data/parallel/pair_arrays.h"

#include <algorithm>
#include <vector>

#include "base/errors/check.h"
#include "base/errors/status.h"

namespace stagecoach {
namespace {

// Writes the values behind each other, and pads them to `length`.
class RowWriter {
 public:
  RowWriter(int64_t samples, int32_t length, int32_t pad)
      : ids_(static_cast<size_t>(samples * length), pad), length_(length) {}

  void Append(std::span<const int32_t> ids) {
    CHECK_LE(filled_ + std::ssize(ids), length_) << "a pair longer than its mini-batch";
    std::copy(ids.begin(), ids.end(), ids_.begin() + row_ * length_ + filled_);
    filled_ += std::ssize(ids);
  }
  void Append(int32_t id) { Append(std::span(&id, 1)); }
  void EndRow() {
    ++row_;
    filled_ = 0;
  }
  std::vector<std::byte> Bytes() const {
    const auto bytes = std::as_bytes(std::span(ids_));
    return {bytes.begin(), bytes.end()};
  }

 private:
  std::vector<int32_t> ids_;
  const int64_t length_;
  int64_t row_ = 0, filled_ = 0;
};

}  // namespace

PairArrays::PairArrays(const Network& network, const Tokenizer& tokenizer)
    : begin_(tokenizer.begin()),
      end_(tokenizer.end()),
      pad_(tokenizer.pad()),
      source_(SideOf(network, "source")),
      target_(SideOf(network, "tokens")) {}

PairArrays::Side PairArrays::SideOf(const Network& network, const char* input) const {
  const WireId wire = network.InputNamed(input);
  if (!wire.valid()) return {};
  const Extent extent = network.wire(wire).type.shape.extent(0);
  return {extent.length, static_cast<int32_t>(extent.size)};
}

PairLengths PairArrays::Bound(const PairLengths& lengths) const {
  return {source_.name == Length::kNone ? source_.extent : lengths.source,
          target_.name == Length::kNone ? target_.extent : lengths.target};
}

PaddingCount PairArrays::PaddingOf(const PairSet& pairs, std::span<const int32_t> samples,
                                   const PairLengths& lengths) const {
  const PairLengths bound = Bound(lengths);
  PaddingCount count{.positions = std::ssize(samples) * bound.tokens()};
  count.padded = count.positions;
  for (const int32_t sample : samples) {
    const PairLengths& pair = pairs.lengths()[static_cast<size_t>(sample)];
    // A network that reads no source has no positions of it.
    count.padded -= (bound.source > 0 ? pair.source : 0) + pair.target;
  }
  return count;
}

absl::StatusOr<HostBatch> PairArrays::Make(const PairSet& pairs, std::span<const int32_t> samples,
                                           const PairLengths& lengths,
                                           std::span<const std::string> names) const {
  const PairLengths bound = Bound(lengths);
  HostBatch batch{.samples = std::ssize(samples)};
  if (source_.name != Length::kNone) batch.lengths.Set(source_.name, bound.source);
  if (target_.name != Length::kNone) batch.lengths.Set(target_.name, bound.target);
  if (samples.empty()) return batch;
  if (batch.lengths != Lengths()) batch.padding = PaddingOf(pairs, samples, lengths);
  std::vector<std::vector<int32_t>> read;  // targets, which two inputs have
  for (const std::string& name : names) {
    const bool source = name == "source", tokens = name == "tokens", targets = name == "targets";
    CHECK(source || tokens || targets || name == "source_length") << "no input \"" << name << "\"";
    const int32_t length = source ? bound.source : tokens || targets ? bound.target : 1;
    RowWriter rows(batch.samples, length, pad_);
    if ((tokens || targets) && read.empty()) {
      for (const int32_t sample : samples) {
        ASSIGN_OR_RETURN(read.emplace_back(), pairs.ReadTarget(sample));
      }
    }
    for (size_t i = 0; i < samples.size(); ++i) {
      const int32_t sample = samples[i];
      if (tokens) rows.Append(begin_);
      if (source) {
        ASSIGN_OR_RETURN(const std::vector<int32_t> ids, pairs.ReadSource(sample));
        rows.Append(ids);
      } else if (tokens || targets) {
        rows.Append(read[i]);
      } else {
        rows.Append(pairs.lengths()[static_cast<size_t>(sample)].source);
      }
      if (targets) rows.Append(end_);
      rows.EndRow();
    }
    batch.arrays.push_back(rows.Bytes());
  }
  return batch;
}

}  // namespace stagecoach
