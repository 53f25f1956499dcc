// The reader of data.image_folder (plan/data/image_folder.h). Files are opened when their picture is needed.
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/utf8.h"
#include "plan/data/image_folder.h"
#include "stage/data/bad_records.h"
#include "stage/data/class_folders.h"
#include "stage/data/classes_text.h"
#include "stage/data/open_source.h"
#include "stage/data/picture_source.h"
#include "stage/pictures/decode.h"

namespace stagecoach {
namespace {

class FolderPictures final : public PictureSet {
 public:
  explicit FolderPictures(ClassFolders folders) : folders_(std::move(folders)) {}
  int64_t count() const override { return static_cast<int64_t>(folders_.entries().size()); }
  int32_t label(int64_t i) const override {
    return folders_.entries()[static_cast<size_t>(i)].label;
  }
  absl::StatusOr<Picture> Read(int64_t i, int64_t channels) const override {
    ASSIGN_OR_RETURN(const std::vector<uint8_t> file, folders_.Read(i));
    return Annotate(DecodePicture(file, channels), folders_.Where(i));
  }

 private:
  const ClassFolders folders_;
};

absl::Status CheckClasses(const ClassFolders& folders, const JobSpec& spec,
                          const Network& network) {
  const WireId labels = network.InputNamed(kPictureLabels);
  const auto there = static_cast<int64_t>(folders.classes().size());
  if (!labels.valid() || there <= network.input(labels).classes) return absl::OkStatus();
  const int64_t classes = network.input(labels).classes;
  return absl::InvalidArgumentError(
      absl::StrCat(folders.Where(), ": ", there, " folders, the class of \"",
                   ShownName(folders.classes()[static_cast<size_t>(classes)]), "\", ", classes,
                   ", is not below ", ClassesText(spec, classes), "; give a network of ", there,
                   " classes, or fewer folders"));
}

absl::Status CheckSameClasses(const ClassFolders& train, const ClassFolders& test) {
  for (size_t i = 0; i < std::max(train.classes().size(), test.classes().size()); ++i) {
    const auto name = [i](const ClassFolders& folders) {
      return i < folders.classes().size()
                 ? absl::StrCat("\"", ShownName(folders.classes()[i]), "\"")
                 : "none";
    };
    if (name(train) == name(test)) continue;
    return absl::InvalidArgumentError(absl::StrCat(test.Where(), ": class ", i, " is ", name(test),
                                                   ", in ", train.Where(), " it is ", name(train),
                                                   "; give folders with the same classes"));
  }
  return absl::OkStatus();
}

// Lists the folders of a job, one after the other, and sums up what identifies them.
class FolderReader {
 public:
  explicit FolderReader(const ImageFolderData& data) : data_(data) {}

  absl::StatusOr<std::shared_ptr<const PictureSet>> Open(ClassFolders folders) {
    digest_.Update(absl::StrCat(folders.entries().size(), "\n"));
    folders.Sum(&digest_, &bytes_);
    auto set = std::make_shared<const FolderPictures>(std::move(folders));
    if (data_.on_bad_record == OnBadRecord::kFail) return set;
    return WithoutBadRecords(std::move(set), data_.pictures.decode_threads, &digest_, &bad_);
  }

  PictureSourceParts Parts(PictureSplits splits) {
    return {.splits = std::move(splits),
            .manifest = {.bytes = bytes_, .sha256 = digest_.Hex()},
            .note = bad_.Text(),
            .bad_records = bad_.count};
  }

 private:
  const ImageFolderData& data_;
  Sha256 digest_;
  int64_t bytes_ = 0;
  BadRecords bad_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> OpenImageFolderSource(
    const JobSpec& spec, const Network& network, std::span<const std::string> reads) {
  const auto data = spec.data.As<ImageFolderData>();
  FolderReader reader(data);
  ASSIGN_OR_RETURN(ClassFolders folders, ClassFolders::List("data.image_folder.train", data.train));
  RETURN_IF_ERROR(CheckClasses(folders, spec, network));
  std::shared_ptr<const PictureSet> train, test;
  if (!data.test.empty()) {
    ASSIGN_OR_RETURN(ClassFolders test_folders,
                     ClassFolders::List("data.image_folder.test", data.test));
    RETURN_IF_ERROR(CheckSameClasses(folders, test_folders));
    ASSIGN_OR_RETURN(train, reader.Open(std::move(folders)));
    ASSIGN_OR_RETURN(test, reader.Open(std::move(test_folders)));
  } else {
    ASSIGN_OR_RETURN(train, reader.Open(std::move(folders)));
  }
  return MakePictureSource(spec, network, data.pictures, reads,
                           reader.Parts(SplitPictures(std::move(train), std::move(test))));
}

}  // namespace stagecoach
