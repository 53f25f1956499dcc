#include "stage/data/formats/line_file.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "plan/job/data_kinds.h"

namespace stagecoach {

LineFile::LineFile(std::unique_ptr<OpenedFile> file, const LineRules& rules)
    : file_(std::move(file)),
      rules_(rules),
      lines_([this](std::span<uint8_t> into) { return Read(into); }, rules.most_bytes) {}

absl::StatusOr<std::unique_ptr<LineFile>> LineFile::Open(const DataRoots& roots,
                                                         const std::string& field,
                                                         const std::string& path,
                                                         const LineRules& rules) {
  ASSIGN_OR_RETURN(std::unique_ptr<OpenedFile> file, OpenedFile::Open(roots, field, path));
  std::string head(std::min(static_cast<size_t>(file->size()), kDataHeadBytes), '\0');
  RETURN_IF_ERROR(file->ReadAt(0, {reinterpret_cast<uint8_t*>(head.data()), head.size()}));
  RETURN_IF_ERROR(rules.check_head(file->Where(), head));
  return std::unique_ptr<LineFile>(new LineFile(std::move(file), rules));
}

std::string LineFile::WhereLine() const { return absl::StrCat(Where(), ", line ", line()); }

absl::StatusOr<size_t> LineFile::Read(std::span<uint8_t> into) {
  const absl::StatusOr<size_t> count = file_->Read(into);
  read_ = count.status();
  if (count.ok()) digest_.Update(std::as_bytes(into.first(*count)));
  return count;
}

absl::StatusOr<std::optional<std::string_view>> LineFile::Next() {
  absl::StatusOr<std::optional<LineReader::Part>> part = lines_.Next();
  RETURN_IF_ERROR(read_);
  RETURN_IF_ERROR(Annotate(part.status(), Where()));
  if (!part->has_value()) return std::nullopt;
  if (!(*part)->ends) return TooLong();
  return (*part)->text;
}

// The line is not kept, but its bytes are counted to its end.
absl::Status LineFile::TooLong() {
  for (;;) {
    const absl::StatusOr<std::optional<LineReader::Part>> part = lines_.Next();
    RETURN_IF_ERROR(read_);
    RETURN_IF_ERROR(Annotate(part.status(), Where()));
    if ((*part)->ends) break;
  }
  return absl::InvalidArgumentError(absl::StrCat(WhereLine(), ": has ", lines_.line_bytes(),
                                                 " bytes; at most ", rules_.most_bytes, ": ",
                                                 rules_.shorten));
}

}  // namespace stagecoach
