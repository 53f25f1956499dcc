// WriteManifestFile: makes a folder of shards a checkpoint, for tests (the coordinator's part).
#ifndef STAGECOACH_STAGE_TESTING_MANIFEST_FILE_H_
#define STAGECOACH_STAGE_TESTING_MANIFEST_FILE_H_

#include <span>
#include <string>

#include "base/errors/check.h"
#include "checkpoint/files/file_system.h"
#include "checkpoint/manifest.h"

namespace stagecoach {

inline void WriteManifestFile(FileSystem& file_system, const std::string& folder,
                              const Manifest& manifest) {
  const std::string path = folder + "/MANIFEST.json";
  const std::string text = FormatManifest(manifest);
  CHECK_OK(file_system.RemoveAll(path));
  auto file = file_system.Create(path);
  CHECK_OK(file.status());
  CHECK_OK((*file)->Append(std::as_bytes(std::span(text))));
  CHECK_OK((*file)->Sync());
  CHECK_OK((*file)->Close());
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TESTING_MANIFEST_FILE_H_
