// NewFile: a file that a command writes for its user: whole or not at all, and never over another
// one.
// Threads: any.
// Errors:  ALREADY_EXISTS naming the file and the remedy: one is there already. Errors of `write`
//          and of the file system leave nothing. If an interrupted command left a file
//          PATH.unfinished, it is removed.
#ifndef STAGECOACH_SERVICES_CLI_OUTPUT_NEW_FILE_H_
#define STAGECOACH_SERVICES_CLI_OUTPUT_NEW_FILE_H_

#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "checkpoint/files/file_system.h"

namespace stagecoach {

// remedy: "name another file with --to". write: gets the path to write; the folder exists.
absl::Status WriteNewFile(FileSystem& file_system, const std::string& path,
                          const std::string& remedy,
                          absl::FunctionRef<absl::Status(const std::string&)> write);

// The same of a text.
absl::Status WriteNewTextFile(FileSystem& file_system, const std::string& path,
                              std::string_view text, const std::string& remedy);

// The same of a folder: gets the path of a folder that is there. If an interrupted command left a
// folder PATH.unfinished, that is ALREADY_EXISTS too.
absl::Status WriteNewFolder(FileSystem& file_system, std::string path,
                            absl::FunctionRef<absl::Status(const std::string&)> write);

// A file in such a folder.
absl::Status WriteText(FileSystem& file_system, const std::string& path, std::string_view text);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_OUTPUT_NEW_FILE_H_
