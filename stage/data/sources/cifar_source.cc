// The reader of data.cifar (plan/data/cifar.h). Labels are kept in memory, pixels are read when a
// picture's turn comes.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/errors/status.h"
#include "base/threads/progress.h"
#include "base/utf8.h"
#include "plan/data/cifar.h"
#include "stage/data/formats/classes_text.h"
#include "stage/data/formats/data_file.h"
#include "stage/data/formats/left_out.h"
#include "stage/data/listed_pictures.h"
#include "stage/data/open_source.h"
#include "stage/data/picture_source.h"
#include "stage/pictures/decode.h"

namespace stagecoach {
namespace {

constexpr char kField[] = "data.cifar.folder";
constexpr int64_t kMostNamesBytes = 16 << 10;
constexpr int64_t kSide = 32, kPlane = kSide * kSide, kPixelBytes = 3 * kPlane;

// What a folder has.
struct CifarFiles {
  const char* name = "CIFAR-10";
  std::vector<std::string> train;
  std::string test = "test_batch.bin", names = "batches.meta.txt";
  int64_t label_bytes = 1, label_at = 0;  // in front of the pixels, and which of them counts
  int64_t record() const { return label_bytes + kPixelBytes; }
};

// Records that stand one behind the other in a file.
struct CifarRun {
  int64_t first = 0;  // of them, by place among all of a split
  const OpenedFile* file = nullptr;
  int64_t offset = 0;
};

// Of a split: those that are not bad.
struct CifarRecords {
  std::vector<std::unique_ptr<const OpenedFile>> files;
  std::vector<uint8_t> labels;
  std::vector<CifarRun> runs;  // by first
};

class CifarPictures final : public PictureSet {
 public:
  CifarPictures(CifarRecords records, const CifarFiles& files)
      : records_(std::move(records)), record_(files.record()), pixels_at_(files.label_bytes) {}
  int64_t count() const override { return static_cast<int64_t>(records_.labels.size()); }
  int32_t label(int64_t i) const override { return records_.labels[static_cast<size_t>(i)]; }
  absl::StatusOr<Picture> Read(int64_t i, int64_t channels) const override {
    const auto behind =
        std::upper_bound(records_.runs.begin(), records_.runs.end(), i,
                         [](int64_t place, const CifarRun& run) { return place < run.first; });
    const CifarRun& run = *std::prev(behind);
    std::vector<uint8_t> planes(kPixelBytes);
    RETURN_IF_ERROR(run.file->ReadAt(run.offset + (i - run.first) * record_ + pixels_at_, planes));
    RETURN_IF_ERROR(run.file->CheckUnchanged());
    Picture picture(kSide, kSide, 3);
    for (int64_t at = 0; at < kPlane; ++at) {
      for (int64_t c = 0; c < 3; ++c) {
        picture.bytes[static_cast<size_t>(3 * at + c)] =
            planes[static_cast<size_t>(c * kPlane + at)];
      }
    }
    return WithChannels(std::move(picture), channels);
  }

