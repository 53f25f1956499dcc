#include "plan/data/text.h"

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/files/file_kind.h"
#include "base/utf8.h"
#include "plan/data/text_file.h"
#include "plan/data/token_inputs.h"
#include "plan/job/data_kinds.h"

namespace stagecoach {
namespace {

class Text final : public FieldKindOf<DataKind, TextData> {
 public:
  std::vector<DataInput> Inputs() const override { return TokenInputs({.masks = true}); }

  std::vector<std::string> FileFields() const override { return {"path", "tokenizer", "test"}; }

  absl::Status CheckInputs(const DataSpec& data, const Network& network) const override {
    const auto text = data.As<TextData>();
    if (text.bytes && !text.tokenizer.empty()) {
      return FieldError("data.text.bytes", "true",
                        "a tokenizer takes UTF-8 only; leave out bytes, or the tokenizer");
    }
    return CheckMaskedInputs("data.text", text.masked, text.tokenizer, network);
  }

  absl::Status CheckFile(const JobSpec& spec, const Network& network, const DataFile& file,
                         std::string_view head, int64_t bytes) const override {
    const auto text = spec.data.As<TextData>();
    if (file.field == "tokenizer") {
      return CheckTokenizerHead(
          absl::StrCat("data.text.tokenizer = \"", ShownName(file.path), "\""), head);
    }
    RETURN_IF_ERROR(CheckIsText(text, head, file.field));
    // Only a tokenizer knows how many tokens there are; of nothing it makes none.
    if (!text.tokenizer.empty() && bytes > 0) return absl::OkStatus();
    const int64_t context = ContextOf(network);
    return file.field == "test" ? CheckTestLength(spec, context, bytes)
                                : CheckTextLength(spec, context, bytes);
  }
};

}  // namespace

const DataKind* TextDataKind() {
  static const auto* const kind = new Text;
  return kind;
}

}  // namespace stagecoach
