// What sources that list their pictures in folders share: a PictureSet over a list, and what all lists of a job come to.
// A list has count(), label(i), Read(i), the bytes of a file, Where(i) for errors, and Sum, what identifies it.
// Errors: as the list's Read says, and DecodePicture's with the place.
#ifndef STAGECOACH_STAGE_DATA_LISTED_PICTURES_H_
#define STAGECOACH_STAGE_DATA_LISTED_PICTURES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/status.h"
#include "stage/data/bad_records.h"
#include "stage/data/picture_source.h"
#include "stage/pictures/decode.h"

namespace stagecoach {

template <typename List>
class ListedPictures final : public PictureSet {
 public:
  explicit ListedPictures(List list) : list_(std::move(list)) {}
  int64_t count() const override { return list_.count(); }
  int32_t label(int64_t i) const override { return list_.label(i); }
  absl::StatusOr<Picture> Read(int64_t i, int64_t channels) const override {
    ASSIGN_OR_RETURN(const std::vector<uint8_t> file, list_.Read(i));
    return Annotate(DecodePicture(file, channels), list_.Where(i));
  }

 private:
  const List list_;
};

// The lists of a job, added one after the other.
class PictureLists {
 public:
  PictureLists(OnBadRecord on_bad_record, int64_t threads)
      : skips_(on_bad_record == OnBadRecord::kSkip), threads_(threads) {}

  // Of a record that is bad already when it is listed: leaves it out, or is not ok.
  absl::Status Bad(const absl::Status& reason) {
    if (!skips_) return reason;
    bad_.Add(reason);
    return absl::OkStatus();
  }
  template <typename List>
  absl::StatusOr<std::shared_ptr<const PictureSet>> Add(List list) {
    Sum(list);
    return AddSet(std::make_shared<const ListedPictures<List>>(std::move(list)));
  }
  template <typename List>
  void Sum(const List& list) {
    digest_.Update(absl::StrCat(list.count(), "\n"));
    list.Sum(&digest_, &bytes_);
  }
  // Of lists that were summed.
  absl::StatusOr<std::shared_ptr<const PictureSet>> AddSet(std::shared_ptr<const PictureSet> set) {
    if (!skips_) return set;
    return WithoutBadRecords(std::move(set), threads_, &digest_, &bad_);
  }
  // Of a file of many pictures that is read as a whole: its size, eight bytes, the lowest first, and then its content.
  void SumFileSize(int64_t size) {
    std::array<std::byte, 8> text;
    for (size_t i = 0; i < text.size(); ++i) text[i] = std::byte(size >> (8 * i) & 0xff);
    digest_.Update(text);
    bytes_ += size;
  }
  void SumContent(std::span<const std::byte> piece) { digest_.Update(piece); }
  PictureSourceParts Parts(PictureSplits splits) {
    return {.splits = std::move(splits),
            .manifest = {.bytes = bytes_, .sha256 = digest_.Hex()},
            .note = bad_.Text(),
            .bad_records = bad_.count};
  }

 private:
  const bool skips_;
  const int64_t threads_;
  Sha256 digest_;
  int64_t bytes_ = 0;
  BadRecords bad_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_LISTED_PICTURES_H_
