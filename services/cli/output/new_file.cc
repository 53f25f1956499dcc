#include "services/cli/output/new_file.h"

#include <filesystem>
#include <memory>
#include <span>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/utf8.h"

namespace stagecoach {
namespace {

// A folder or a link of that name is somebody else's.
absl::Status RemoveUnfinished(const std::string& path, const std::string& remedy) {
  std::error_code error;
  const std::filesystem::file_status there = std::filesystem::symlink_status(path, error);
  if (there.type() == std::filesystem::file_type::not_found) return absl::OkStatus();
  if (!error && !std::filesystem::is_regular_file(there)) {
    return absl::AlreadyExistsError(absl::StrCat(
        ShownName(path), ": is there already and is no file; take it away, or ", remedy));
  }
  if (!error) std::filesystem::remove(path, error);
  return error ? absl::UnavailableError(
                     absl::StrCat("remove ", ShownName(path), ": ", error.message()))
               : absl::OkStatus();
}

}  // namespace

absl::Status WriteNewFile(FileSystem& file_system, const std::string& path,
                          const std::string& remedy,
                          absl::FunctionRef<absl::Status(const std::string&)> write) {
  if (file_system.Exists(path)) {
    return absl::AlreadyExistsError(absl::StrCat(ShownName(path), ": is there already; ", remedy));
  }
  const std::string unfinished = path + ".unfinished";
  RETURN_IF_ERROR(RemoveUnfinished(unfinished, remedy));
  absl::Status status = write(unfinished);
  if (status.ok()) status = file_system.Rename(unfinished, path);
  if (!status.ok()) {
    RemoveUnfinished(unfinished, remedy).IgnoreError();  // the first error is the one to tell
  }
  return status;
}

absl::Status WriteNewTextFile(FileSystem& file_system, const std::string& path,
                              std::string_view text, const std::string& remedy) {
  return WriteNewFile(file_system, path, remedy, [&](const std::string& unfinished) {
    return WriteText(file_system, unfinished, text);
  });
}

absl::Status WriteNewFolder(FileSystem& file_system, std::string path,
                            absl::FunctionRef<absl::Status(const std::string&)> write) {
  constexpr char kRemedy[] = "name another folder with --to";
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const std::string unfinished = path + ".unfinished";
  if (file_system.Exists(path)) {
    return absl::AlreadyExistsError(absl::StrCat(ShownName(path), ": is there already; ", kRemedy));
  }
  if (file_system.Exists(unfinished)) {
    return absl::AlreadyExistsError(
        absl::StrCat(ShownName(unfinished), ": is there already; take it away, or ", kRemedy));
  }
  absl::Status status = file_system.MakeFolders(unfinished);
  if (status.ok()) status = write(unfinished);
  if (status.ok()) status = file_system.SyncFolder(unfinished);
  if (status.ok()) status = file_system.Rename(unfinished, path);
  if (!status.ok()) {
    file_system.RemoveAll(unfinished).IgnoreError();  // the first error is the one to tell
  }
  return status;
}

absl::Status WriteText(FileSystem& file_system, const std::string& path, std::string_view text) {
  ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, file_system.Create(path));
  RETURN_IF_ERROR(file->Append(std::as_bytes(std::span(text))));
  RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

}  // namespace stagecoach
