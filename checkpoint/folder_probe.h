// FolderProbe: the proof that a coordinator and its stages reach one folder of checkpoints and may
// write it. They prove it before a job trains, by files with secrets:
//   coordinator   makes a temporary folder (CheckpointStore::Begin) and writes a secret into
//                 `probe`
//   each stage    reads it and writes it back, with its place in the pipeline, into `answer-<k>`
//   coordinator   reads the answers and removes the folder
// A crash may leave a folder behind. It goes with the store's other temporary folders.
// Ownership: borrows the file system.  Threads: any that may block on files.
// Errors:    the file system's codes with the path; FAILED_PRECONDITION: an answer to somebody
//            else; DATA_LOSS: a file of a wrong size.
// See:       docs/formats.md, "Probe of the folder".
#ifndef STAGECOACH_CHECKPOINT_FOLDER_PROBE_H_
#define STAGECOACH_CHECKPOINT_FOLDER_PROBE_H_

#include <string>

#include "absl/status/statusor.h"
#include "checkpoint/files/file_system.h"

namespace stagecoach {

struct FolderProbe {
  std::string folder;
  std::string secret;
  friend bool operator==(const FolderProbe&, const FolderProbe&) = default;
};

// Coordinator: writes the probe into an empty folder.
absl::StatusOr<FolderProbe> WriteFolderProbe(FileSystem& file_system, const std::string& folder);
// Stage: answers. RESOURCE_EXHAUSTED: it sees the folder, but could not write; other errors: it
// does not.
absl::Status AnswerFolderProbe(FileSystem& file_system, const std::string& folder, int stage);
// Coordinator: checks a stage's answer.
absl::Status CheckFolderAnswer(FileSystem& file_system, const FolderProbe& probe, int stage);

}  // namespace stagecoach

#endif  // STAGECOACH_CHECKPOINT_FOLDER_PROBE_H_
