#include "plan/data/text.h"

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/files/file_kind.h"
#include "base/utf8.h"
#include "network/passes/later_rows.h"
#include "plan/data/text_file.h"
#include "plan/job/data_kinds.h"

namespace stagecoach {
namespace {

class Text final : public FieldKindOf<DataKind, TextData> {
 public:
  std::vector<DataInput> Inputs() const override {
    return {{.name = "tokens", .ids = true, .extents = {"context"}},
            {.name = "targets", .ids = true, .extents = {"context"}}};
  }

  std::vector<std::string> FileFields() const override { return {"path", "tokenizer", "test"}; }

  absl::Status CheckInputs(const DataSpec& data, const Network& network) const override {
    const auto text = data.As<TextData>();
    if (text.bytes && !text.tokenizer.empty()) {
      return FieldError("data.text.bytes", "true",
                        "a tokenizer takes UTF-8 only; leave out bytes, or the tokenizer");
    }
    const WireId tokens = network.InputNamed("tokens"), targets = network.InputNamed("targets");
    if (!tokens.valid()) {
      return FieldError("data.text", "gives tokens and targets",
                        "the network does not read tokens: give data that it reads");
    }
    if (targets.valid() && network.wire(tokens).type != network.wire(targets).type) {
      return FieldError(
          "data.text", "gives as many targets as tokens",
          absl::StrCat("the network reads tokens ", FormatType(network.wire(tokens).type),
                       " and targets ", FormatType(network.wire(targets).type)));
    }
    const std::string reader = ReaderOfLaterRows(network);
    if (reader.empty()) return absl::OkStatus();
    return FieldError("data.text", "gives the token behind each token as its target",
                      absl::StrCat("the network reads that token too (", reader,
                                   "), so it would learn to copy it: take a layer that looks back "
                                   "only, as attention with its causal mask"));
  }

  absl::Status CheckFile(const JobSpec& spec, const Network& network, const DataFile& file,
                         std::string_view head, int64_t bytes) const override {
    const auto text = spec.data.As<TextData>();
    if (file.field == "tokenizer") {
      const std::string other = OtherKindText(head, "a SentencePiece model");
      if (other.empty()) return absl::OkStatus();
      return absl::InvalidArgumentError(
          absl::StrCat("data.text.tokenizer = \"", ShownName(file.path), "\": ", other));
    }
    RETURN_IF_ERROR(CheckIsText(text, head, file.field));
    // Only a tokenizer knows how many tokens there are; of nothing it makes none.
    if (!text.tokenizer.empty() && bytes > 0) return absl::OkStatus();
    const int64_t context = network.wire(network.InputNamed("tokens")).type.shape.elements();
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
