// A file of weights, its header alone, or the index of a folder of such files: what is taken tiles
// the file, can be read, and is written anew the same.
#include <vector>

#include "checkpoint/names.h"
#include "checkpoint/safetensors/safetensors.h"
#include "checkpoint/safetensors/safetensors_header.h"
#include "checkpoint/testing/fault_file_system.h"
#include "checkpoint/weight_index.h"
#include "tests/fuzz/fuzz_target.h"

namespace stagecoach {
namespace {

void CheckTiles(const std::vector<TensorEntry>& tensors, int64_t bytes) {
  int64_t end = 0;
  for (const TensorEntry& tensor : tensors) {
    CHECK_EQ(tensor.begin, end) << "no gap";
    CHECK_LE(tensor.begin, tensor.end);
    CHECK_EQ(TensorBytes(tensor.dtype, tensor.shape).value(), tensor.bytes());
    CHECK_OK(CheckTensorName(tensor.name));
    end = tensor.end;
  }
  CHECK_EQ(end, bytes);
}

void ReadHeader(const std::string& header, int64_t bytes) {
  std::vector<TensorEntry> tensors;
  Metadata metadata;
  const absl::Status status = ParseSafetensorsHeader(header, bytes, &tensors, &metadata);
  if (!status.ok()) return CheckShown(status);
  CheckTiles(tensors, bytes);
  const absl::StatusOr<std::string> written = FormatSafetensorsHeader(tensors, metadata);
  if (!written.ok()) return;  // more than a writer gives away
  std::vector<TensorEntry> again;
  Metadata same;
  CHECK_OK(ParseSafetensorsHeader(*written, bytes, &again, &same));
  CHECK(again == tensors && same == metadata) << *written;
}

void ReadFile(const std::string& bytes) {
  FaultFileSystem files;
  {
    auto file = files.Create("/a.safetensors").value();
    CHECK_OK(file->Append(std::as_bytes(std::span(bytes.data(), bytes.size()))));
    CHECK_OK(file->Close());
  }
  absl::StatusOr<SafetensorsReader> reader = SafetensorsReader::Open(files, "/a.safetensors");
  if (!reader.ok()) return CheckShown(reader.status());
  for (const TensorEntry& tensor : reader->tensors()) {
    std::vector<std::byte> target(static_cast<size_t>(tensor.bytes()));
    CHECK_OK(reader->Read(tensor, target));
    CHECK(reader->Find(tensor.name) != nullptr && *reader->Find(tensor.name) == tensor)
        << tensor.name;
  }
}

void ReadIndex(const std::string& text) {
  const absl::StatusOr<WeightIndex> index = ParseWeightIndex(text);
  if (!index.ok()) return CheckShown(index.status());
  for (const auto& [tensor, file] : index->files) {
    CHECK_OK(CheckTensorName(tensor));
    CHECK_OK(CheckShardFile(file));
  }
  CHECK(ParseWeightIndex(FormatWeightIndex(*index)).value().files == index->files) << text;
}

}  // namespace

// The first byte says which of the three.
void FuzzSafetensors(FuzzInput input) {
  const int kind = input.Byte() % 3;
  if (kind == 0) return ReadFile(input.Rest());
  if (kind == 2) return ReadIndex(input.Rest());
  const int64_t bytes = static_cast<int64_t>(input.Number(2));
  ReadHeader(input.Rest(), bytes);
}

}  // namespace stagecoach

FUZZ_TARGET(safetensors, FuzzSafetensors)