 private:
  const CifarRecords records_;
  const int64_t record_, pixels_at_;
};

// The names in the folder.
absl::StatusOr<std::vector<std::string>> NamesIn(const DataRoots& roots, const CifarData& data) {
  const std::string where = absl::StrCat(kField, " = \"", ShownName(data.folder), "\"");
  ASSIGN_OR_RETURN(const DataRoots::Folder folder, Annotate(roots.ListFolder(data.folder), where));
  std::vector<std::string> names;
  for (const DataRoots::Entry& entry : folder.entries) names.push_back(entry.name);
  return names;
}

absl::StatusOr<CifarFiles> CifarFilesIn(const CifarData& data,
                                        const std::vector<std::string>& names) {
  CifarFiles files;
  bool hundred = false, pickles = false;
  for (const std::string& name : names) {
    hundred = hundred || name == "train.bin";
    pickles = pickles || name == "data_batch_1" || name == "meta";
    if (absl::StartsWith(name, "data_batch_") && absl::EndsWith(name, ".bin")) {
      files.train.push_back(name);
    }
  }
  const std::string where = absl::StrCat(kField, " = \"", data.folder, "\"");
  const bool coarse = data.labels == CifarLabels::kCoarse;
  if (hundred == !files.train.empty()) {
    const char* const has = hundred   ? ": has data_batch_*.bin and train.bin"
                            : pickles ? ": has the pickles of the Python version"
                                      : ": has no data_batch_*.bin and no train.bin";
    return absl::InvalidArgumentError(absl::StrCat(
        where, has, "; give the folder of CIFAR-10's binary version, or of CIFAR-100's"));
  }
  if (hundred) {
    return CifarFiles{.name = "CIFAR-100",
                      .train = {"train.bin"},
                      .test = "test.bin",
                      .names = coarse ? "coarse_label_names.txt" : "fine_label_names.txt",
                      .label_bytes = 2,
                      .label_at = coarse ? 0 : 1};
  }
  if (coarse) {
    return absl::InvalidArgumentError(
        absl::StrCat(where,
                     ": has data_batch_*.bin, so it is CIFAR-10 with one label each; leave out "
                     "data.cifar.labels = coarse, or "
                     "give the folder of CIFAR-100's binary version"));
  }
  return files;
}

// As the archive tells them, a line each; none where that file cannot be read, or is another one.
std::vector<std::string> CifarClassNames(const DataRoots& roots, const std::string& folder,
                                         const std::string& file_name) {
  const auto file =
      OpenedFile::Open(roots, kField, (std::filesystem::path(folder) / file_name).string());
  if (!file.ok() || (*file)->size() > kMostNamesBytes) return {};
  std::vector<uint8_t> bytes(static_cast<size_t>((*file)->size()));
  if (!(*file)->ReadAt(0, bytes).ok()) return {};
  const std::string text(bytes.begin(), bytes.end());
  std::vector<std::string> names;
  for (const absl::string_view name : absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    names.push_back(ShownName(std::string(absl::StripAsciiWhitespace(name))));
  }
  return names;
}

// Files that look like records and are not read: packed, half copied, of the other set, in
// capitals.
LeftOut OtherRecordsIn(const CifarFiles& files, const std::vector<std::string>& names) {
  LeftOut left_out;
  for (const std::string& name : names) {
    const std::string lower = absl::AsciiStrToLower(name);
    const bool is_read = name == files.test || absl::c_linear_search(files.train, name);
    const bool is_like = absl::StartsWith(lower, "data_batch") || absl::StartsWith(lower, "test") ||
                         absl::StartsWith(lower, "train") || absl::EndsWith(lower, ".bin");
    if (is_like && !is_read)
      left_out.Add(name, absl::StrCat("no name of ", files.name, "'s files"));
  }
  return left_out;
}

// Reads the files of a job, one after the other, and sums up what identifies them.
class CifarReader {
 public:
  CifarReader(const JobSpec& spec, const Network& network, CifarFiles files, const DataRoots& roots,
              SourceLook look)
      : spec_(spec),
        roots_(roots),
        folder_(spec.data.As<CifarData>().folder),
        files_(std::move(files)),
        lists_(spec.data.As<CifarData>().on_bad_record, {.decode_threads = 0}, look) {
    const WireId labels = network.InputNamed(kPictureLabels);
    if (labels.valid()) classes_ = network.input(labels).classes;
  }

