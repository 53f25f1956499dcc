// TestSet: a few small files as a data set, each a part of its own.
#ifndef STAGECOACH_SERVICES_COORDINATOR_DATA_DATA_SET_TESTING_H_
#define STAGECOACH_SERVICES_COORDINATOR_DATA_DATA_SET_TESTING_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/files/hash.h"
#include "stagecoach/v1/data_sets.pb.h"

namespace stagecoach {

struct TestSet {
  std::map<std::string, std::string> parts;  // by digest, the manifest among them
  std::string manifest_sha256;

  std::vector<v1::DataPart> Listed() const {
    std::vector<v1::DataPart> list;
    for (const auto& [digest, bytes] : parts) {
      v1::DataPart& part = list.emplace_back();
      part.set_sha256(digest);
      part.set_bytes(static_cast<int64_t>(bytes.size()));
    }
    return list;
  }
};

// files: texts by path.
inline TestSet SetOf(const std::map<std::string, std::string>& files) {
  TestSet set;
  v1::DataManifest manifest;
  std::map<std::string, int64_t> index;
  for (const auto& [path, text] : files) {
    v1::DataSetFile& file = *manifest.add_files();
    file.set_path(path);
    file.set_bytes(static_cast<int64_t>(text.size()));
    if (text.empty()) continue;
    const std::string digest = Sha256Hex(text);
    const auto [part, added] = index.emplace(digest, manifest.parts_size());
    if (added) {
      v1::DataPart& made = *manifest.add_parts();
      made.set_sha256(digest);
      made.set_bytes(file.bytes());
      set.parts[digest] = text;
    }
    file.set_part(part->second);
  }
  const std::string bytes = manifest.SerializeAsString();
  set.manifest_sha256 = Sha256Hex(bytes);
  set.parts[set.manifest_sha256] = bytes;
  return set;
}

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_DATA_DATA_SET_TESTING_H_
