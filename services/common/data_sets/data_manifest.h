// CheckedManifest: what a data set holds, after all that can be wrong with a manifest was looked for.
// Ownership: owns the manifest; entries are valid as long as it is.
// Threads:   immutable.
// Units:     bytes.
// Errors:    Parse: INVALID_ARGUMENT naming the path or part and what is wrong.
// See:       proto/stagecoach/v1/data_sets.proto.
#ifndef STAGECOACH_SERVICES_COMMON_DATA_SETS_DATA_MANIFEST_H_
#define STAGECOACH_SERVICES_COMMON_DATA_SETS_DATA_MANIFEST_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "stagecoach/v1/data_sets.pb.h"

namespace stagecoach {

// Object of a data set's folder that holds the manifest.
inline constexpr char kDataManifestObject[] = "manifest";
inline constexpr size_t kMostManifestBytes = size_t{256} << 20;

class CheckedManifest {
 public:
  static absl::StatusOr<CheckedManifest> Parse(std::string_view bytes);

  const v1::DataManifest& manifest() const { return manifest_; }
  int64_t bytes() const { return bytes_; }  // of all files
  // "s3://BUCKET/FOLDER" in which all parts lie, or the only one. Empty: they were uploaded.
  const std::string& source() const { return source_; }
  // Null: there is no such file.
  const v1::DataSetFile* Find(std::string_view path) const;

  struct Entry {
    std::string name;
    bool folder = false;
    int64_t bytes = 0;  // a file's
  };
  // What lies in a folder ("": the root), by name, as bytes. Empty: there is no such folder.
  std::vector<Entry> List(std::string_view folder) const;

 private:
  absl::Status Check();
  v1::DataManifest manifest_;
  int64_t bytes_ = 0;
  std::string source_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_DATA_SETS_DATA_MANIFEST_H_