  absl::Status Read(const std::string& name, CifarRecords* records) {
    ASSIGN_OR_RETURN(
        std::unique_ptr<OpenedFile> opened,
        OpenedFile::Open(roots_, kField, (std::filesystem::path(folder_) / name).string()));
    OpenedFile* const file = opened.get();
    records->files.push_back(std::move(opened));
    in_run_ = false;
    const int64_t record = files_.record();
    const std::string wanted = absl::StrCat("a file of ", files_.name, "'s binary version");
    // Whole records are taken for what their folder says.
    const std::string kind = file->size() % record == 0 ? "" : file->OtherKind(wanted);
    if (!kind.empty()) return absl::InvalidArgumentError(absl::StrCat(file->Where(), ": ", kind));
    lists_.SumFileSize(file->size());
    std::vector<uint8_t> piece(static_cast<size_t>(record) *
                               (kProgressPieceBytes / static_cast<size_t>(record)));
    for (int64_t offset = 0; offset < file->size();) {
      ASSIGN_OR_RETURN(const size_t count, file->Read(piece));
      lists_.SumContent(std::as_bytes(std::span(piece).first(count)));
      RETURN_IF_ERROR(Add(*file, offset, std::span(piece).first(count), records));
      offset += static_cast<int64_t>(count);
    }
    const int64_t rest = file->size() % record;
    if (rest == 0 && file->size() > 0) return absl::OkStatus();
    return lists_.Bad(absl::DataLossError(
        absl::StrCat(file->Where(), ": ", file->size(), " bytes: the record at offset ",
                     file->size() - rest, " has ", rest, " of ", record,
                     " bytes; give the whole file of ", files_.name, "'s binary version")));
  }

  void NoteLeftOut(const LeftOut& left_out) {
    if (left_out.empty()) return;
    lists_.Note(
        absl::StrCat(kField, " = \"", ShownName(folder_), "\": left out: ", left_out.Text()));
  }
  PictureSourceParts Parts(PictureSplits splits) { return lists_.Parts(std::move(splits)); }

 private:
  // The whole records of a piece.
  absl::Status Add(const OpenedFile& file, int64_t offset, std::span<const uint8_t> piece,
                   CifarRecords* records) {
    const int64_t record = files_.record();
    for (; std::ssize(piece) >= record; piece = piece.subspan(record), offset += record) {
      const uint8_t label = piece[static_cast<size_t>(files_.label_at)];
      if (classes_ > 0 && int64_t{label} >= classes_) {
        RETURN_IF_ERROR(lists_.Bad(absl::InvalidArgumentError(
            absl::StrCat(file.Where(), ": label ", int{label}, " of the record at offset ", offset,
                         " is not below ", ClassesText(spec_, classes_), "; give ", files_.name,
                         "'s files or a network of more classes"))));
        in_run_ = false;
        continue;
      }
      if (!std::exchange(in_run_, true)) {
        records->runs.push_back({std::ssize(records->labels), &file, offset});
      }
      records->labels.push_back(label);
    }
    return absl::OkStatus();
  }

  const JobSpec& spec_;
  const DataRoots& roots_;
  const std::string folder_;
  const CifarFiles files_;
  int64_t classes_ = 0;
  bool in_run_ = false;  // the record before is in the last run
  PictureLists lists_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> CifarDataSource(const JobSpec& spec,
                                                             const Network& network,
                                                             std::span<const std::string> reads,
                                                             const DataRoots& roots,
                                                             SourceLook look) {
  const auto data = spec.data.As<CifarData>();
  ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(roots, data));
  ASSIGN_OR_RETURN(const CifarFiles files, CifarFilesIn(data, names));
  CifarReader reader(spec, network, files, roots, look);
  reader.NoteLeftOut(OtherRecordsIn(files, names));
  CifarRecords train, test;
  for (const std::string& name : files.train) RETURN_IF_ERROR(reader.Read(name, &train));
  const bool has_test = std::find(names.begin(), names.end(), files.test) != names.end();
  if (has_test) RETURN_IF_ERROR(reader.Read(files.test, &test));
  PictureSourceParts parts = reader.Parts(
      SplitPictures(std::make_shared<CifarPictures>(std::move(train), files),
                    has_test ? std::make_shared<CifarPictures>(std::move(test), files) : nullptr));
  parts.facts.classes = CifarClassNames(roots, data.folder, files.names);
  return MakePictureSource(spec, network, data.pictures, reads, std::move(parts));
}

}  // namespace stagecoach
