// Helpers of sources that list their pictures in folders: a PictureSet over a list, and the totals
// of all lists of a job. A list has count(), label(i), Read(i, most) for the bytes of a file,
// Where(i) and Where() for errors, left_out(), and Sum for the digest.
// Errors: as the list's Read says, and DecodePicture's with the place.
#ifndef STAGECOACH_STAGE_DATA_LISTED_PICTURES_H_
#define STAGECOACH_STAGE_DATA_LISTED_PICTURES_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "stage/data/bad_records.h"
#include "stage/data/open_source.h"
#include "stage/data/picture_source.h"
#include "stage/pictures/decode.h"
#include "stage/pictures/orientation.h"

namespace stagecoach {

// Upper bounds: pictures of a list whose EXIF is read, and bytes of each.
inline constexpr int64_t kMostLookedAt = 100, kExifHeadBytes = int64_t{128} << 10;

template <typename List>
class ListedPictures final : public PictureSet {
 public:
  // upright: turned as their EXIF says.
  ListedPictures(List list, bool upright) : list_(std::move(list)), upright_(upright) {}
  int64_t count() const override { return list_.count(); }
  int32_t label(int64_t i) const override { return list_.label(i); }
  absl::StatusOr<Picture> Read(int64_t i, int64_t channels) const override {
    ASSIGN_OR_RETURN(const std::vector<uint8_t> file, list_.Read(i));
    return Annotate(upright_ ? DecodeUpright(file, channels) : DecodePicture(file, channels),
                    list_.Where(i));
  }

 private:
  const List list_;
  const bool upright_;
};

// The lists of a job, added one after the other.
class PictureLists {
 public:
  PictureLists(OnBadRecord on_bad_record, const PictureFields& fields, SourceLook look)
      : skips_(on_bad_record == OnBadRecord::kSkip),
        look_(look),
        threads_(fields.decode_threads),
        upright_(fields.exif_orientation) {}

  bool skips() const { return skips_; }
  // For a record that is bad when it is listed: leaves it out, or returns the error.
  absl::Status Bad(const absl::Status& reason) {
    if (!skips_) return reason;
    bad_.Add(reason);
    return absl::OkStatus();
  }
  template <typename List>
  absl::StatusOr<std::shared_ptr<const PictureSet>> Add(List list) {
    Sum(list);
    NoteLeftOut(list);
    NoteTurned(list);
    return AddSet(std::make_shared<const ListedPictures<List>>(std::move(list), upright_));
  }
  template <typename List>
  void Sum(const List& list) {
    digest_.Update(absl::StrCat(list.count(), "\n"));
    list.Sum(&digest_, &bytes_);
  }
  // Notes the files of a folder that are no records.
  template <typename List>
  void NoteLeftOut(const List& list) {
    if (list.left_out().empty()) return;
    Note(absl::StrCat(list.Where(), ": left out: ", list.left_out().Text()));
  }
  // If the job does not turn pictures upright, notes the number of pictures that are turned.
  template <typename List>
  void NoteTurned(const List& list) {
    if (upright_) return;
    const int64_t looked_at = std::min(list.count(), kMostLookedAt);
    int64_t turned = 0;
    for (int64_t i = 0; i < looked_at; ++i) {
      const auto head = list.Read(i * list.count() / looked_at, kExifHeadBytes);
      turned += head.ok() && OrientationOf(*head) != 1 ? 1 : 0;
    }
    if (turned == 0) return;
    Note(absl::StrCat(list.Where(), ": ", turned, " of ", looked_at, " pictures",
                      looked_at < list.count() ? " looked at" : "",
                      " note in their EXIF that they were turned, and are read as stored; set "
                      "exif_orientation: true to turn them upright"));
  }
  // Adds a note about the data for the user.
  void Note(std::string note) { notes_.push_back(std::move(note)); }
  // Adds a set of lists that are in the digest already.
  absl::StatusOr<std::shared_ptr<const PictureSet>> AddSet(std::shared_ptr<const PictureSet> set) {
    if (!skips_ || look_ == SourceLook::kSurvey) return set;
    return WithoutBadRecords(std::move(set), threads_, &digest_, &bad_);
  }
  // For a file of many pictures that is read as a whole. The digest gets its size, eight bytes, the
  // lowest first, and then its content.
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
            .notes = Notes(),
            .first_bad = bad_.reasons.empty() ? "" : bad_.reasons.front(),
            .bad_records = bad_.count,
            .skips_bad_records = skips_};
  }

 private:
  std::vector<std::string> Notes() const {
    std::vector<std::string> notes = notes_;
    if (bad_.count > 0) notes.push_back(bad_.Text());
    return notes;
  }

  const bool skips_;
  const SourceLook look_;
  const int64_t threads_;
  const bool upright_;
  std::vector<std::string> notes_;
  Sha256 digest_;
  int64_t bytes_ = 0;
  BadRecords bad_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_LISTED_PICTURES_H_
