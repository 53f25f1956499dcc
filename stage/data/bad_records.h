// WithoutBadRecords: the setting "on_bad_record: skip". Every stage decodes all pictures once when
// it loads, also a stage that reads labels alone. So all leave out the same ones. Epochs are
// permutations of the pictures that are left.
// Threads: blocks and ticks; uses `threads` more threads.
#ifndef STAGECOACH_STAGE_DATA_BAD_RECORDS_H_
#define STAGECOACH_STAGE_DATA_BAD_RECORDS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files/hash.h"
#include "stage/data/picture_set.h"

namespace stagecoach {

struct BadRecords {
  int64_t count = 0;
  std::vector<std::string> reasons;  // the first kMostBadReasons, in order
  void Add(const absl::Status& reason);
  // "2 bad records left out: ...; ..."; empty if there are none.
  std::string Text() const;
};
inline constexpr size_t kMostBadReasons = 5;

// Adds to `bad`, and adds the places that are left out to the digest. If a file is gone, or this
// machine cannot read it now, the record is not bad. That is an error, as other stages may read the
// file.
absl::StatusOr<std::shared_ptr<const PictureSet>> WithoutBadRecords(
    std::shared_ptr<const PictureSet> all, int64_t threads, Sha256* digest, BadRecords* bad);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_BAD_RECORDS_H_
