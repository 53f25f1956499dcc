// PictureSource: the BatchSource of pictures, from any set: order, augmentation, numbers, reading
// ahead.
// Ownership: the source owns its sets and its threads.
// Threads:   executor thread; it has decode_threads of its own (stage/data/read_ahead.h).
// Errors:    MakePictureSource: INVALID_ARGUMENT if there is nothing to train on or to evaluate
//            with, or if a label is no class. For pictures that are measured, also their set's
//            errors. Train and Evaluation: as their set says.
#ifndef STAGECOACH_STAGE_DATA_PICTURE_SOURCE_H_
#define STAGECOACH_STAGE_DATA_PICTURE_SOURCE_H_

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/data/picture_checks.h"
#include "stage/data/batch_source.h"
#include "stage/data/picture_set.h"

namespace stagecoach {

// The inputs that sources of pictures give.
inline constexpr char kPictureImages[] = "images", kPictureLabels[] = "labels",
                      kPictureMasks[] = "masks", kPictureWeights[] = "weights";

bool ReadsImages(std::span<const std::string> reads);

struct PictureSourceParts {
  PictureSplits splits;
  DatasetManifest manifest;        // bytes and digest; the numbers of samples are filled in
  std::vector<std::string> notes;  // what the kind has to say
  DataFacts facts;                 // of the kind; what is measured is filled in
  std::string first_bad;           // why, of the first bad record
  int64_t bad_records = 0;
  bool skips_bad_records = false;
  uint8_t mask_border = 0;  // what masks are beyond the border of a picture
};

// reads: as of OpenSource. Mean and deviation are measured where they are asked for and images are
// read.
absl::StatusOr<std::unique_ptr<BatchSource>> MakePictureSource(const JobSpec& spec,
                                                               const Network& network,
                                                               const PictureFields& fields,
                                                               std::span<const std::string> reads,
                                                               PictureSourceParts parts);

// Does `work` for 0 to count - 1 on `threads` threads and this one, and ticks meanwhile. Returns
// the error with the lowest i. After an error no higher i is begun.
absl::Status ForEachPicture(int64_t threads, int64_t count,
                            const std::function<absl::Status(int64_t i)>& work);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_PICTURE_SOURCE_H_
