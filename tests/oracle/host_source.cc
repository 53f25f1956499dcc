#include "tests/oracle/host_source.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "checkpoint/files/file_system.h"
#include "checkpoint/safetensors/safetensors.h"

namespace stagecoach {
namespace {

absl::Status Wrong(const std::string& name, const TensorEntry& entry, const std::string& wanted) {
  return absl::InvalidArgumentError(absl::StrCat("input ", name, " is ", DTypeName(entry.dtype),
                                                 entry.shape.ToString(), ", must be ", wanted));
}

// [N, ...] with the extents of one sample behind N.
bool FitsSample(const Shape& shape, const Shape& sample) {
  if (shape.rank() != sample.rank() + 1) return false;
  for (int i = 0; i < sample.rank(); ++i) {
    if (shape[i + 1] != sample[i]) return false;
  }
  return shape[0] > 0;
}

std::vector<std::byte> Narrowed(const std::vector<std::byte>& wide) {
  std::vector<int64_t> from(wide.size() / sizeof(int64_t));
  std::memcpy(from.data(), wide.data(), wide.size());
  const std::vector<int32_t> to(from.begin(), from.end());
  const auto bytes = std::as_bytes(std::span(to));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

absl::StatusOr<std::shared_ptr<HostSource>> HostSource::Open(const std::string& path,
                                                             const Network& network,
                                                             int64_t micro_batches) {
  ASSIGN_OR_RETURN(SafetensorsReader file, SafetensorsReader::Open(*PosixFileSystem(), path));
  auto source = std::shared_ptr<HostSource>(new HostSource);
  source->micro_batches_ = micro_batches;
  for (size_t i = 0; i < network.inputs.size(); ++i) {
    const std::string& name = network.inputs[i].name;
    const ValueType& type = network.wires[i].type;
    const bool ids = type.element == Element::kIds;
    const TensorEntry* const entry = file.Find(name);
    if (entry == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": there is no input ", name));
    }
    const bool wide = entry->dtype == DType::kI64;
    const bool fits = ids ? wide || entry->dtype == DType::kI32 : entry->dtype == DType::kF32;
    if (!fits || !FitsSample(entry->shape, type.shape)) {
      return Wrong(name, *entry, absl::StrCat(ids ? "I32 or I64 " : "F32 ", FormatType(type)));
    }
    if (i > 0 && entry->shape[0] != source->samples_) {
      return Wrong(name, *entry, absl::StrCat("of ", source->samples_, " samples"));
    }
    source->samples_ = entry->shape[0];
    for (int k = 0; k < type.shape.rank(); ++k) {
      const auto [largest, length] = type.shape.extent(k);
      if (length != Length::kNone) source->lengths_.Set(length, largest);
    }
    std::vector<std::byte> bytes(static_cast<size_t>(entry->bytes()));
    RETURN_IF_ERROR(file.Read(*entry, bytes));
    source->arrays_[name] = ids && wide ? Narrowed(bytes) : std::move(bytes);
  }
  return source;
}

std::shared_ptr<HostSource> HostSource::Nothing() {
  return std::shared_ptr<HostSource>(new HostSource);
}

absl::StatusOr<HostBatch> HostSource::Train(uint64_t, MicroBatchId micro_batch,
                                            std::span<const std::string> names) const {
  const auto size = [this](int64_t i) { return MicroBatchSize(samples_, micro_batches_, i); };
  int64_t first = 0;
  for (int i = 0; i < micro_batch.value; ++i) first += size(i);
  HostBatch batch{.samples = size(micro_batch.value), .lengths = lengths_, .arrays = {}};
  for (const std::string& name : names) {
    const std::vector<std::byte>& whole = arrays_.at(name);
    const auto sample = static_cast<ptrdiff_t>(whole.size()) / samples_;
    const auto begin = whole.begin() + first * sample;
    batch.arrays.emplace_back(begin, begin + batch.samples * sample);
  }
  return batch;
}

}  // namespace stagecoach
