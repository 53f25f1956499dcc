// FileKind: the obvious kind of a file by its first bytes, so that an error about a file of another
// kind can name it.
// Threads: pure functions.
#ifndef STAGECOACH_BASE_FILES_FILE_KIND_H_
#define STAGECOACH_BASE_FILES_FILE_KIND_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/string_view.h"

namespace stagecoach {

struct FileKind {
  absl::string_view name;  // "a zip archive", "WebP"
  // Remedy for a file of this kind: "unpack it first". Empty: another file is wanted.
  absl::string_view remedy;
  // kText: text by people, and JSON. kMarkup: text by programs, as HTML. kData: the rest, and
  // pointers.
  enum class Form : uint8_t { kData, kMarkup, kText } form = Form::kData;
};

inline constexpr absl::string_view kSafetensorsKind = "a safetensors file";

// The first bytes that FileKindOf looks at; a shorter file is given whole.
inline constexpr size_t kFileKindBytes = 4096;

// nullopt: none of the known kinds.
std::optional<FileKind> FileKindOf(std::string_view head);

// "a Git LFS pointer, not a tar file; fetch the file itself (git lfs pull)". `wanted`: "a tar
// file". Empty: none of the known kinds.
std::string OtherKindText(std::string_view head, absl::string_view wanted);

// Compressed data or an archive, which may contain the wanted file.
bool IsPacked(const FileKind& kind);

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_FILES_FILE_KIND_H_
