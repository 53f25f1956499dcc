#include "checkpoint/files/folder_bytes.h"

#include <vector>

#include "absl/strings/str_cat.h"

namespace stagecoach {

int64_t BytesBelow(FileSystem& files, const std::string& path) {
  if (files.IsLink(path)) return 0;
  const absl::StatusOr<std::vector<std::string>> names = files.List(path);
  if (!names.ok()) {
    const absl::StatusOr<std::unique_ptr<ReadableFile>> file = files.Open(path);
    return file.ok() ? (*file)->size() : 0;
  }
  int64_t bytes = 0;
  for (const std::string& name : *names) bytes += BytesBelow(files, absl::StrCat(path, "/", name));
  return bytes;
}

}  // namespace stagecoach
