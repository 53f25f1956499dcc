// ShardList: the pictures with labels in the tar files of a folder, by their places.
// Ownership: owns the list; borrows the roots.
// Threads:   Read from any thread.
// Errors:    List: those of the folder and its files (stage/data/formats/data_file.h), and
//            INVALID_ARGUMENT if there is no tar file, or a packed one. Errors of a record, or of
//            the rest of a shard, go to `bad`, which decides whether List goes on.
#ifndef STAGECOACH_STAGE_DATA_FORMATS_SHARD_LIST_H_
#define STAGECOACH_STAGE_DATA_FORMATS_SHARD_LIST_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files/hash.h"
#include "stage/data/formats/class_folders.h"
#include "stage/data/formats/data_file.h"
#include "stage/data/formats/left_out.h"

namespace stagecoach {

struct TarMember;

class ShardList {
 public:
  // Not ok: List fails with it.
  using OnBad = std::function<absl::Status(const absl::Status& reason)>;
  // field: "data.webdataset.train". Labels must be in [0, classes).
  static absl::StatusOr<ShardList> List(const DataRoots& roots, const std::string& field,
                                        const std::string& folder, int64_t classes,
                                        const OnBad& bad);

  int64_t count() const { return static_cast<int64_t>(records_.size()); }
  int32_t label(int64_t i) const { return records_[static_cast<size_t>(i)].label; }
  // The first `most` bytes, if there are more.
  absl::StatusOr<std::vector<uint8_t>> Read(int64_t i, int64_t most = kMostPictureBytes) const;
  // "data.webdataset.train = "/a/0.tar", offset 1024"
  std::string Where(int64_t i) const;
  std::string Where() const;
  // Files of the folder that are no shards, and members of shards that belong to no sample.
  const LeftOut& left_out() const { return left_out_; }
  // Adds names and sizes of the shards, and places and labels of the records.
  void Sum(Sha256* digest, int64_t* bytes) const;

 private:
  struct Record {
    int32_t shard = 0, label = 0;
    int64_t offset = 0, bytes = 0;  // of the picture's file
  };
  struct Sample;
  class Unfinished;
  absl::Status AddShard(const std::string& name, int64_t classes, const OnBad& bad);
  absl::Status AddMembers(const OpenedFile& file, int32_t shard, int64_t classes, const OnBad& bad);
  // Adds a member's label or picture to its sample.
  static absl::Status AddMember(const OpenedFile& file, const TarMember& member,
                                const std::string& extension, Sample* sample);
  absl::Status AddSample(const Sample& sample, int64_t classes, const OnBad& bad);

  absl::StatusOr<std::shared_ptr<const OpenedFile>> OpenShard(const std::string& name) const;

  const DataRoots* roots_ = nullptr;
  std::string field_, folder_;
  std::string real_folder_;  // without links
  std::vector<std::string> shards_;
  std::vector<int64_t> shard_bytes_;
  std::vector<std::shared_ptr<const OpenedFile>> opened_;  // the first kMostOpenShards
  std::vector<Record> records_;
  LeftOut left_out_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_FORMATS_SHARD_LIST_H_
