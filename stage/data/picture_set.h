// PictureSet: pictures with a label each, by their place. A kind of data gives a PictureSet; the
// rest is PictureSource's.
// Ownership: a set owns its source.  Threads: const, any thread.
// Errors:    Read: the record's, naming field, file, offset and reason.
#ifndef STAGECOACH_STAGE_DATA_PICTURE_SET_H_
#define STAGECOACH_STAGE_DATA_PICTURE_SET_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "stage/pictures/picture.h"

namespace stagecoach {

class PictureSet {
 public:
  virtual ~PictureSet() = default;
  virtual int64_t count() const = 0;
  virtual int32_t label(int64_t i) const = 0;
  // The factor of its loss.
  virtual float weight(int64_t) const { return 1; }
  // channels: 1 or 3, or the number that all pictures of the set have.
  virtual absl::StatusOr<Picture> Read(int64_t i, int64_t channels) const = 0;
  // If pictures have masks: a mask as large as the picture, one id a pixel.
  virtual absl::StatusOr<Picture> ReadMask(int64_t i) const {
    return absl::UnimplementedError(absl::StrCat("picture ", i, " has no mask"));
  }
  // Whether all of the record can be read.
  virtual absl::Status Check(int64_t i) const { return Read(i, 3).status(); }
};

// Some pictures of a set.
class ChosenPictures final : public PictureSet {
 public:
  ChosenPictures(std::shared_ptr<const PictureSet> all, std::vector<int64_t> places)
      : all_(std::move(all)), places_(std::move(places)) {}
  int64_t count() const override { return static_cast<int64_t>(places_.size()); }
  int32_t label(int64_t i) const override { return all_->label(At(i)); }
  float weight(int64_t i) const override { return all_->weight(At(i)); }
  absl::StatusOr<Picture> Read(int64_t i, int64_t channels) const override {
    return all_->Read(At(i), channels);
  }
  absl::StatusOr<Picture> ReadMask(int64_t i) const override { return all_->ReadMask(At(i)); }
  absl::Status Check(int64_t i) const override { return all_->Check(At(i)); }

 private:
  int64_t At(int64_t i) const { return places_[static_cast<size_t>(i)]; }

  const std::shared_ptr<const PictureSet> all_;
  const std::vector<int64_t> places_;
};

struct PictureSplits {
  std::shared_ptr<const PictureSet> train, evaluation;
};

// test: null if there is none; then every tenth picture is held out, the tenth first.
inline PictureSplits SplitPictures(std::shared_ptr<const PictureSet> all,
                                   std::shared_ptr<const PictureSet> test) {
  if (test != nullptr) return {.train = std::move(all), .evaluation = std::move(test)};
  std::vector<int64_t> train, evaluation;
  for (int64_t i = 0; i < all->count(); ++i) (i % 10 == 9 ? evaluation : train).push_back(i);
  return {.train = std::make_shared<ChosenPictures>(all, std::move(train)),
          .evaluation = std::make_shared<ChosenPictures>(all, std::move(evaluation))};
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_PICTURE_SET_H_
