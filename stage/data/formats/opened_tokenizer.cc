#include "stage/data/formats/opened_tokenizer.h"

#include <span>
#include <utility>

#include "base/errors/status.h"
#include "stage/data/formats/data_file.h"

namespace stagecoach {
namespace {

absl::StatusOr<std::string> WholeContent(const OpenedFile& file) {
  RETURN_IF_ERROR(Annotate(CheckModelSize(file.size()), file.Where()));
  std::string bytes(static_cast<size_t>(file.size()), '\0');
  RETURN_IF_ERROR(file.ReadAt(0, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()}));
  return bytes;
}

}  // namespace

absl::StatusOr<OpenedTokenizer> OpenTokenizerFile(const DataRoots& roots, const std::string& field,
                                                  const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<OpenedFile> file, OpenedFile::Open(roots, field, path));
  ASSIGN_OR_RETURN(const std::string bytes, WholeContent(*file));
  std::string config;
  if (IsTokenizerJson(bytes)) {
    const auto beside = OpenedFile::Open(roots, field, TokenizerConfigPath(path));
    // A root may be tokenizer.json alone.
    const bool none =
        absl::IsNotFound(beside.status()) || absl::IsPermissionDenied(beside.status());
    if (!none) {
      RETURN_IF_ERROR(beside.status());
      ASSIGN_OR_RETURN(config, WholeContent(**beside));
    }
  }
  ASSIGN_OR_RETURN(std::unique_ptr<const Tokenizer> tokenizer,
                   Annotate(Tokenizer::Parse(bytes, config), file->Where()));
  return OpenedTokenizer{std::move(tokenizer), file->Where()};
}

}  // namespace stagecoach
