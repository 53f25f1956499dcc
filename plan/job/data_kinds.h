// DataKinds: the sources of data that a job can name, as far as one can know them without the data:
// their fields, what they give of a sample, which files they read. The stages' readers are in
// stage/data, one file a kind, found by the same names.
// Ownership: the list owns nothing; kinds live as long as the process.
// Threads:   any.
// Units and shapes: types are of one sample.
// Errors:    INVALID_ARGUMENT naming field, value and remedy.
#ifndef STAGECOACH_PLAN_JOB_DATA_KINDS_H_
#define STAGECOACH_PLAN_JOB_DATA_KINDS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/listed.h"
#include "network/network.h"
#include "plan/job/job_spec.h"
#include "plan/job/kind_list.h"
#include "plan/job/picture_fields.h"

namespace stagecoach {

// An input of a network that a source gives: ids, or numbers.
struct DataInput {
  std::string name;  // "tokens"
  bool ids = false;
  std::vector<std::string> extents;  // of a sample, in words: "height", "width", "channels"
};

struct DataFile {
  std::string field;    // within the kind: "path", "sources[1]"
  std::string path;     // not empty
  bool folder = false;  // with the files in it
  bool beside = false;  // not named by the job itself (FileBeside)
};

// CheckFile gets this many bytes from a file's beginning, or all there are.
inline constexpr size_t kDataHeadBytes = 64 << 10;

class DataKind : public FieldKind {
 public:
  virtual std::vector<DataInput> Inputs() const = 0;
  // Its fields that are paths of files, or lists of them, which the stages read.
  virtual std::vector<std::string> FileFields() const = 0;
  // The path of a file that is read with one of those; empty: there is none.
  virtual std::string FileBeside(const std::string&) const { return ""; }
  // Its fields that are paths of folders.
  virtual std::vector<std::string> FolderFields() const { return {}; }
  // The file field that says what each sample weighs; empty: there is none.
  virtual std::string WeightsField() const { return ""; }
  // Processing of a picture before a network reads it; nullopt: it gives no pictures.
  virtual std::optional<PictureFields> Pictures(const DataSpec&) const { return std::nullopt; }
  // Checks beyond names, kinds and numbers of extents of the network's inputs (CheckDataInputs).
  virtual absl::Status CheckInputs(const DataSpec& data, const Network& network) const = 0;
  // Checks one file, which is no folder, by its first bytes and its size. `network` takes the
  // source's inputs.
  virtual absl::Status CheckFile(const JobSpec& spec, const Network& network, const DataFile& file,
                                 std::string_view head, int64_t bytes) const = 0;
};

// Each has a file in plan/data, which defines `const DataKind* TextDataKind()`, and a message in
// proto/stagecoach/v1/data.proto.
#define STAGECOACH_DATA \
  Cifar, Idx, ImageFolder, JsonLines, MaskFolder, ParallelText, Text, TokenFile, WebDataset
STAGECOACH_LISTED(Giver<const DataKind*>, DataKind, STAGECOACH_DATA)

const KindList<DataKind>& DataKinds();

// The files and folders that the job names, each in the order of the fields, and behind each file
// the one beside it; unchecked.
std::vector<DataFile> DataFiles(const DataSpec& data);
// Changes the path of each of these.
void ChangeDataPaths(const std::function<std::string(const std::string& path)>& change,
                     DataSpec* data);
// "data.text.path" of a text's file.
std::string DataFieldPath(const DataSpec& data, const DataFile& file);
// "data.idx.images = "a", data.idx.labels = "b"": of errors about the data as a whole.
std::string DataFilesText(const DataSpec& data);

// "data.idx.weights", if the job gives it; else empty. Nothing is checked.
std::string SampleWeightsPath(const DataSpec& data);

// Checks name and fields of the data, and whether it gives the network's inputs: "data.text: gives
// tokens and targets; the network reads "images": give data that has it, as data.idx".
absl::Status ValidateData(const DataSpec& data, const Network& network);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_JOB_DATA_KINDS_H_
