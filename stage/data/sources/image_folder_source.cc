// The reader of data.image_folder (plan/data/image_folder.h). Files are opened when their picture
// is needed.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "plan/data/image_folder.h"
#include "stage/data/formats/class_folders.h"
#include "stage/data/formats/classes_text.h"
#include "stage/data/listed_pictures.h"
#include "stage/data/open_source.h"
#include "stage/data/picture_source.h"

namespace stagecoach {
namespace {

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

std::vector<std::string> ClassNames(const ClassFolders& folders) {
  std::vector<std::string> names;
  size_t bytes = 0;
  for (const std::string& name : folders.classes()) {
    names.push_back(ShownName(name));
    bytes += names.back().size();
  }
  if (bytes > kMostClassNameBytes) names.clear();
  return names;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> ImageFolderDataSource(
    const JobSpec& spec, const Network& network, std::span<const std::string> reads,
    const DataRoots& roots, SourceLook look) {
  const auto data = spec.data.As<ImageFolderData>();
  PictureLists lists(data.on_bad_record, data.pictures, look);
  ASSIGN_OR_RETURN(ClassFolders folders,
                   ClassFolders::List(roots, "data.image_folder.train", data.train));
  RETURN_IF_ERROR(CheckClasses(folders, spec, network));
  std::vector<std::string> class_names = ClassNames(folders);
  std::shared_ptr<const PictureSet> train, test;
  if (!data.test.empty()) {
    ASSIGN_OR_RETURN(ClassFolders test_folders,
                     ClassFolders::List(roots, "data.image_folder.test", data.test));
    RETURN_IF_ERROR(CheckSameClasses(folders, test_folders));
    // Evaluations of some mini-batches and the pictures that are shown are those of the beginning.
    test_folders.TakeClassesInTurn();
    ASSIGN_OR_RETURN(train, lists.Add(std::move(folders)));
    ASSIGN_OR_RETURN(test, lists.Add(std::move(test_folders)));
  } else {
    ASSIGN_OR_RETURN(train, lists.Add(std::move(folders)));
  }
  PictureSourceParts parts = lists.Parts(SplitPictures(std::move(train), std::move(test)));
  parts.facts.classes = std::move(class_names);
  return MakePictureSource(spec, network, data.pictures, reads, std::move(parts));
}

}  // namespace stagecoach
