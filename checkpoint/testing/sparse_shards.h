// Weights of any size for tests: shards of zeros and their index, as Hugging Face lays them out. The
// files are sparse: they have their size, and take a few KiB of the disk for each shard's header.
// Threads: pure functions of the folder.
#ifndef STAGECOACH_CHECKPOINT_TESTING_SPARSE_SHARDS_H_
#define STAGECOACH_CHECKPOINT_TESTING_SPARSE_SHARDS_H_

#include <compare>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/numbers/dtype.h"
#include "base/numbers/shape.h"
#include "base/testing/temporary_folder.h"
#include "checkpoint/weight_index.h"

namespace stagecoach {

// Bytes [begin, end) of a file.
struct FileRange {
  int64_t begin = 0, end = 0;
  int64_t bytes() const { return end - begin; }
  friend auto operator<=>(const FileRange&, const FileRange&) = default;
  friend void PrintTo(const FileRange& range, std::ostream* out) {
    *out << "[" << range.begin << ", " << range.end << ")";
  }
};

struct SparseShards {
  std::map<std::string, std::pair<std::string, FileRange>> tensors;  // by name: path and place
  std::map<std::string, int64_t> headers;                            // by path: bytes of the header
  int64_t bytes() const {
    int64_t sum = 0;
    for (const auto& [name, place] : tensors) sum += place.second.bytes();
    return sum;
  }
};

// Every shard gets as many of the tensors, in their order. There are no fewer of them than shards.
inline SparseShards WriteSparseShards(const TemporaryFolder& folder, DType dtype,
                                      const std::vector<std::pair<std::string, Shape>>& tensors,
                                      size_t shards) {
  SparseShards written;
  WeightIndex index;
  for (size_t shard = 0; shard < shards; ++shard) {
    const std::string file =
        WeightShardFile(static_cast<int64_t>(shard), static_cast<int64_t>(shards));
    const std::string path = folder.File(file);
    const size_t first = tensors.size() * shard / shards,
                 last = tensors.size() * (shard + 1) / shards;
    std::vector<std::string> entries;
    int64_t end = 0;
    for (size_t i = first; i < last; ++i) {
      const auto& [name, shape] = tensors[i];
      const int64_t begin = end;
      end += shape.elements() * DTypeSize(dtype);
      entries.push_back(absl::StrCat("\"", name, "\":{\"dtype\":\"", DTypeName(dtype),
                                     "\",\"shape\":[", absl::StrJoin(shape.extents(), ","),
                                     "],\"data_offsets\":[", begin, ",", end, "]}"));
      written.tensors[name] = {path, {begin, end}};
      index.files[name] = file;
    }
    const std::string header = absl::StrCat("{", absl::StrJoin(entries, ","), "}");
    std::string text(sizeof(uint64_t), '\0');
    const uint64_t size = header.size();
    std::memcpy(text.data(), &size, sizeof(size));
    folder.Write(file, text + header);
    const auto data = static_cast<int64_t>(text.size() + header.size());
    std::filesystem::resize_file(path, static_cast<uintmax_t>(data + end));
    written.headers[path] = data;
    for (size_t i = first; i < last; ++i) {
      FileRange& range = written.tensors[tensors[i].first].second;
      range = {range.begin + data, range.end + data};
    }
    index.total_bytes += end;
  }
  folder.Write(kWeightIndexFile, FormatWeightIndex(index));
  return written;
}

}  // namespace stagecoach

#endif  // STAGECOACH_CHECKPOINT_TESTING_SPARSE_SHARDS_H_
