#include "plan/data/token_file.h"

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "plan/data/token_file_header.h"
#include "plan/data/token_inputs.h"
#include "plan/job/data_kinds.h"

namespace stagecoach {
namespace {

constexpr char kTokenFile[] = "data.token_file";

class TokenFile final : public FieldKindOf<DataKind, TokenFileData> {
 public:
  std::vector<DataInput> Inputs() const override { return TokenInputs({.documents = true}); }

  std::vector<std::string> FileFields() const override { return {"files", "test"}; }

  std::string FileBeside(const std::string& path) const override { return TokensBesideIndex(path); }

  absl::Status CheckInputs(const DataSpec& data, const Network& network) const override {
    const auto tokens = data.As<TokenFileData>();
    if (tokens.files.empty()) {
      return FieldError(absl::StrCat(kTokenFile, ".files"), "[]",
                        "must name the files to train on");
    }
    RETURN_IF_ERROR(CheckTokenInputs(kTokenFile, network));
    RETURN_IF_ERROR(CheckPacked(kTokenFile, tokens.packed, network));
    if (tokens.packed && tokens.end < 0) {
      return FieldError(absl::StrCat(kTokenFile, ".packed"), "true",
                        "needs end, the id at a document's end: give it");
    }
    if (tokens.end < VocabularyOf(network)) return absl::OkStatus();
    return FieldError(
        absl::StrCat(kTokenFile, ".end"), absl::StrCat(tokens.end),
        absl::StrCat("must be below the network's vocabulary, ", VocabularyOf(network),
                     ": give the id that the tokenizer has for it, or a larger vocabulary"));
  }

  absl::Status CheckFile(const JobSpec& spec, const Network&, const DataFile& file,
                         std::string_view head, int64_t bytes) const override {
    const std::string where =
        absl::StrCat(DataFieldPath(spec.data, file), " = \"", ShownName(file.path), "\"");
    return ParseTokenFileHeader(where, head, bytes).status();
  }
};

}  // namespace

const DataKind* TokenFileDataKind() {
  static const auto* const kind = new TokenFile;
  return kind;
}

}  // namespace stagecoach
